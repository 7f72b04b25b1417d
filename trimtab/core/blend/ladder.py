"""ladder: buckets divided linearly, one rung for each replica count with the sizes that belong to it.

In a bucket of n replica counts, step = (most - least) / n, and the rung of r replicas ends at
least + (r - rmin + 1) * step for each, so r replicas hold a total of at most r times that (HVPA buckets). A rung begins
where the total of the one below ended, lowered by the overlap; so there are no gaps, even where buckets leave one:
such a total has replicas of the upper bucket's minimum.
"""

from __future__ import annotations

from typing import NamedTuple

from trimtab.policy import Axis, Bucket, Buckets, Margin

_EDGE = 1.0 + 1e-9  # edges are inclusive, whatever binary fractions say


class Rung(NamedTuple):
    """How large each of r replicas may be: low < total / r <= high."""

    replicas: int
    low: float
    high: float
    least: float = 0.0  # the minimum its bucket writes down
    fixed: bool = False  # least == most: replicas of this size, and no other


def ladder(rule: Buckets, axis: Axis, least: float) -> list[Rung]:
    """All rungs, from the fewest replicas up; none where the buckets leave the resource out."""
    if any(bucket.most.amount(axis) is None for bucket in rule.buckets):
        return []
    overlap = rule.overlap.of(axis)
    rungs: list[Rung] = []
    for bucket in rule.buckets:
        rungs += _divide(bucket, axis, overlap, rungs[-1] if rungs else None, least)
    return rungs


def replicas_for(rungs: list[Rung], total: float, current: int) -> int:
    """The count in force while its rung holds the total, else the fewest that do; the last above all rungs."""
    for rung in rungs:
        if rung.replicas == current and rung.replicas * rung.low < total <= rung.replicas * rung.high * _EDGE:
            return current
    fitting = (rung.replicas for rung in rungs if total <= rung.replicas * rung.high * _EDGE)
    return next(fitting, rungs[-1].replicas)


def rung_at(rungs: list[Rung], replicas: int) -> Rung:
    """The rung of a count, or the nearest below it (counts between two buckets belong to the lower one)."""
    return next((rung for rung in reversed(rungs) if rung.replicas <= replicas), rungs[0])


def margin(margin_rule: Margin, of: float) -> float:
    return max(margin_rule.percent / 100.0 * of, margin_rule.value)


def _divide(bucket: Bucket, axis: Axis, overlap: Margin, below: Rung | None, least: float) -> list[Rung]:
    low, high, fixed = _ends(bucket, axis, overlap, below, least)
    step = (high - low) / (bucket.replicas_max - bucket.replicas_min + 1)
    rungs: list[Rung] = []
    for nth, replicas in enumerate(range(bucket.replicas_min, bucket.replicas_max + 1), start=1):
        begin = low if below is None else min(_after(below, replicas, overlap), low if nth == 1 else high)
        below = Rung(replicas, begin, low + nth * step, bucket.least.amount(axis) or 0.0, fixed)
        rungs.append(below)
    return rungs


def _ends(bucket: Bucket, axis: Axis, overlap: Margin, below: Rung | None, least: float) -> tuple[float, float, bool]:
    """Where the division starts and ends. An open minimum continues the bucket below, its overlap included
    (hvpa-v2)."""
    low, high = bucket.least.amount(axis), bucket.most.amount(axis)
    assert high is not None
    if low is None:
        return least if below is None else _after(below, bucket.replicas_min, overlap), high, False
    return low, high, low == high


def _seam(below: Rung, replicas: int) -> float:
    """The size at which this many replicas have the total at which the rung below ends."""
    return below.high * below.replicas / replicas


def _after(below: Rung, replicas: int, overlap: Margin) -> float:
    seam = _seam(below, replicas)
    return seam - margin(overlap, seam)
