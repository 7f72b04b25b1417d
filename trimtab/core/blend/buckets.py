"""Buckets (document 004): the total of each resource decides how many replicas, and these how large each one is.

total = max(vertical target * current replicas, current request * wanted replicas), for each resource;
replicas = the larger of what CPU and memory ask for on their ladders; size = total / replicas.
Guarded sizing: scaling out never leaves a replica less than min(vertical target, 1.25 * what it has). So both examples
of the document hold (3 x 8 cores; 3 x 6 GB against base usage), and a larger total never gets a smaller capacity.
"""

from __future__ import annotations

from typing import NamedTuple

from trimtab.core.blend.ladder import Rung, ladder, margin, replicas_for, rung_at
from trimtab.core.blend.replica import ReplicaNeed, replica_needs, write
from trimtab.core.blend.wishes import AxisWishes, clamped, horizontal_only
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
    last: bool  # no more replicas can be had, so the size may outgrow the bucket


def plan(rule: Buckets, vertical: Vertical, ask: AxisWishes, steps: list[Step]) -> Plan:
    found = replica_needs(vertical, ask)
    ladders = {axis: ladder(rule, axis, need.least) for axis, need in found.items()}
    if not any(ladders.values()):
        return horizontal_only(ask, steps)
    totals = {axis: total(need, ask) for axis, need in found.items()}
    votes = [replicas_for(rungs, totals[axis], ask.current) for axis, rungs in ladders.items() if rungs]
    replicas = clamped(max(votes), ask, steps)
    scene = _scene(ask, replicas, found, totals, max(rungs[-1].replicas for rungs in ladders.values() if rungs))
    sizes = {axis: _size(rule, need, totals[axis], ladders[axis], scene, axis, steps) for axis, need in found.items()}
    if _paradox(rule, ask, scene, found, totals, sizes):
        steps.append(_step(RuleName.PARADOX, Axis.REPLICAS, replicas, ask.current))
        return Plan(replicas=ask.current, sizes=ask.sizes, joint=True)
    if replicas != ask.wanted:
        steps.append(_step(RuleName.BUCKETS, Axis.REPLICAS, ask.wanted, replicas))
    return Plan(replicas=replicas, sizes=write(vertical, ask, found, sizes, RuleName.BUCKETS, steps), joint=True)


def total(need: ReplicaNeed, ask: AxisWishes) -> float:
    """The higher recommendation counts; without horizontal signals there is only the vertical one."""
    vertical = need.target * ask.current
    return max(vertical, need.present * ask.wanted) if ask.speaks_for else vertical


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


def sized(sizing: BucketSizing, even: float, need: ReplicaNeed, scene: BucketContext) -> float:
    """The share, and what must not be taken away when replicas are added."""
    if sizing is BucketSizing.MAX_OF_VPA_AND_SHARE or scene.overloaded:
        return max(even, need.target)
    if scene.replicas <= scene.current or sizing is BucketSizing.SHARE:
        return even
    if sizing is BucketSizing.NEVER_SHRINK:
        return max(even, need.present) if scene.growing else even
    return max(even, min(need.target, GUARD * need.present))


def _scene(
    ask: AxisWishes, replicas: int, found: dict[Axis, ReplicaNeed], totals: dict[Axis, float], top: int
) -> BucketContext:
    growing = all(totals[axis] * _NOISE >= need.present * ask.current for axis, need in found.items())
    return BucketContext(ask.current, replicas, growing, ask.overloaded, replicas >= min(top, ask.max_replicas))


def _size(
    rule: Buckets,
    need: ReplicaNeed,
    total: float,
    rungs: list[Rung],
    scene: BucketContext,
    axis: Axis,
    steps: list[Step],
) -> float:
    base = _of(rule.base, axis)
    even = share(total, need.present, base, scene.current, scene.replicas)
    wanted = sized(rule.sizing, even, need, scene)
    size = _capped(wanted, rung_at(rungs, scene.replicas), scene.last) if rungs else wanted
    if size < wanted:
        steps.append(_step(RuleName.CAPPED_BY_BUCKET, axis, wanted, size))
    bounded = min(max(size, need.least), need.most)
    if bounded < size:
        steps.append(_step(RuleName.ALLOWED, axis, size, bounded))
    return bounded


def _capped(size: float, rung: Rung, last: bool) -> float:
    """The cap of this replica count wins, except at the last, where only maxAllowed does."""
    if rung.fixed:
        return max(rung.high, size) if last else rung.high
    return size if last else min(size, rung.high)


def _paradox(
    rule: Buckets,
    ask: AxisWishes,
    scene: BucketContext,
    found: dict[Axis, ReplicaNeed],
    totals: dict[Axis, float],
    sizes: dict[Axis, float],
) -> bool:
    """Scaling down to fewer but larger replicas waits until they need not be larger; only where there is an overlap."""
    if rule.overlap == Margins() or scene.replicas >= ask.current or not shrinks(found, totals, ask.current):
        return False
    return all(size > found[axis].present * _NOISE for axis, size in sizes.items())


def _of(margins: Margins, axis: Axis) -> Margin:
    return margins.cpu if axis is Axis.CPU else margins.memory


def _step(rule: RuleName, axis: Axis, before: float, after: float) -> Step:
    return Step(rule=rule, axis=axis, before=before, after=after)
