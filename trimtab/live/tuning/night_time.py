"""night_time: when it is night for a workload, in its own time zone."""

from __future__ import annotations

from datetime import date, datetime
from functools import cache

from trimtab.kinds.cron import zone_of

FIRST_HOUR, LAST_HOUR = 2, 5  # from two o'clock on, before five: an operator that comes later waits for the next
_zone = cache(zone_of)


def night_of(at: float, timezone: str) -> date | None:
    """Which night it is; None by day. Where the clock jumps over two o'clock it begins at three."""
    local = datetime.fromtimestamp(at, _zone(timezone))
    return local.date() if FIRST_HOUR <= local.hour < LAST_HOUR else None
