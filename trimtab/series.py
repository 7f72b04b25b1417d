"""Time series as values: one Series, and a Frame of many on one grid for batched mathematics."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trimtab.errors import InvalidInput, NotEnoughData

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Series:
    """One series: strictly increasing unix seconds and a value at each of them."""

    times: Floats
    values: Floats

    def __post_init__(self) -> None:
        if self.times.shape != self.values.shape or self.times.ndim != 1:
            raise InvalidInput("series", self.times.shape, "give one time for each value")
        if len(self.times) > 1 and not bool(np.all(np.diff(self.times) > 0)):
            row = int(np.argmax(np.diff(self.times) <= 0)) + 1
            raise InvalidInput(
                f"series row {row}", float(self.times[row]), "timestamps must increase; sort and deduplicate them"
            )

    def __len__(self) -> int:
        return len(self.times)

    def since(self, start: float) -> Series:
        """The part that is not older than `start`."""
        first = int(np.searchsorted(self.times, start))
        return Series(self.times[first:], self.values[first:])


@dataclass(frozen=True, eq=False)
class Frame:
    """Many series on one regular grid: values[i, t] belongs to names[i] at start + t * step_s; NaN is a hole."""

    names: tuple[str, ...]
    start: float
    step_s: float
    values: Floats

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or self.values.shape[0] != len(self.names):
            raise InvalidInput("frame", self.values.shape, "give one row for each name")
        if not self.step_s > 0:
            raise InvalidInput("frame.step_s", self.step_s, "the step must be positive")

    @property
    def times(self) -> Floats:
        return self.start + self.step_s * np.arange(self.values.shape[1], dtype=np.float64)

    @property
    def end(self) -> float:
        """The moment after the last step."""
        return self.start + self.step_s * int(self.values.shape[1])

    def row(self, index: int) -> Series:
        """One series without its holes."""
        present = np.isfinite(self.values[index])
        return Series(self.times[present], self.values[index][present])

    def tail(self, steps: int) -> Frame:
        """The newest `steps` columns."""
        keep = min(steps, self.values.shape[1])
        first = self.values.shape[1] - keep
        return Frame(self.names, self.start + first * self.step_s, self.step_s, self.values[:, first:])


def grid(series: list[Series], names: tuple[str, ...], step_s: float) -> Frame:
    """Lay series on one grid: each sample falls into the step that contains it, the last one there wins."""
    if not series or all(len(member) == 0 for member in series):
        raise NotEnoughData("no samples to lay on a grid: widen the time range or check the query")
    start = min(float(member.times[0]) for member in series if len(member))
    start -= start % step_s
    end = max(float(member.times[-1]) for member in series if len(member))
    values = np.full((len(series), int((end - start) // step_s) + 1), np.nan)
    for row, member in zip(values, series, strict=True):
        row[((member.times - start) // step_s).astype(np.intp)] = member.values
    return Frame(names, start, step_s, values)
