"""DemandLog: what each key demanded. The last hour as it was observed, fifteen days as means of minutes.

A key costs 43 KB for the days and at most 12 KB for the hour; memory grows key by key and is given back with it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from trimtab.core.demand.codes import HOLE, Codes, code_of, codes_of, values_of
from trimtab.core.demand.minutes import KEPT, MINUTE_S, MinuteMeans
from trimtab.series import Floats, Frame, Series

SPACING_S = 5.0  # an observation closer than this to the one before is not kept as such (document 003)
RECENT_S = 3600.0
EDGE_S = 60.0  # the longest tick: the observation before a window's edge is at most this much older
HOLE_S = 2 * EDGE_S  # between two observations of ours: somebody else may have watched meanwhile
_HAIR = 1e-6


class _Row:
    __slots__ = ("count", "minute", "minutes", "times", "total", "values")

    def __init__(self) -> None:
        self.times, self.values = array("d"), array("d")
        self.minutes = MinuteMeans()
        self.minute, self.total, self.count = -1, 0.0, 0


class DemandLog:
    """Demand by key. Nothing here asks the time: it comes with every observation and every question."""

    def __init__(self) -> None:
        self._rows: dict[str, _Row] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, key: str) -> bool:
        return key in self._rows

    @property
    def bytes_kept(self) -> int:
        each = (16 * len(row.times) + row.minutes.bytes_kept for row in self._rows.values())
        return sum(each)

    def note(self, at: float, key: str, demand: float) -> None:
        """One observation."""
        row = self._row(key)
        minute = int(at // MINUTE_S)
        if minute != row.minute:
            row.minute, row.total, row.count = minute, 0.0, 0
        row.total += demand
        row.count += 1
        row.minutes.put(minute, code_of(row.total / row.count))
        _append(row, at, demand)

    def recent(self, key: str, at: float, span_s: float) -> Series:
        """The observations of the last `span_s` as they came, and the one before, so that both ends are covered."""
        row = self._rows.get(key)
        if row is None:
            return Series(np.empty(0), np.empty(0))
        edge = bisect_right(row.times, at - span_s + _HAIR) - 1
        first = max(edge, bisect_left(row.times, at - span_s - EDGE_S))
        last = bisect_right(row.times, at + _HAIR)
        return Series(np.array(row.times[first:last]), np.array(row.values[first:last]))

    def frame(self, keys: Sequence[str], at: float, step_s: float, span_s: float = KEPT * MINUTE_S) -> Frame:
        """Means of bins counted back from the minute of `at`, as far as anything is known; whole minutes to a bin."""
        width, end = max(1, round(step_s / MINUTE_S)), int(at // MINUTE_S) + 1
        oldest = [row.minutes.first for key in keys if (row := self._rows.get(key))]
        kept = min(KEPT, round(span_s / MINUTE_S))
        first = max(end - kept, min((minute for minute in oldest if minute is not None), default=end))
        bins = -((first - end) // width)  # a part of a bin too, else its loss would depend on the other keys
        first = end - bins * width
        values = np.empty((len(keys), bins))
        for place, key in enumerate(keys):
            row = self._rows.get(key)
            values[place] = np.nan if row is None else _means(values_of(row.minutes.codes(first, bins * width)), width)
        return Frame(tuple(keys), first * MINUTE_S, width * MINUTE_S, values)

    def at_minutes(self, keys: Sequence[str], minutes: NDArray[np.int64]) -> Floats:
        """The means of single minutes (unix seconds // 60, ascending), a row for each key."""
        codes = np.zeros((len(keys), len(minutes)), dtype=np.uint16)
        for place, key in enumerate(keys):
            if (row := self._rows.get(key)) is not None:
                codes[place] = row.minutes.codes_at(minutes)
        return values_of(codes)

    def restore(self, key: str, past: Series, step_s: float) -> bool:
        """A past that somebody else kept; each value stands for the `step_s` before it. What we saw ourselves stays.

        Whether there was anything new in it.
        """
        row, known = self._row(key), np.isfinite(past.values)
        if not known.any():
            return False
        news = row.minutes.fill(*_minutes(past.times[known], past.values[known], step_s))
        if step_s <= EDGE_S:
            news = _insert(row, past.times[known], past.values[known]) or news
        return news

    def known_minutes(self, key: str, first: int, count: int) -> NDArray[np.bool_]:
        """Which of `count` minutes from `first` on (unix seconds // 60) are known."""
        row = self._rows.get(key)
        return np.zeros(count, dtype=bool) if row is None else row.minutes.codes(first, count) != HOLE

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
    """The first minute, and the codes from there on."""
    width, coded = max(1, round(step_s / MINUTE_S)), codes_of(values)
    ends = np.ceil(times / MINUTE_S).astype(np.int64)
    first = max(int(ends[0]) - width, int(ends[-1]) - KEPT)
    codes = np.zeros(int(ends[-1]) - first, dtype=np.uint16)
    for back in range(width, 0, -1):
        places = ends - back - first
        codes[places[places >= 0]] = coded[places >= 0]
    return first, codes


def _insert(row: _Row, times: Floats, values: Floats) -> bool:
    """Where we saw nothing ourselves: before our first observation, after the last, and in holes between them."""
    ours = np.array(row.times)
    place = np.searchsorted(ours, times)
    before, after = np.append(-np.inf, ours)[place], np.append(ours, np.inf)[place]
    free = (after - before > HOLE_S) & (times - before >= SPACING_S) & (after - times >= SPACING_S)
    newest = max(float(times[-1]), row.times[-1] if row.times else -np.inf)
    chosen = free & (times >= newest - RECENT_S - EDGE_S)
    row.times = array("d", np.insert(ours, place[chosen], times[chosen]))
    row.values = array("d", np.insert(np.array(row.values), place[chosen], values[chosen]))
    return bool(chosen.any())


def _means(minutes: Floats, width: int) -> Floats:
    if width == 1:
        return minutes
    parts = minutes.reshape(-1, width)
    present = np.isfinite(parts)
    with np.errstate(invalid="ignore", divide="ignore"):
        means: Floats = np.where(present, parts, 0.0).sum(axis=1) / present.sum(axis=1)
    return means
