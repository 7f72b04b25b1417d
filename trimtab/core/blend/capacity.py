"""Capacity (ours): the total demand first, then replicas and size on one path, with one hysteresis.

total = max(recent usage * 1.15, what the horizontal axis asks for), the latter only where its signals speak for it;
m replicas need total + max(0, m - n) * base: each new one brings its base usage, and one that goes gives nothing back
before it is gone. Replicas grow to the preferred (else the largest allowed) size, then more are added; one is removed
only when the rest would fit with the hysteresis to spare. So replicas and capacity never fall when the total rises, and
a constant load is a fixed point whatever base was configured:
in: total / m <= (1 - h) * cap, so m replicas never ask to grow again; out: only when total / n > cap.

The scale point stays: utilisation is taken of the requests that pods really have, and n * size = total leaves
usage / requests the same however the total is divided. The wishes of the past are in replicas of a past size, so
`remember` starts their window anew with a resize. A need of 5 cores is 5 cores, at once and a window later.
"""

from __future__ import annotations

from math import ceil, inf

from trimtab.core.blend.replica import ReplicaNeed, followed, replica_needs, total, write
from trimtab.core.blend.wishes import AxisWishes, horizontal_only, joint_replicas
from trimtab.core.model import Plan, RuleName, Step
from trimtab.policy import Axis, Capacity, Size, Vertical

_NOISE = 1e-9


def plan(rule: Capacity, vertical: Vertical, wishes: AxisWishes, steps: list[Step]) -> Plan:
    found = replica_needs(vertical, wishes)
    if not found:
        return horizontal_only(wishes, steps)
    totals = {axis: total(need, wishes, axis) for axis, need in found.items()}
    replicas = joint_replicas(_votes(rule, found, wishes), wishes, steps)
    if replicas != wishes.wanted:
        steps.append(_step(Axis.REPLICAS, wishes.wanted, replicas))
    sizes = {axis: _size(rule, need, totals[axis], wishes, replicas, axis, steps) for axis, need in found.items()}
    return Plan(replicas=replicas, sizes=write(vertical, wishes, found, sizes, RuleName.CAPACITY, steps), joint=True)


def vote(rule: Capacity, vertical: Vertical, wishes: AxisWishes) -> int | None:
    """The replicas that the totals ask for, before any window; None where nothing is known about sizes."""
    found = replica_needs(vertical, wishes)
    if not found:
        return None
    return _votes(rule, found, wishes)


def _votes(rule: Capacity, found: dict[Axis, ReplicaNeed], wishes: AxisWishes) -> int:
    votes = [_vote(rule, need, total(need, wishes, axis), wishes, axis) for axis, need in found.items()]
    return max((vote for vote in votes if vote is not None), default=wishes.current)


def replicas_for(total: float, cap: float, base: float, current: int, hysteresis: float) -> float:
    """As few as fit under the cap; the current ones as long as they fit and fewer would be tight."""
    if total <= current * cap * (1.0 + _NOISE):
        return min(current, _count(total, (1.0 - hysteresis) * cap))
    work = max(0.0, total - current * base)
    return max(current, _count(work, cap - base))


def size_for(total: float, base: float, current: int, replicas: int) -> float:
    """x(m) = base + work / m when replicas are added; total / m else."""
    return (total + max(0, replicas - current) * base) / replicas


def _vote(rule: Capacity, need: ReplicaNeed, total: float, wishes: AxisWishes, axis: Axis) -> int | None:
    """Without a largest size a resource follows the horizontal wish, or says nothing where there is none."""
    cap = _cap(rule, need, axis)
    if cap == inf:
        return wishes.wanted if axis in wishes.speaks_for else None
    base = _base(rule, total, wishes, axis)
    return int(min(replicas_for(total, cap, base, wishes.current, rule.hysteresis), wishes.max_replicas + 1))


def _size(
    rule: Capacity, need: ReplicaNeed, total: float, wishes: AxisWishes, replicas: int, axis: Axis, steps: list[Step]
) -> float:
    """What m replicas need of each; never less than both what it has and what vertical recommends."""
    size = size_for(total, _base(rule, total, wishes, axis), wishes.current, replicas)
    size = max(size, need.target if wishes.overloaded else min(need.target, need.present))
    if replicas == wishes.current and (1.0 - rule.hysteresis) * need.present <= size < need.present:
        size = need.present
    size = followed(size, need, wishes)
    bounded = min(max(size, need.least), need.most)
    if bounded < size * (1.0 - _NOISE):
        steps.append(Step(rule=RuleName.ALLOWED, axis=axis, before=size, after=bounded))
    return bounded


def _cap(rule: Capacity, need: ReplicaNeed, axis: Axis) -> float:
    preferred = (rule.preferred or Size()).amount(axis)
    return need.most if preferred is None else min(preferred, need.most)


def _base(rule: Capacity, total: float, wishes: AxisWishes, axis: Axis) -> float:
    """Never more than a replica is recommended now, whatever was configured."""
    return min(rule.base.amount(axis) or 0.0, total / wishes.current)


def _count(total: float, size: float) -> float:
    """How many of this size hold the total; no number does where nothing is left for work."""
    if total <= 0.0:
        return 1
    return ceil(total / size * (1.0 - _NOISE)) if size > 0.0 else inf


def _step(axis: Axis, before: float, after: float) -> Step:
    return Step(rule=RuleName.CAPACITY, axis=axis, before=before, after=after)
