"""Cron windows: is a schedule at work now, and when will it be? Times in, UTC spans out.

A window is open unless its next start comes before its next end (both strictly after now), as Crane and
Kapacity have it: the start is inside, the end is not, and a window over midnight needs no special case.
Standard five fields, and what users write beyond them: `?`, `@daily`, `FRI-MON`. Daylight saving is cronsim's,
which follows Debian's cron: a start in the skipped hour comes right after it, one in the doubled hour comes once.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from trimtab.errors import InvalidInput

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
_WRAPPED = re.compile(r"([0-7])-([0-7])(/\d+)?")
_FIX = 'write five fields, such as "0 8 * * 1-5" (minute, hour, day, month, weekday)'


def active(start: str, end: str, zone: tzinfo, at: float) -> bool:
    """Whether the window is open at this moment (unix seconds)."""
    return not _next(start, zone, at) < _next(end, zone, at)


def spans(start: str, end: str, zone: tzinfo, begin: float, until: float) -> list[tuple[float, float]]:
    """The open stretches that touch [begin, until): a stretch that is open at `begin` starts there."""
    found: list[tuple[float, float]] = []
    moment = begin
    while moment < until:
        if not active(start, end, zone, moment):
            moment = _next(start, zone, moment)
            continue
        closes = _next(end, zone, moment)
        opened = found.pop()[0] if found and found[-1][1] == moment else moment
        found.append((opened, closes))
        moment = closes
    return found


def zone_of(name: str | None, path: str = "timezone") -> tzinfo:
    """An IANA zone. Nothing and "Local" mean UTC, which is what containers run in."""
    if name in (None, "", "Local", "UTC"):
        return UTC
    try:
        return ZoneInfo(str(name))
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise InvalidInput(path, name, 'timezone not valid: write an IANA name such as "Europe/Berlin"') from error


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


def _next(expression: str, zone: tzinfo, at: float) -> float:
    """The first moment strictly after `at`."""
    here = datetime.fromtimestamp(at, zone)
    return float(next(CronSim(translate(expression), here)).timestamp())
