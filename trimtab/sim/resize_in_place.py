"""The bridge on the grid: how large ready pods are in each step.

What is needed at the end of a step is asked for then, done during the next one and there from the one after.
"""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trimtab.core.bridge import CALM_S, LEVEL, level_needed
from trimtab.policy import Bridge
from trimtab.series import Floats
from trimtab.sim.compiled import compiled, shared
from trimtab.sim.grid import MEAN_STEPS, STEP_S
from trimtab.sim.sliding_windows import delayed, trailing_mean

CALM_STEPS = round(CALM_S / STEP_S)
_NEVER = -CALM_STEPS

shared(level_needed)


class BridgeNumbers(NamedTuple):
    """A bridge for the compiled lane; a ceiling of 0 is none."""

    ceiling: float
    max_factor: float
    levels: int  # above 1


def numbers_of(bridge: Bridge | None) -> BridgeNumbers:
    if bridge is None:
        return BridgeNumbers(0.0, 1.0, 0)
    return BridgeNumbers(bridge.ceiling, bridge.max_factor, ceil((bridge.max_factor - 1.0) / LEVEL))


@compiled
def empty_levels(levels: int) -> NDArray[np.int64]:
    """When each level above 1 was last needed."""
    return np.full(levels, _NEVER)


@compiled
def hold(last_needed: NDArray[np.int64], t: int, level: float, max_factor: float) -> float:
    """Note the level of this step; the highest of the last five minutes."""
    if level > 1.0:
        last_needed[ceil((level - 1.0) / LEVEL) - 1] = t
    for index in range(len(last_needed) - 1, -1, -1):
        if t - last_needed[index] < CALM_STEPS:
            return min(1.0 + (index + 1) * LEVEL, max_factor)
    return 1.0


def shown_load(load: Floats, mean_steps: int = MEAN_STEPS, metric_delay_steps: int = 0) -> Floats:
    """What a bridge sees of the load at the end of a step: the mean that metrics show by then. Where they are never
    late, it sees the newest step too."""
    if metric_delay_steps:
        return delayed(trailing_mean(load, mean_steps), metric_delay_steps)
    return np.maximum(load, trailing_mean(load, mean_steps))


def size_factors(seen: Floats, ready: NDArray[np.int32], bridge: Bridge) -> Floats:
    """The factor of each step and of the one after the last; `seen` is the load that a step shows at its end."""
    factors = np.ones(len(seen) + 1)
    factors_into(seen, ready, *numbers_of(bridge), factors)
    return factors


@compiled
def factors_into(
    seen: Floats, ready: NDArray[np.int32], ceiling: float, max_factor: float, levels: int, factors: Floats
) -> None:
    last_needed = empty_levels(levels)
    for t in range(1, len(seen)):
        level = level_needed(seen[t - 1], float(ready[t]), ceiling, max_factor)
        factors[t + 1] = hold(last_needed, t, level, max_factor)
