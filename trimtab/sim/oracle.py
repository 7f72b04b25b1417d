"""The clairvoyant optimum: the cheapest replicas that never violate, known only in hindsight.

Pods bill from creation and serve after L steps, so the k-th pod is kept through gaps of at most L steps and otherwise
created L steps before it is needed: optimum = sum over t of max(d_t .. d_{t+L}). With any other price of a step the
dynamic programme finds it: f'(n) = g(n) + min(min_{m>=n} f(m), min_{m<n} f(m) + L (n - m)).
"""

from __future__ import annotations

import numpy as np

from trimtab.series import Floats
from trimtab.sim.score import SLO, Counts
from trimtab.sim.window import forward_max


def demand(load: Floats, least: int, slo: float = SLO) -> Counts:
    """The fewest ready pods that serve each step within the service level."""
    return np.maximum(least, np.ceil(load / slo - 1e-9)).astype(np.int32)


def optimum(needed: Counts, delay_steps: int) -> Counts:
    """The billed pods of the clairvoyant run at each step."""
    return forward_max(needed, delay_steps)


def cheapest(prices: Floats, delay_steps: int) -> float:
    """The lowest total of prices[t, n] (n pods serving in step t) plus `delay_steps` for every pod started later on.

    The programme walks n from 0 to prices.shape[1] - 1; a pod that serves from the first step on has paid for nothing.
    """
    pods = np.arange(prices.shape[1])
    best = prices[0].copy()
    for price in prices[1:]:
        kept = np.minimum.accumulate(best[::-1])[::-1]
        grown = np.minimum.accumulate(best - delay_steps * pods) + delay_steps * pods
        best = price + np.minimum(kept, grown)
    return float(best.min())
