"""Rows of a file (timestamp, value, series) as a Frame; what cannot be meant is refused with file and row.

Rows are counted as people see them: the header is row 1. A missing sample is a hole, not an error, until more
than half of a series is missing: then the step, or the file, is not what its owner thinks.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trimtab.errors import InvalidInput, NotEnoughData
from trimtab.history.source import Metric, Selection, time_grid
from trimtab.series import Floats, Frame

LATEST_S = 1e11  # the year 5138: a larger number is in a smaller unit
FIRST_ROW = 2


class Rows(NamedTuple):
    """The columns of one file, in its order."""

    times: Floats
    values: Floats
    series: NDArray[np.str_]


def to_frame(path: str, rows: Rows, step_s: float | None = None) -> Frame:
    """One row per series on a common grid; without `step_s` its step is the usual distance of two samples."""
    gaps = np.isnan(rows.values)  # a cell without a value is as a row that is not there
    if gaps.all():
        raise NotEnoughData(f"{path}: the file holds no samples")
    _refuse(path, rows.values, np.isinf(rows.values), "leave the row out where there is no value")
    _refuse(path, rows.values, rows.values < 0, "usage and load are never negative")
    unreal = ~((rows.times >= 0) & (rows.times < LATEST_S))
    _refuse(path, rows.times, unreal, "write times as unix seconds or as ISO 8601; these look like a smaller unit")
    series, member, counts = np.unique(rows.series, return_inverse=True, return_counts=True)
    rows_by_series = np.split(np.argsort(member, kind="stable"), np.cumsum(counts)[:-1])
    rows_by_series = [row_numbers[~gaps[row_numbers]] for row_numbers in rows_by_series]
    names = [str(name) for name, row_numbers in zip(series, rows_by_series, strict=True) if len(row_numbers)]
    rows_by_series = [row_numbers for row_numbers in rows_by_series if len(row_numbers)]
    for row_numbers in rows_by_series:
        _check_order(path, rows.times, row_numbers)
    step = step_s or usual_step([rows.times[row_numbers] for row_numbers in rows_by_series])
    for row_numbers in rows_by_series:  # before the grid is made: seconds over ten years would not fit anywhere
        _check_gaps(path, rows.times, row_numbers, step)
    start = np.floor(rows.times.min() / step) * step
    values = np.full((len(names), int((rows.times.max() - start) // step) + 1), np.nan)
    for row, row_numbers in zip(values, rows_by_series, strict=True):
        _lay(row, rows.times[row_numbers] - start, rows.values[row_numbers], step)
    return Frame(tuple(names), float(start), step, values)


def _lay(row: Floats, times: Floats, values: Floats, step_s: float) -> None:
    """Samples on the grid: the mean of those that share a step. A step that is empty only because scrapes come early
    and late keeps the sample before it; a hole begins where two samples lie two steps apart.
    """
    steps = (times // step_s).astype(np.intp)
    counts = np.bincount(steps, minlength=len(row))
    held = counts > 0
    row[held] = (np.bincount(steps, weights=values, minlength=len(row))[held]) / counts[held]
    skipped = np.flatnonzero((np.diff(times) < 2 * step_s) & (np.diff(steps) > 1))
    row[steps[skipped] + 1] = values[skipped]


def usual_step(times: list[Floats]) -> float:
    """The median distance of two samples, without the hair by which clocks miss a whole second."""
    distances = np.concatenate([np.diff(series_times) for series_times in times])
    if not len(distances):
        return 60.0
    usual = float(np.quantile(distances, 0.5, method="lower"))
    return float(round(usual)) if abs(usual - round(usual)) < 0.01 * usual else usual


def _refuse(path: str, column: Floats, bad: NDArray[np.bool_], fix: str) -> None:
    if bad.any():
        row = int(np.argmax(bad))
        raise InvalidInput(f"{path} row {row + FIRST_ROW}", float(column[row]), fix)


def _check_order(path: str, times: Floats, row_numbers: NDArray[np.intp]) -> None:
    distances = np.diff(times[row_numbers])
    if (distances > 0).all():
        return
    first = int(np.argmax(distances <= 0)) + 1
    row, at = int(row_numbers[first]), float(times[row_numbers[first]])
    fix = "this time is there twice; keep one" if distances[first - 1] == 0 else "sort the rows of a series by time"
    raise InvalidInput(f"{path} row {row + FIRST_ROW}", at, fix)


def _check_gaps(path: str, times: Floats, row_numbers: NDArray[np.intp], step_s: float) -> None:
    held = len(np.unique(times[row_numbers] // step_s))
    if held * 2 >= (times[row_numbers[-1]] - times[row_numbers[0]]) // step_s:
        return
    widest = int(np.argmax(np.diff(times[row_numbers])))
    where = int(row_numbers[widest + 1]) + FIRST_ROW
    gap_s = float(times[row_numbers[widest + 1]] - times[row_numbers[widest]])
    fix = f"more than half of this series is missing at a step of {step_s:g} s; give the right step or a fuller file"
    raise InvalidInput(f"{path} row {where}", f"{gap_s:g} s without a sample", fix)


class Files:
    """A HistorySource over Frames that were read from files, one for each metric."""

    def __init__(self, frames: Mapping[Metric, Frame]) -> None:
        self.frames = frames

    async def pages(self, selection: Selection, start: float, end: float, step_s: float) -> AsyncIterator[Frame]:
        frame = self.frames.get(selection.metric)
        if frame is None:
            raise NotEnoughData(f"no file with {selection.metric} was given")
        slashes = {"workload": 2, "container": 3, "pod": 4}[selection.level]
        chosen = [row for row, name in enumerate(frame.names) if _wanted(name, selection.namespaces, slashes)]
        if chosen:
            names = tuple(frame.names[row] for row in chosen)
            yield regrid(Frame(names, frame.start, frame.step_s, frame.values[chosen]), start, end, step_s)


def _wanted(name: str, namespaces: tuple[str, ...], slashes: int) -> bool:
    """Names without slashes are people's own: they are workloads of every namespace."""
    if "/" not in name:
        return slashes == 2
    return name.count("/") == slashes and (not namespaces or name.split("/")[0] in namespaces)


def regrid(frame: Frame, start: float, end: float, step_s: float) -> Frame:
    """The same series on another grid: the mean of what falls into each step; nothing is invented in between."""
    if step_s < frame.step_s:
        raise InvalidInput("step", step_s, f"the file has a sample every {frame.step_s:g} s: ask for that or more")
    wanted = time_grid(start, end, step_s)
    step = np.floor((frame.times - wanted.start) / step_s).astype(np.intp)
    inside = (step >= 0) & (step < wanted.steps)
    held = frame.values[:, inside]
    sums, counts = np.zeros((2, len(frame.names), wanted.steps))
    for row in range(len(frame.names)):
        good = np.isfinite(held[row])
        np.add.at(sums[row], step[inside][good], held[row][good])
        np.add.at(counts[row], step[inside][good], 1.0)
    values = np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)
    return Frame(frame.names, wanted.start, step_s, values)
