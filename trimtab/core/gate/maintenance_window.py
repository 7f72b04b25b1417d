"""maintenance window: every day from begin to end, both included, in UTC; it may cross midnight.

A window that begins when it ends is one second long. No window where one is asked for is never open.
"""

from __future__ import annotations

from math import floor

from trimtab.policy import MaintenanceWindow

DAY_S = 86400


def contains(window: MaintenanceWindow | None, at: float) -> bool:
    if window is None:
        return False
    second = floor(at) % DAY_S
    if window.begin_s <= window.end_s:
        return window.begin_s <= second <= window.end_s
    return second >= window.begin_s or second <= window.end_s


def next_begin(window: MaintenanceWindow | None, at: float) -> float | None:
    """When a closed window opens again."""
    if window is None:
        return None
    midnight = floor(at) // DAY_S * DAY_S
    begin = midnight + window.begin_s
    return float(begin if begin > at else begin + DAY_S)
