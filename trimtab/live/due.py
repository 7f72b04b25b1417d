"""due: when the next tick is."""

from __future__ import annotations


def next_due(due: float, period_s: float, now: float) -> float:
    """A period after the last one was due, so that waking late does not add up; a tick that was missed stays missed.

    Ticks bear the time at which they were due, not at which they woke: a rate or a window of one period ends with the
    next tick, as in HPA, and not by chance a tick later. A clock that was set back makes nobody wait for it.
    """
    return min(max(due + period_s, now), now + period_s)
