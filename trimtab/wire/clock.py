"""The two questions about time: what it is for people, and how much of it has passed."""

from __future__ import annotations

import time
from collections import deque
from datetime import UTC, datetime
from statistics import median
from typing import Protocol

DRIFT_S = 1.0  # between two looks
EXACT_S = 2.0  # an HTTP date has whole seconds, and answers take some time
LARGE_S = 30.0  # a clock that is wrong by more is left alone as soon as another operator can lead
ANSWERS, ENOUGH = 5, 3  # dates whose median counts, and how many of them say that a clock is wrong by much
SLOWEST_S = 2.0  # the date of an answer that took longer says too little: half of it may be our mistake
YOUNGEST_S, OLDEST_S = -10.0, 300.0  # ages of samples that a right clock may see
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


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


class ServerClock:
    """This machine's clock, corrected by the dates of the API server's answers.

    offset = median of (Date + 0.5 s - middle of request and answer) over the last answers, by the clock since boot: a
    step of the wall clock changes nothing here. An offset of at most 2 s is none. Pods, Leases and samples carry the
    cluster's time, so that a node with a wrong clock would take all of them for stale.

    If samples are fresh by our own clock and by the API server's are not, it is the API server's that is wrong.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.since_boot = clock.since_boot  # asked for many times in a tick
        self._apart: deque[float] = deque(maxlen=ANSWERS)  # of the API server's clock and ours since boot
        self._median = 0.0
        self._unfit = False
        self.server_is_wrong = False
        self.samples_ahead_s = 0.0  # how far samples lie in the future by every clock we know
        self._sampled_at: float | None = None

    def now(self) -> float:
        own = self._clock.now()
        if not self._apart or self.server_is_wrong:
            return own
        cluster = self.since_boot() + self._median
        return cluster if abs(cluster - own) > EXACT_S else own

    @property
    def offset_s(self) -> float:
        """By how much the API server's clock is ahead of this machine's; 0.0 while they agree."""
        if not self._apart:
            return 0.0
        off_s = self.since_boot() + self._median - self._clock.now()
        return off_s if abs(off_s) > EXACT_S else 0.0

    @property
    def unfit(self) -> bool:
        """Whether another operator should lead: wrong by much, until it is right again."""
        off_s = 0.0 if self.server_is_wrong or len(self._apart) < ENOUGH else abs(self.offset_s)
        self._unfit = off_s > LARGE_S or (self._unfit and off_s > 0)
        return self._unfit

    @property
    def trouble(self) -> str:
        """What is wrong and what was done about it; "" while all clocks agree."""
        if self.samples_ahead_s:
            return (
                f"samples are dated {_about(self.samples_ahead_s)} in the future: synchronize the clocks of the nodes, "
                "above all that of the metrics server (NTP)"
            )
        if not (off_s := self.offset_s):
            return ""
        if self.server_is_wrong:
            way = "ahead of" if off_s > 0 else "behind"
            return f"the API server's clock is {_about(off_s)} {way} ours and that of the samples: ours is used"
        way = "behind" if off_s > 0 else "ahead of"
        return (
            f"the clock of the operator's node is {_about(off_s)} {way} the API server's: its times are corrected; "
            "synchronize it (NTP)"
        )

    def heard(self, sent: float, date: str | None) -> None:
        """An answer came: when its request was sent, by the clock since boot, and its Date."""
        received, dated = self.since_boot(), http_date(date)
        if dated is None or received - sent > SLOWEST_S:
            return
        middle = (sent + received) / 2
        if abs(dated + 0.5 - middle + received - self._clock.now()) <= EXACT_S:
            self._apart.clear()  # they agree, whatever was before: somebody has set one of them right
        self._apart.append(dated + 0.5 - middle)
        self._median = median(self._apart)

    def compare(self, sampled_at: float) -> None:
        """Compare with the date of new samples; the same samples again may be old for another reason."""
        before, self._sampled_at = self._sampled_at, sampled_at
        if before is None or sampled_at <= before:
            return
        off_s = self.offset_s
        by_own = self._clock.now() - sampled_at
        by_server = by_own + off_s
        if not off_s:
            self.server_is_wrong = False
        elif _fresh(by_own) != _fresh(by_server):
            self.server_is_wrong = _fresh(by_own)
        oldest_s = max(by_own, by_server)
        self.samples_ahead_s = -oldest_s if oldest_s < YOUNGEST_S else 0.0

    def ahead(self) -> dict[str, float]:
        """By how many seconds each clock is ahead of those it was compared with."""
        own, server = (0.0, self.offset_s) if self.server_is_wrong else (-self.offset_s, 0.0)
        return {"operator": own, "apiserver": server, "samples": self.samples_ahead_s}


def http_date(text: str | None) -> float | None:
    """Read the one form in which servers write it, "Sun, 06 Nov 1994 08:49:37 GMT"; anything else is no date.

    Python's own reader takes all forms that mail knows, and is too slow for every renewal of a Lease.
    """
    if text is None or len(text) != 29 or not text.endswith(" GMT"):
        return None
    try:
        month, time_of_day = MONTHS.index(text[8:11]) + 1, text[17:25].split(":")
        hour, minute, second = map(int, time_of_day)
        return datetime(int(text[12:16]), month, int(text[5:7]), hour, minute, second, tzinfo=UTC).timestamp()
    except ValueError:
        return None


def _fresh(age_s: float) -> bool:
    return YOUNGEST_S <= age_s <= OLDEST_S


def _about(seconds: float) -> str:
    """In two digits: who repeats it does not say something new in every tick."""
    return f"{float(f'{abs(seconds):.2g}'):.0f} s"


SYSTEM = SystemClock()
