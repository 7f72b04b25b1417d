"""DemandLog: the demand of each key. The last hour as it was observed, fifteen days as means of minutes.

A key costs 43 KB for the days and at most 12 KB for the hour; memory grows key by key and is freed with it. A minute's
mean is stored in two bytes: a logarithm in steps of a thousandth, so any value from 1e-9 to 1e19 is right to 0.05 %.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Sequence
from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trimtab.series import Floats, Frame, Series

Codes = NDArray[np.uint16]

HOLE, ZERO, LEAST, MOST = 0, 1, 2, 65535
_STEP = 0.001
_OFFSET = LEAST - round(log(1e-9) / _STEP)
_VALUES = np.exp((np.arange(MOST + 1) - _OFFSET) * _STEP)
_VALUES[[HOLE, ZERO]] = np.nan, 0.0

MINUTE_S = 60.0
DAY = 1440  # minutes
DAYS = 15
KEPT = DAYS * DAY

SPACING_S = 5.0  # an observation closer than this to the previous one is not kept as such (McNaughton's rule)
RECENT_S = 3600.0
EDGE_S = 60.0  # the longest tick: the observation before a window's edge is at most this much older
NEWEST = 80  # observations that say all about the last six minutes
HOLE_S = 2 * EDGE_S  # a longer gap between our observations may be filled from another source
_HAIR = 1e-6
LACKING = 0.05  # of what there should be: scrapes fail, and servers restart


def code_of(value: float) -> int:
    """Encode one value; demand below zero is none."""
    return ZERO if value <= 0.0 else min(max(round(log(value) / _STEP) + _OFFSET, LEAST), MOST)


def codes_of(values: Floats) -> Codes:
    """Encode many; a value that is not finite is a hole."""
    known = np.isfinite(values)
    positive = known & (values > 0.0)
    logs = np.log(np.where(positive, values, 1.0)) / _STEP
    codes = np.where(positive, np.clip(np.rint(logs) + _OFFSET, LEAST, MOST), np.where(known, ZERO, HOLE))
    return codes.astype(np.uint16)


def values_of(codes: Codes) -> Floats:
    """Decode; holes are NaN."""
    values: Floats = _VALUES[codes]
    return values


class MinuteMeans:
    """One signal's codes by minute (unix seconds // 60), a day at a time: an hour of history costs one day."""

    __slots__ = ("_days",)

    def __init__(self) -> None:
        self._days: dict[int, Codes] = {}

    @property
    def first(self) -> int | None:
        """A minute not later than the oldest known one."""
        return min(self._days) * DAY if self._days else None

    def put(self, minute: int, code: int) -> None:
        self._day(minute // DAY)[minute % DAY] = code

    def fill(self, first: int, codes: Codes) -> bool:
        """Fill holes with codes read back, and return whether one was filled."""
        minutes, news = first + np.arange(len(codes)), False
        for day in np.unique(minutes[codes != HOLE] // DAY).tolist():
            known, inside = self._day(day), minutes // DAY == day
            places = minutes[inside] % DAY
            holes = (known[places] == HOLE) & (codes[inside] != HOLE)
            known[places[holes]] = codes[inside][holes]
            news = news or bool(holes.any())
        return news

    def codes_at(self, minutes: NDArray[np.int64]) -> Codes:
        """Return the codes of these minutes, in ascending order."""
        found: Codes = np.zeros(len(minutes), dtype=np.uint16)
        for day, codes in self._days.items():
            first, end = np.searchsorted(minutes, (day * DAY, (day + 1) * DAY))
            found[first:end] = codes[minutes[first:end] - day * DAY]
        return found

    def last_into(self, codes: Codes, end: int) -> None:
        """Copy the codes of the minutes before minute `end` to as many places; minutes without any stay as they are."""
        first = end - len(codes)
        for day in range(first // DAY, (end - 1) // DAY + 1):
            if (known := self._days.get(day)) is not None:
                left, right = max(first, day * DAY), min(end, (day + 1) * DAY)
                codes[left - first : right - first] = known[left - day * DAY : right - day * DAY]

    def _day(self, day: int) -> Codes:
        if day not in self._days:
            for old in [known for known in self._days if known < day - DAYS]:
                del self._days[old]
            self._days[day] = np.zeros(DAY, dtype=np.uint16)
        return self._days[day]


class _Row:
    __slots__ = ("count", "minute", "minutes", "times", "total", "values")

    def __init__(self) -> None:
        self.times, self.values = array("d"), array("d")
        self.minutes = MinuteMeans()
        self.minute, self.total, self.count = -1, 0.0, 0


class DemandLog:
    """Demand by key. Nothing here reads a clock: the time comes with every observation and every question."""

    def __init__(self) -> None:
        self._rows: dict[str, _Row] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, key: str) -> bool:
        return key in self._rows

    def note(self, at: float, key: str, demand: float) -> None:
        """Add one observation."""
        row = self._row(key)
        minute = int(at // MINUTE_S)
        if minute != row.minute:
            row.minute, row.total, row.count = minute, 0.0, 0
        row.total += demand
        row.count += 1
        row.minutes.put(minute, code_of(row.total / row.count))
        _append(row, at, demand)

    def recent(self, key: str, at: float, span_s: float) -> Series:
        """Return the observations of the last `span_s`, and the one before, so that both ends are covered."""
        row = self._rows.get(key)
        if row is None:
            return Series(np.empty(0), np.empty(0))
        edge = bisect_right(row.times, at - span_s + _HAIR) - 1
        first = max(edge, bisect_left(row.times, at - span_s - EDGE_S))
        last = bisect_right(row.times, at + _HAIR)
        return Series(np.array(row.times[first:last]), np.array(row.values[first:last]))

    def frame(self, keys: Sequence[str], at: float, step_s: float, span_s: float = KEPT * MINUTE_S) -> Frame:
        """Return means of bins of whole minutes, counted back from the minute of `at` to the oldest known one."""
        width, end = max(1, round(step_s / MINUTE_S)), int(at // MINUTE_S) + 1
        oldest = [row.minutes.first for key in keys if (row := self._rows.get(key))]
        kept = min(KEPT, round(span_s / MINUTE_S))
        first = max(end - kept, min((minute for minute in oldest if minute is not None), default=end))
        bins = -((first - end) // width)  # a part of a bin too, else its loss would depend on the other keys
        first = end - bins * width
        values, minutes = np.full((len(keys), bins), np.nan), first + np.arange(bins * width)
        for place, key in enumerate(keys):
            if (row := self._rows.get(key)) is not None:
                values[place] = bin_means(values_of(row.minutes.codes_at(minutes)), width)
        return Frame(tuple(keys), first * MINUTE_S, width * MINUTE_S, values)

    def last_minutes(self, keys: Sequence[str], end: int, count: int) -> Floats:
        """Return the means of the last minutes before minute `end` (unix seconds // 60), a row for each key."""
        codes = np.zeros((len(keys), count), dtype=np.uint16)
        for place, key in enumerate(keys):
            if (row := self._rows.get(key)) is not None:
                row.minutes.last_into(codes[place], end)
        return values_of(codes)

    def newest(self, key: str, at: float) -> tuple[Floats, Floats]:
        """Return times and demand of the newest observations up to `at`, of six minutes at least, oldest first."""
        row = self._rows.get(key)
        if row is None:
            return np.empty(0), np.empty(0)
        last = len(row.times) if not row.times or row.times[-1] <= at + _HAIR else bisect_right(row.times, at + _HAIR)
        first = max(0, last - NEWEST)
        return np.array(row.times[first:last]), np.array(row.values[first:last])

    def restore(self, key: str, past: Series, step_s: float) -> bool:
        """Add history from another source; each value stands for the `step_s` before it. Our own observations stay.

        Return whether anything was new.
        """
        row, known = self._row(key), np.isfinite(past.values)
        if not known.any():
            return False
        news = row.minutes.fill(*_minutes(past.times[known], past.values[known], step_s))
        if step_s <= EDGE_S:
            news = _insert(row, past.times[known], past.values[known]) or news
        return news

    def restore_observations(self, key: str, past: Series) -> None:
        """Add what another leader observed, as if it had been noted here; our own observations stay."""
        known = np.isfinite(past.values)
        if known.any():
            past = Series(past.times[known], past.values[known])
            row, minutes = self._row(key), (past.times // MINUTE_S).astype(np.int64)
            firsts = np.flatnonzero(np.diff(minutes, prepend=-1))
            means = np.add.reduceat(past.values, firsts) / np.diff(firsts, append=len(minutes))
            codes = np.zeros(int(minutes[-1] - minutes[0]) + 1, dtype=np.uint16)
            codes[minutes[firsts] - minutes[0]] = codes_of(means)
            row.minutes.fill(int(minutes[0]), codes)
            _insert(row, past.times, past.values)

    def known_minutes(self, key: str, first: int, count: int) -> NDArray[np.bool_]:
        """Return which of `count` minutes from `first` on (unix seconds // 60) are known."""
        row = self._rows.get(key)
        if row is None:
            return np.zeros(count, dtype=bool)
        known: NDArray[np.bool_] = row.minutes.codes_at(first + np.arange(count)) != HOLE
        return known

    def forget(self, keys: Collection[str]) -> None:
        for key in keys:
            self._rows.pop(key, None)

    def _row(self, key: str) -> _Row:
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = _Row()
        return row


def _append(row: _Row, at: float, demand: float) -> None:
    times, values = row.times, row.values
    while times and times[-1] >= at + SPACING_S:  # the clock was set back
        times.pop()
        values.pop()
    if times and at - times[-1] < SPACING_S - _HAIR:
        return
    times.append(at)
    values.append(demand)
    if times[0] < at - 1.25 * RECENT_S:  # not one by one: a cut moves all that stay
        gone = bisect_left(times, at - RECENT_S - EDGE_S)
        del times[:gone]
        del values[:gone]


def _minutes(times: Floats, values: Floats, step_s: float) -> tuple[int, Codes]:
    """Return the first minute, and the codes from there on."""
    width, coded = max(1, round(step_s / MINUTE_S)), codes_of(values)
    ends = np.ceil(times / MINUTE_S).astype(np.int64)
    first = max(int(ends[0]) - width, int(ends[-1]) - KEPT)
    codes = np.zeros(int(ends[-1]) - first, dtype=np.uint16)
    for back in range(width, 0, -1):
        places = ends - back - first
        codes[places[places >= 0]] = coded[places >= 0]
    return first, codes


def _insert(row: _Row, times: Floats, values: Floats) -> bool:
    """Add values before our first observation, after the last, and in gaps between them."""
    ours = np.array(row.times)
    place = np.searchsorted(ours, times)
    before, after = np.append(-np.inf, ours)[place], np.append(ours, np.inf)[place]
    free = (after - before > HOLE_S) & (times - before >= SPACING_S) & (after - times >= SPACING_S)
    newest = max(float(times[-1]), row.times[-1] if row.times else -np.inf)
    chosen = free & (times >= newest - RECENT_S - EDGE_S)
    row.times = array("d", np.insert(ours, place[chosen], times[chosen]))
    row.values = array("d", np.insert(np.array(row.values), place[chosen], values[chosen]))
    return bool(chosen.any())


def bin_means(values: Floats, width: int) -> Floats:
    """Return the mean of each `width` values along the last axis, without holes; NaN where all are holes."""
    parts = values.reshape(*values.shape[:-1], -1, width)
    present = np.isfinite(parts)
    with np.errstate(invalid="ignore", divide="ignore"):
        means: Floats = np.where(present, parts, 0.0).sum(axis=-1) / present.sum(axis=-1)
    return means


class AskedPast(NamedTuple):
    """A query made at `at`. `late_s` is how old the newest point may be, `born` when the workload was created."""

    at: float
    span_s: float
    step_s: float
    late_s: float
    born: float

    def enough(self, found_s: float, wanted_s: float) -> bool:
        return found_s >= wanted_s * (1.0 - LACKING) - self.late_s


def is_whole(past: Series, asked: AskedPast, known: DemandLog, key: str) -> bool:
    """Return whether the history is recent, reaches back far enough, and has every minute that we observed."""
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
