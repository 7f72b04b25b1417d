"""Settling rules that need no history: each one is a function of plain numbers.

A function takes the recommended replicas, their ratio to the current replicas, the current replicas and then the fields
of its record in their order. It returns the new recommendation and ratio. decide() and the compiled engine call the
same function, so it may use only numbers and `math`.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import NamedTuple

from trimtab.core.model import RuleName
from trimtab.core.settle.context import ratio_to
from trimtab.policy import MaxFactor, MinFactor, RoundUp, UpLimit

Settled = tuple[float, float]


class StatelessRule(NamedTuple):
    """A rule's function, and how a decision names and explains it."""

    function: Callable[..., Settled]
    name: RuleName = RuleName.SETTLING
    sentence: str = ""  # for RuleName.SETTLING, such as "maxPods": "maxPods allows 12"


def limit_step_up(replicas: float, ratio: float, current: int, factor: float, minimum: float) -> Settled:
    """Limit one step up to max(factor x current, minimum): HPA without `behavior`."""
    most = float(int(max(factor * current, minimum)))
    return (most, ratio_to(most, current)) if replicas > most else (replicas, ratio)


def cap_factor(replicas: float, ratio: float, current: int, up: float, down: float) -> Settled:
    """Clamp the ratio to [1 - down, 1 + up]: nanit custom-hpa."""
    capped = min(ratio, 1.0 + up) if ratio > 1.0 else max(ratio, 1.0 - down)
    return (replicas, ratio) if capped == ratio else (current * capped, capped)


def skip_small_step(replicas: float, ratio: float, current: int, up: float, down: float) -> Settled:
    """Keep the current replicas while 1 - down <= ratio <= 1 + up: nanit custom-hpa."""
    large_enough = ratio > 1.0 + up if ratio > 1.0 else ratio < 1.0 - down
    return (replicas, ratio) if large_enough else (float(current), 1.0)


def round_up(replicas: float, ratio: float, current: int, epsilon: float) -> Settled:
    """Round up to whole pods, so that a plan never asks for less than was recommended."""
    return float(ceil(replicas - epsilon)), ratio


STATELESS: dict[type, StatelessRule] = {
    UpLimit: StatelessRule(limit_step_up, RuleName.UP_LIMIT),
    MaxFactor: StatelessRule(cap_factor, RuleName.MAX_FACTOR),
    MinFactor: StatelessRule(skip_small_step, RuleName.MIN_FACTOR),
    RoundUp: StatelessRule(round_up, RuleName.ROUND_UP),
}
