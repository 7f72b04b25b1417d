"""HVPA buckets: the total of each resource decides how many replicas, and these how large each one is.

total = max(recent usage * 1.15, what the horizontal axis asks for), for each resource; without recent usage the
vertical target * current replicas takes its place (HVPA buckets);
replicas = the larger of what CPU and memory ask for on their ladders; size = total / replicas, within the minimum of
the bucket and the maximum of the replica count; the last count too has one, unless `grow_past_last`.
Guarded sizing: scaling out never leaves a replica less than min(vertical target, 1.25 * what it has). So both examples
of the document hold (3 x 8 cores; 3 x 6 GB against base usage), and a larger total never gets a smaller capacity.
"""

from __future__ import annotations

from typing import NamedTuple

from trimtab.core.blend.ladder import Rung, ladder, margin, replicas_for, rung_at
from trimtab.core.blend.replica import ReplicaNeed, followed, replica_needs, total, write
from trimtab.core.blend.wishes import AxisWishes, horizontal_only, joint_replicas
from trimtab.core.model import Plan, RuleName, Step
from trimtab.policy import Axis, Buckets, BucketSizing, Margin, Margins, Vertical

GUARD = 1.25
_NOISE = 1.0 + 1e-9


class BucketContext(NamedTuple):
    """What the size of one resource depends on besides its ladder."""

    current: int
    replicas: int  # new
    growing: bool  # every total grows or stays
    overloaded: bool
    uncapped: bool  # no more replicas can be had, and the size may outgrow the bucket


def plan(rule: Buckets, vertical: Vertical, wishes: AxisWishes, steps: list[Step]) -> Plan:
    found = replica_needs(vertical, wishes)
    ladders = {axis: ladder(rule, axis, need.least) for axis, need in found.items()}
    if not any(ladders.values()):
        return horizontal_only(wishes, steps)
    totals = {axis: total(need, wishes, axis) for axis, need in found.items()}
    replicas = joint_replicas(_vote(found, ladders, wishes), wishes, steps)
    top = min(rule.buckets[-1].replicas_max, wishes.max_replicas)
    context = _context(wishes, replicas, found, totals, rule.grow_past_last and replicas >= top)
    sizes = {
        axis: _size(rule, need, totals[axis], ladders[axis], context, wishes, axis, steps)
        for axis, need in found.items()
    }
    if _paradox(rule, wishes, context, found, totals, sizes):
        steps.append(_step(RuleName.PARADOX, Axis.REPLICAS, replicas, wishes.current))
        return Plan(replicas=wishes.current, sizes=wishes.sizes, joint=True)
    if replicas != wishes.wanted:
        steps.append(_step(RuleName.BUCKETS, Axis.REPLICAS, wishes.wanted, replicas))
    return Plan(replicas=replicas, sizes=write(vertical, wishes, found, sizes, RuleName.BUCKETS, steps), joint=True)


def vote(rule: Buckets, vertical: Vertical, wishes: AxisWishes) -> int | None:
    """The replicas that the totals ask for, before any window; None where the buckets say nothing."""
    found = replica_needs(vertical, wishes)
    ladders = {axis: ladder(rule, axis, need.least) for axis, need in found.items()}
    if not any(ladders.values()):
        return None
    return _vote(found, ladders, wishes)


def _vote(found: dict[Axis, ReplicaNeed], ladders: dict[Axis, list[Rung]], wishes: AxisWishes) -> int:
    totals = {axis: total(need, wishes, axis) for axis, need in found.items()}
    return max(replicas_for(rungs, totals[axis], wishes.current) for axis, rungs in ladders.items() if rungs)


def shrinks(found: dict[Axis, ReplicaNeed], totals: dict[Axis, float], current: int) -> bool:
    """Down only if no total grows."""
    return all(totals[axis] <= need.present * current * _NOISE for axis, need in found.items())


def share(total: float, now: float, base: Margin, current: int, replicas: int) -> float:
    """What each replica gets. Each new one brings its base usage, each that goes takes it along (hvpa-v2)."""
    even = total / replicas
    if replicas == current:
        return even
    work = max(0.0, total - current * margin(base, now))
    return work / replicas + margin(base, even)


def sized(sizing: BucketSizing, even: float, need: ReplicaNeed, context: BucketContext) -> float:
    """The share, and what must not be taken away when replicas are added."""
    if sizing is BucketSizing.MAX_OF_VPA_AND_SHARE or context.overloaded:
        return max(even, need.target)
    if context.replicas <= context.current or sizing is BucketSizing.SHARE:
        return even
    if sizing is BucketSizing.NEVER_SHRINK:
        return max(even, need.present) if context.growing else even
    return max(even, min(need.target, GUARD * need.present))


def _context(
    wishes: AxisWishes, replicas: int, found: dict[Axis, ReplicaNeed], totals: dict[Axis, float], uncapped: bool
) -> BucketContext:
    growing = all(totals[axis] * _NOISE >= need.present * wishes.current for axis, need in found.items())
    return BucketContext(wishes.current, replicas, growing, wishes.overloaded, uncapped)


def _size(
    rule: Buckets,
    need: ReplicaNeed,
    total: float,
    rungs: list[Rung],
    context: BucketContext,
    wishes: AxisWishes,
    axis: Axis,
    steps: list[Step],
) -> float:
    base = rule.base.of(axis)
    even = share(total, need.present, base, context.current, context.replicas)
    wanted = followed(sized(rule.sizing, even, need, context), need, wishes)
    size = _within(rung_at(rungs, context.replicas), wanted, context.uncapped) if rungs else wanted
    if size != wanted:
        rule_name = RuleName.CAPPED_BY_BUCKET if size < wanted else RuleName.BUCKET_MINIMUM
        steps.append(_step(rule_name, axis, wanted, size))
    bounded = min(max(size, need.least), need.most)
    if bounded < size:
        steps.append(_step(RuleName.ALLOWED, axis, size, bounded))
    return bounded


def _within(rung: Rung, size: float, uncapped: bool) -> float:
    """What one of so many replicas may have; a bucket of one size has that size only."""
    return max(rung.least, size if uncapped else min(size, rung.high))


def _paradox(
    rule: Buckets,
    wishes: AxisWishes,
    context: BucketContext,
    found: dict[Axis, ReplicaNeed],
    totals: dict[Axis, float],
    sizes: dict[Axis, float],
) -> bool:
    """Scaling down to fewer but larger replicas waits until they need not be larger; only where there is an overlap."""
    if rule.overlap == Margins() or context.replicas >= wishes.current or not shrinks(found, totals, wishes.current):
        return False
    return all(size > found[axis].present * _NOISE for axis, size in sizes.items())


def _step(rule: RuleName, axis: Axis, before: float, after: float) -> Step:
    return Step(rule=rule, axis=axis, before=before, after=after)
