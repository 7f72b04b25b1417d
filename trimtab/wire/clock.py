"""Durations that neither a step of the wall clock nor a suspended machine can bend."""

from __future__ import annotations

import time


def since_boot() -> float:
    """Seconds that go on while the machine sleeps, where the platform counts them; else the monotonic clock."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()
