"""The priced policy: how many pods a forecast is worth, when load that meets too few of them has a price.

Two questions, because a pod takes its time to start. Start: is it needed when it could serve? Keep: could it be needed
before it could be made anew? Each is answered by the level at which one more pod costs as much as it saves:
argmin over n of n + price x E[load, where it exceeds what n pods carry]. Then n moves as little as possible into
[start, keep].
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, inf

import numpy as np

from trimtab.core.model import Quantile
from trimtab.policy import SLO
from trimtab.series import Floats

_ROWS = 4096  # at a time: what fits the cache
BEYOND = 4.0 / 3.0  # what load beyond the last quantile counts, as a multiple of it


def level(demand: Sequence[Quantile], price: float, service_level: float = SLO, carries: float = 1.0) -> int:
    """Return the pods that this demand is worth, of which each carries so much at 100 %."""
    above = (1.0 - demand[-1].probability) * max(demand[-1].value, 0.0) * BEYOND
    best, cheapest, later = 0, inf, demand[-1]
    for quantile in reversed(demand):
        above += (later.probability - quantile.probability) * (max(later.value, 0.0) + max(quantile.value, 0.0)) / 2.0
        later, pods = quantile, ceil(max(quantile.value, 0.0) / carries / service_level - 1e-9)
        cost = pods + price * above / carries
        if cost <= cheapest:
            best, cheapest = pods, cost
    return best


def levels(
    probabilities: Floats,
    values: Floats,
    prices: Sequence[float],
    service_level: float = SLO,
    carries: float = 1.0,
) -> Floats:
    """Return `level` for many forecasts at several prices, (prices, rows); values[row, quantile], both ascending."""
    found = np.empty((len(prices), len(values)))
    for first in range(0, len(values), _ROWS):
        some = slice(first, first + _ROWS)
        demand = np.maximum(values[some], 0.0)
        pods, above = np.ceil(demand / carries / service_level - 1e-9), load_above(probabilities, demand)
        for place, price in enumerate(prices):
            costs = pods + price * above / carries
            found[place, some] = np.take_along_axis(pods, costs.argmin(axis=1)[:, None], axis=1)[:, 0]
    return found


def load_above(probabilities: Floats, values: Floats) -> Floats:
    """Return E[load, where it exceeds this quantile], for each quantile; beyond the last one it counts a third more."""
    between = np.diff(probabilities) * (values[:, 1:] + values[:, :-1]) / 2.0
    beyond = (1.0 - probabilities[-1]) * values[:, -1:] * BEYOND
    parts = np.concatenate([between, beyond], axis=1)
    above: Floats = np.cumsum(parts[:, ::-1], axis=1)[:, ::-1]
    return above


def into_band(pods: int, start: int, keep: int) -> int:
    """`pods` moved as little as needed to lie in [start, keep]; what has to start is never kept away."""
    return min(max(pods, start), max(start, keep))
