"""The two questions about time: what it is for people, and how much of it has passed."""

from __future__ import annotations

import time
from typing import Protocol

DRIFT_S = 1.0  # between two looks


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


class SteadyTime:
    """Notices when the wall clock is set."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._apart = clock, clock.now() - clock.since_boot()

    def set_by(self) -> float:
        """Seconds by which it was set since the last call; 0.0 while it only drifts."""
        apart = self._clock.now() - self._clock.since_boot()
        by_s, self._apart = apart - self._apart, apart
        return by_s if abs(by_s) > DRIFT_S else 0.0


SYSTEM = SystemClock()
