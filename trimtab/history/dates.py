"""Times as files write them, in unix seconds: numbers, ISO 8601, and dates with slashes, dots or a month's name.

02/11/2026 is in November for some and in February for others. The whole column says which: no month is above 12, and
where days have several samples each, most days of a file are there. What stays open is refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime

import numpy as np

from trimtab.errors import InvalidInput
from trimtab.series import Floats

AS_TIME = "write unix seconds or ISO 8601 such as 2026-11-15T12:00:00Z, the same way in all rows"
EITHER_WAY = "this may be day/month/year or month/day/year: write 2026-11-15 instead"
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
SLASHED = re.compile(r"\s*(\d{1,2})[/-](\d{1,2})[/-](\d{4})")
YEAR_FIRST = re.compile(r"(\d{4})/(\d{1,2})/(\d{1,2})")
DAY_FIRST = re.compile(r"(?:[A-Za-z]+, )?(\d{1,2})(?:\.(\d{1,2})\.|[ -]([A-Za-z]{3})[ -])(\d{4})")
CLOCK = re.compile(r",?[ T]+(\d{1,2}):(\d\d)(:\d\d)?(\.\d+)?(?: ?([AaPp])[Mm])?")
UTC_NAME = re.compile(r" ?(?:UTC|GMT)$")
NOON = LAST_MONTH = 12


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def is_time(text: str) -> bool:
    return is_number(text) or _moment(text, SLASHED.match(text) is not None) is not None


def read_times(path: str, texts: Sequence[str], rows: Sequence[int]) -> Floats:
    """All as numbers, or all as dates; without a zone they are UTC."""
    try:
        return np.array(texts, dtype=np.float64)
    except ValueError:
        day_first = _day_first(path, texts, rows)
    moments = [float(text) if is_number(text) else _moment(text, day_first) for text in texts]
    if None in moments:
        wrong = moments.index(None)
        raise InvalidInput(f"{path} row {rows[wrong]}", texts[wrong], AS_TIME)
    return np.array(moments, dtype=np.float64)


def _day_first(path: str, texts: Sequence[str], rows: Sequence[int]) -> bool:
    """Of dates with slashes; False where there are none. The first that can be read only one way decides."""
    matches = [SLASHED.match(text) for text in texts]
    dates = [(int(match[1]), int(match[2]), int(match[3])) for match in matches if match]
    dates = [(first, second, year) for first, second, year in dates if first and second and year]
    decisive = next(
        (first > LAST_MONTH for first, second, _ in dates if (first > LAST_MONTH) != (second > LAST_MONTH)), None
    )
    if decisive is not None or all(first == second for first, second, _ in dates):
        return bool(decisive)
    ways = [way for way in (False, True) if _most_days_are_there(dates, way)]
    if len(ways) != 1 or len(dates) < 2 * len(set(dates)):
        row = next(row for row, match in enumerate(matches) if match)
        raise InvalidInput(f"{path} row {rows[row]}", texts[row], EITHER_WAY)
    return ways[0]


def _most_days_are_there(dates: Sequence[tuple[int, int, int]], day_first: bool) -> bool:
    turned = {(year, second, first) if day_first else (year, first, second) for first, second, year in dates}
    days = [date(*each).toordinal() for each in turned if max(each[1:]) <= LAST_MONTH]
    return 2 * len(days) > max(days, default=0) - min(days, default=0)


def _moment(text: str, day_first: bool) -> float | None:
    """A date as unix seconds."""
    text = UTC_NAME.sub("", text.strip())
    for written in (text, _iso(text, day_first)):
        try:
            at = datetime.fromisoformat(written)
        except ValueError:
            continue
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    return None


def _iso(text: str, day_first: bool) -> str:
    """The same in ISO 8601, for what people and spreadsheets write otherwise."""
    text = SLASHED.sub(r"\3-\2-\1" if day_first else r"\3-\1-\2", text)
    text = DAY_FIRST.sub(
        lambda match: f"{match[4]}-{match[2] or _month(match[3])}-{match[1]}", YEAR_FIRST.sub(r"\1-\2-\3", text)
    )
    day, space, clock = text.partition(" ")
    day = "-".join(part.zfill(2) for part in day.rstrip(",").split("-"))
    return day + CLOCK.sub(_clock, space + clock)


def _month(text: str) -> str:
    return str(MONTHS.index(text.lower()) + 1) if text.lower() in MONTHS else text


def _clock(match: re.Match[str]) -> str:
    hour = int(match[1])
    if match[5]:
        hour = hour % NOON + (NOON if match[5] in "Pp" else 0)
    return f" {hour:02}:{match[2]}{match[3] or ''}{match[4] or ''}"
