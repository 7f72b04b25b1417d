"""remembered: whether a past that somebody else kept is all that a new operator would need of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trimtab.core.demand.log import DemandLog
from trimtab.core.demand.minutes import MINUTE_S
from trimtab.series import Series

LACKING = 0.05  # of what there should be: scrapes fail, and servers restart


class AskedPast(NamedTuple):
    """Asked at `at`; `late_s` is how old the newest point may be, `born` since when there may be anything."""

    at: float
    span_s: float
    step_s: float
    late_s: float
    born: float

    def enough(self, found_s: float, wanted_s: float) -> bool:
        return found_s >= wanted_s * (1.0 - LACKING) - self.late_s


def is_whole(past: Series, asked: AskedPast, known: DemandLog, key: str) -> bool:
    """It goes on, reaches back, and lacks nothing that we know."""
    times = past.times[np.isfinite(past.values)]
    if len(times) == 0 or asked.at - times[-1] > asked.late_s:
        return False
    if not asked.enough(asked.at - float(times[0]), min(asked.span_s, asked.at - asked.born)):
        return False
    count, end = round(asked.span_s / MINUTE_S), int(asked.at // MINUTE_S) + 1
    theirs = DemandLog()
    theirs.restore(key, past, asked.step_s)
    ours = known.known_minutes(key, end - count, count)
    both = ours & theirs.known_minutes(key, end - count, count)
    return asked.enough(MINUTE_S * float(both.sum()), MINUTE_S * float(ours.sum()))
