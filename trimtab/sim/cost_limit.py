"""When a run is not worth its end: its pods and starts cost more already than whoever it has to beat."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trimtab.series import Floats
from trimtab.sim.score import SLACK

_ROUNDING = 1e-9  # sums in another order


class CostLimit(NamedTuple):
    """By day: how much a pod-step weighs, and the most that may be spent by its end."""

    weights: Floats
    most: Floats
    day_steps: int


UNLIMITED = CostLimit(np.empty(0), np.empty(0), 0)


def cost_limit(least: float, weights: Floats, load: Floats, day_steps: int, slo: float, lam: float) -> CostLimit:
    """Nobody who spends more can reach a weighed J of `least`, whatever comes: the later days cost everybody something.

    A step of load is violated and priced at lambda, or there is capacity for it at the service level, which is billed
    as pods or as what a bridge adds to them.
    """
    cheapest = np.maximum(min(1.0 / slo, lam) * load - day_steps * SLACK / slo, 0.0)
    later = np.cumsum((weights * cheapest)[::-1])[::-1] - weights * cheapest
    return CostLimit(weights, least * (1.0 + _ROUNDING) - later, day_steps)
