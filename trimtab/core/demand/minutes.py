"""The mean of every minute of the last fifteen days, a day at a time: who was seen for an hour costs one day."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trimtab.core.demand.codes import HOLE, Codes

MINUTE_S = 60.0
DAY = 1440  # minutes
DAYS = 15
KEPT = DAYS * DAY


class MinuteMeans:
    """One signal's codes by minute (unix seconds // 60)."""

    __slots__ = ("_days",)

    def __init__(self) -> None:
        self._days: dict[int, Codes] = {}

    @property
    def first(self) -> int | None:
        """Not later than the oldest minute that is known."""
        return min(self._days) * DAY if self._days else None

    @property
    def bytes_kept(self) -> int:
        return sum(codes.nbytes for codes in self._days.values())

    def put(self, minute: int, code: int) -> None:
        self._day(minute // DAY)[minute % DAY] = code

    def fill(self, first: int, codes: Codes) -> bool:
        """A past that was read back; what is known already stays. Whether a hole was filled."""
        minutes, news = first + np.arange(len(codes)), False
        for day in np.unique(minutes[codes != HOLE] // DAY).tolist():
            known, inside = self._day(day), minutes // DAY == day
            places = minutes[inside] % DAY
            holes = (known[places] == HOLE) & (codes[inside] != HOLE)
            known[places[holes]] = codes[inside][holes]
            news = news or bool(holes.any())
        return news

    def codes(self, first: int, count: int) -> Codes:
        """Those of `count` minutes from `first` on."""
        found: Codes = np.zeros(count, dtype=np.uint16)
        for day, codes in self._days.items():
            start, end = max(first, day * DAY), min(first + count, (day + 1) * DAY)
            if start < end:
                found[start - first : end - first] = codes[start - day * DAY : end - day * DAY]
        return found

    def codes_at(self, minutes: NDArray[np.int64]) -> Codes:
        """Those of single minutes, ascending."""
        found: Codes = np.zeros(len(minutes), dtype=np.uint16)
        for day, codes in self._days.items():
            first, end = np.searchsorted(minutes, (day * DAY, (day + 1) * DAY))
            found[first:end] = codes[minutes[first:end] - day * DAY]
        return found

    def _day(self, day: int) -> Codes:
        if day not in self._days:
            for old in [known for known in self._days if known < day - DAYS]:
                del self._days[old]
            self._days[day] = np.zeros(DAY, dtype=np.uint16)
        return self._days[day]
