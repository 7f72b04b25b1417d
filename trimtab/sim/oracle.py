"""The clairvoyant optimum: the cheapest replicas that never violate, known only in hindsight.

Pods bill from creation and serve after L steps, so the k-th pod is kept through gaps of at most L steps and otherwise
created L steps before it is needed: optimum = sum over t of max(d_t .. d_{t+L}).
"""

from __future__ import annotations

import numpy as np

from trimtab.series import Floats
from trimtab.sim.score import SLO, Counts
from trimtab.sim.sliding_windows import forward_max


def pods_needed(load: Floats, least: int, slo: float = SLO) -> Counts:
    """The fewest ready pods that serve each step within the service level."""
    return np.maximum(least, np.ceil(load / slo - 1e-9)).astype(np.int32)


def optimum(needed: Counts, delay_steps: int) -> Counts:
    """The billed pods of the clairvoyant run at each step."""
    return forward_max(needed, delay_steps)
