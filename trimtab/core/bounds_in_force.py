"""Which floor and ceiling hold at one moment. Schedules raise the floor or lower the ceiling while they run."""

from __future__ import annotations

from typing import NamedTuple

from trimtab.policy import Bounds


class BoundsInForce(NamedTuple):
    """The bounds in force at one moment, and the schedules they come from ("" : the usual bounds)."""

    least: int
    most: int
    least_from: str = ""
    most_from: str = ""


def bounds_at(bounds: Bounds, at: float) -> BoundsInForce:
    """Schedules only tighten, and the usual ceiling wins over a scheduled floor."""
    if not bounds.spans:
        return BoundsInForce(bounds.min_replicas, bounds.max_replicas)
    least, most, least_from, most_from = bounds.min_replicas, bounds.max_replicas, "", ""
    for span in bounds.spans:
        if not span.start <= at < span.end:
            continue
        if span.max_replicas is not None and span.max_replicas < most:
            most, most_from = span.max_replicas, span.name
        if span.min_replicas is not None and span.min_replicas > least:
            least, least_from = span.min_replicas, span.name
    most = max(most, bounds.min_replicas)
    return BoundsInForce(min(least, most), most, least_from, most_from)


def clamp(replicas: int, least: int, most: int) -> int:
    return max(least, min(most, replicas))
