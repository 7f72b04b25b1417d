"""What the operator has seen itself: for each key a ring of the newest values on one time grid, in float32.

Memory = keys x steps x 4 bytes: a day at 15 s is 23 KB per key. One append per tick writes one column for all keys.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from trimtab.errors import InvalidInput
from trimtab.series import Frame

FIRST_ROWS = 64


class RingBuffer:
    """The newest `steps` values of every key; a step nobody wrote to is a hole, the last write in a step wins."""

    def __init__(self, step_s: float, steps: int) -> None:
        if not (step_s > 0 and steps > 0):
            raise InvalidInput("ring", f"{steps} steps of {step_s} s", "both must be positive")
        self.step_s, self.steps = step_s, steps
        self._rows: dict[str, int] = {}
        self._free: list[int] = []
        self._values: NDArray[np.float32] = np.full((FIRST_ROWS, steps), np.nan, dtype=np.float32)
        self._newest = -1  # the step (time // step_s) of the newest column; -1: nothing was written yet

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, key: str) -> bool:
        return key in self._rows

    def append(self, at: float, keys: Sequence[str], values: Sequence[float] | NDArray[np.floating]) -> None:
        """One value for each key at one time; older than the whole ring is forgotten at once."""
        step = math.floor(at / self.step_s)
        self._advance(step)
        if step > self._newest - self.steps:
            rows = self._rows_of(keys)
            self._values[rows, step % self.steps] = values

    def load(self, frame: Frame) -> None:
        """History read back at start; it must have the ring's own step."""
        if frame.step_s != self.step_s:
            raise InvalidInput("frame.step_s", frame.step_s, f"this ring has a step of {self.step_s:g} s")
        newest = round(frame.end / self.step_s) - 1
        self._advance(newest)
        recent = frame.tail(self.steps - (self._newest - newest))
        columns = (round(recent.start / self.step_s) + np.arange(recent.values.shape[1])) % self.steps
        self._values[self._rows_of(frame.names)[:, None], columns] = recent.values

    def forget(self, keys: Iterable[str]) -> None:
        """Keys that are gone give their rows to the next new ones."""
        for key in keys:
            row = self._rows.pop(key, None)
            if row is not None:
                self._values[row] = np.nan
                self._free.append(row)

    def frame(self, keys: Sequence[str] | None = None, steps: int | None = None) -> Frame:
        """The newest steps of these keys (all, without any) in the order of time; a key never seen is all holes."""
        names = tuple(self._rows if keys is None else keys)
        count = min(steps or self.steps, self.steps)
        first = self._newest - count + 1
        values = np.full((len(names), count), np.nan)
        known = [(place, self._rows[name]) for place, name in enumerate(names) if name in self._rows]
        if known and self._newest >= 0:
            places, rows = map(list, zip(*known, strict=True))
            columns = (first + np.arange(count)) % self.steps
            values[places] = self._values[np.asarray(rows)[:, None], columns]
        return Frame(names, first * self.step_s, self.step_s, values)

    def _advance(self, step: int) -> None:
        """Open the columns up to `step`: what they held is a whole ring old."""
        if step <= self._newest:
            return
        first = max(self._newest + 1, step - self.steps + 1) if self._newest >= 0 else step
        self._values[:, np.arange(first, step + 1) % self.steps] = np.nan
        self._newest = step

    def _rows_of(self, keys: Sequence[str]) -> NDArray[np.intp]:
        for key in keys:
            if key not in self._rows:
                self._rows[key] = self._free.pop() if self._free else self._new_row()
        return np.array([self._rows[key] for key in keys], dtype=np.intp)

    def _new_row(self) -> int:
        row = len(self._rows)  # without free rows, the used ones are the first ones
        if row == len(self._values):
            self._values = np.concatenate([self._values, np.full_like(self._values, np.nan)])
        return row
