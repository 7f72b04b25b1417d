"""blend: one plan from what both axes want; at most one of weights (001), buckets (004), capacity (ours).

A blend takes its policy record, the vertical policy and the wishes, and returns replicas and sizes; it records every
number that is not what an axis asked for. To add one: its record in `policy.Blend`, its module here, a line in BLENDS.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trimtab.core.blend import buckets, capacity, weights
from trimtab.core.blend.replica import written
from trimtab.core.blend.wishes import AxisWishes, PodsAsked, axes_of, speaks_for
from trimtab.core.model import Plan, RuleName, Step
from trimtab.policy import RESOURCES, Axis, Blend, Buckets, Capacity, Vertical, Weights

BLENDS: dict[type, Callable[[Any, Vertical, AxisWishes, list[Step]], Plan]] = {
    Weights: weights.plan,
    Buckets: buckets.plan,
    Capacity: capacity.plan,
}


def blend(rule: Blend | None, vertical: Vertical, wishes: AxisWishes, steps: list[Step]) -> Plan:
    """Replicas and requests from the chosen rule, limits by the vertical policy; without one each axis has its way."""
    if rule is not None:
        return BLENDS[type(rule)](rule, vertical, wishes, steps)
    split = {axis: _targets(wishes, axis) for axis in RESOURCES}
    return Plan(replicas=wishes.wanted, sizes=written(vertical, wishes, split, RuleName.ALLOWED, steps))


def joint_vote(rule: Blend | None, vertical: Vertical, wishes: AxisWishes) -> int | None:
    """The replicas that buckets or capacity ask for now, which the stabilization window remembers."""
    if isinstance(rule, Buckets):
        return buckets.vote(rule, vertical, wishes)
    return capacity.vote(rule, vertical, wishes) if isinstance(rule, Capacity) else None


def _targets(wishes: AxisWishes, axis: Axis) -> dict[str, float]:
    amounts = {name: target.amount(axis) for name, target in wishes.targets.items()}
    return {name: found for name, found in amounts.items() if found is not None}


__all__ = ["BLENDS", "AxisWishes", "PodsAsked", "axes_of", "blend", "joint_vote", "speaks_for"]
