"""Cron windows: is a schedule at work now, and when will it be? Times in, UTC spans out.

A window is open unless its next start comes before its next end (both strictly after now), as Crane and
Kapacity have it: the start is inside, the end is not, and a window over midnight needs no special case.
Standard five fields, and what users write beyond them: `?`, `@daily`, `FRI-MON`. Daylight saving is cronsim's,
which follows Debian's cron: a start in the skipped hour comes right after it, one in the doubled hour comes once.
A window that lies in the skipped hour is empty: its start and end come together, in the order of the wall clock.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from trimtab.errors import InvalidInput

SATURDAY = 5
_NICKNAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_DAYS = {name: number for number, name in enumerate(("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"))}
_WRAPPED = re.compile(r"([0-7])-([0-7])(/[0-9]+)?")
MINUTE_S = 60.0
_FIX = 'write five fields, such as "0 8 * * 1-5" (minute, hour, day, month, weekday)'


class Moments:
    """The moments of one expression, passed once: ask with times that never go back."""

    def __init__(self, expression: str, zone: tzinfo, after: float) -> None:
        self._expression, self._zone = translate(expression), zone
        self._coming = CronSim(self._expression, datetime.fromtimestamp(after, zone))
        self._next = float(next(self._coming).timestamp())

    def after(self, at: float) -> float:
        """The first one strictly after `at`."""
        while self._next <= at:
            self._next = float(next(self._coming).timestamp())
        return self._next

    def on_the_wall(self, moment: float) -> datetime:
        """What the wall clock would show at this one of them, were no hour skipped right before it."""
        before = datetime.fromtimestamp(moment - MINUTE_S, self._zone).replace(tzinfo=None)
        return next(CronSim(self._expression, before))


def _next_starts(starts: Moments, ends: Moments, at: float) -> bool:
    """Whether a start comes next, so that the window is closed until then."""
    opens, closes = starts.after(at), ends.after(at)
    return opens < closes or (opens == closes and starts.on_the_wall(opens) < ends.on_the_wall(closes))


def active(start: str, end: str, zone: tzinfo, at: float) -> bool:
    """Whether the window is open at this moment (unix seconds)."""
    return not _next_starts(Moments(start, zone, at), Moments(end, zone, at), at)


def spans(start: str, end: str, zone: tzinfo, begin: float, until: float) -> list[tuple[float, float]]:
    """The open stretches that touch [begin, until): a stretch that is open at `begin` starts there."""
    found: list[tuple[float, float]] = []
    starts, ends, moment = Moments(start, zone, begin), Moments(end, zone, begin), begin
    while moment < until:
        if _next_starts(starts, ends, moment):
            moment = starts.after(moment)
            continue
        closes = ends.after(moment)
        opened = found.pop()[0] if found and found[-1][1] == moment else moment
        found.append((opened, closes))
        moment = closes
    return found


def times_per_day(expression: str) -> int:
    """On the busiest day there can be: every minute that is named, in every hour that is."""
    try:
        parsed = CronSim(translate(expression), datetime(2024, 1, 1, tzinfo=UTC))
    except InvalidInput:
        return 0  # refused by itself, with its path
    return len(parsed.minutes) * len(parsed.hours)


def zone_of(name: str | None, path: str = "timezone") -> tzinfo:
    """An IANA zone. Nothing and "Local" mean UTC, which is what containers run in."""
    if name in (None, "", "Local", "UTC"):
        return UTC
    try:
        return ZoneInfo(str(name))
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise InvalidInput(path, name, 'timezone not valid: write an IANA name such as "Europe/Berlin"') from error


@lru_cache(maxsize=512)
def translate(expression: str, path: str = "cron") -> str:
    """Five fields that cronsim understands; raises where no reading makes sense."""
    if not expression.strip():
        raise InvalidInput(path, expression, f"must not be empty: {_FIX}")
    fields = _NICKNAMES.get(expression.strip().lower(), expression).upper().split()
    if len(fields) != 5:
        raise InvalidInput(path, expression, _FIX)
    fields[2] = fields[2].replace("?", "*")
    fields[4] = _weekdays(fields[4].replace("?", "*"))
    plain = " ".join(fields)
    try:
        next(CronSim(plain, datetime(2024, 1, 1, tzinfo=UTC)))
    except CronSimError as error:
        raise InvalidInput(path, expression, f"{str(error).lower()}: {_FIX}") from error
    except StopIteration as error:
        raise InvalidInput(path, expression, "this date never comes; check day and month") from error
    return plain


def _weekdays(field: str) -> str:
    """Names as numbers, and ranges over the weekend as lists: FRI-MON is 5,6,0,1."""
    for name, number in _DAYS.items():
        field = field.replace(name, str(number))
    return _WRAPPED.sub(_unwrapped, field)


def _unwrapped(match: re.Match[str]) -> str:
    first, last, step = int(match[1]), int(match[2]), int((match[3] or "/1")[1:])
    if first <= last:
        return match[0]
    days = [day % 7 for day in range(first, last + 8, max(1, step))]
    return ",".join(str(day) for day in dict.fromkeys(days))


def is_weekend(at: float, timezone: str) -> bool:
    """Saturday or Sunday there."""
    return datetime.fromtimestamp(at, zone_of(timezone)).weekday() >= SATURDAY
