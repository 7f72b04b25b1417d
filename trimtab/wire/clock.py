"""The two questions about time: what it is for people, and how much of it has passed."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Handed to whatever runs; nothing in `wire` and `live` asks another one (pauses are the event loop's)."""

    def now(self) -> float:
        """Seconds since 1970: for dates that others read. It may be set, forward and back."""

    def since_boot(self) -> float:
        """For durations: neither a step of the wall clock nor a suspended machine bends them."""


class SystemClock:
    def now(self) -> float:
        return time.time()

    def since_boot(self) -> float:
        """Goes on while the machine sleeps, where the platform counts that; else the monotonic clock."""
        if hasattr(time, "CLOCK_BOOTTIME"):
            return time.clock_gettime(time.CLOCK_BOOTTIME)
        return time.monotonic()


SYSTEM = SystemClock()
