"""night_time: when it is night for a workload, in its own time zone."""

from __future__ import annotations

from datetime import date, datetime
from functools import cache
from zoneinfo import ZoneInfo

FIRST_HOUR, LAST_HOUR = 2, 5  # from two o'clock on, before five: an operator that comes later waits for the next


@cache
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)


def night_of(at: float, timezone: str) -> date | None:
    """Which night it is; None by day. Where the clock jumps over two o'clock it begins at three."""
    local = datetime.fromtimestamp(at, _zone(timezone))
    return local.date() if FIRST_HOUR <= local.hour < LAST_HOUR else None
