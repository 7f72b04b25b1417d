"""bound: the last stage that chooses a number of replicas; after it a gate can only keep the ones there are."""

from __future__ import annotations

from trimtab.core.bounds_in_force import BoundsInForce, clamp
from trimtab.core.model import RuleName, Step
from trimtab.policy import Axis


def bound(replicas: int, bounds: BoundsInForce, steps: list[Step]) -> int:
    """Clamp, and say which bound did it."""
    bounded = clamp(replicas, bounds.least, bounds.most)
    if bounded > replicas:
        steps.append(_step(RuleName.MIN_REPLICAS, replicas, bounded, bounds.least_from))
    elif bounded < replicas:
        steps.append(_step(RuleName.MAX_REPLICAS, replicas, bounded, bounds.most_from))
    return bounded


def _step(rule: RuleName, before: int, after: int, schedule: str) -> Step:
    rule = RuleName.SCHEDULE if schedule else rule
    return Step(rule=rule, axis=Axis.REPLICAS, before=before, after=after, detail=schedule)
