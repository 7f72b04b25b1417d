"""Rows of a file (timestamp, value, series) as a Frame; what cannot be meant is refused with file and row.

Rows are counted as people see them: the header is row 1. They come in any order of time, and pods are added up where
their workload is not there itself. A missing sample is a hole, not an error, until more
than half of a series is missing: then the step, or the file, is not what its owner thinks.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trimtab.errors import InvalidInput, NotEnoughData
from trimtab.history.source import Metric, Selection, time_grid
from trimtab.series import Floats, Frame

LATEST_S = 1e11  # the year 5138
FIRST_ROW = 2
POD_LEVEL = 4  # slashes in namespace/Kind/name/container/pod


class Rows(NamedTuple):
    """The samples of one file, and the row of the file that each stands in."""

    times: Floats
    values: Floats
    series: NDArray[np.str_]
    lines: NDArray[np.intp]

    def some(self, chosen: NDArray[np.bool_] | NDArray[np.intp]) -> Rows:
        return Rows(self.times[chosen], self.values[chosen], self.series[chosen], self.lines[chosen])


def to_frame(path: str, rows: Rows, step_s: float | None = None) -> Frame:
    """One row per series on a common grid; without `step_s` its step is the usual distance of two samples."""
    present = ~np.isnan(rows.values)  # a cell without a value is as a row that is not there
    if not present.any():
        raise NotEnoughData(f"{path}: the file holds no samples")
    rows = rows.some(present)
    _refuse(path, rows, rows.values, np.isinf(rows.values), "leave the row out where there is no value")
    _refuse(path, rows, rows.values, rows.values < 0, "usage and load are never negative")
    unreal = ~((rows.times >= 0) & (rows.times < LATEST_S))
    _refuse(path, rows, rows.times, unreal, "write times as unix seconds or as ISO 8601")
    names, of_series = _by_series(rows)
    of_series = [_once(path, some) for some in of_series]
    step = step_s or usual_step([some.times for some in of_series])
    for some in of_series:  # before the grid is made: seconds over ten years would not fit anywhere
        _check_gaps(path, some, step)
    start = np.floor(rows.times.min() / step) * step
    values = np.full((len(names), int((rows.times.max() - start) // step) + 1), np.nan)
    for row, some in zip(values, of_series, strict=True):
        _lay(row, some.times - start, some.values, step)
    return with_totals(Frame(tuple(names), float(start), step, values))


def _by_series(rows: Rows) -> tuple[list[str], list[Rows]]:
    """Each series in the order of time, whatever the order of the file."""
    names, member, counts = np.unique(rows.series, return_inverse=True, return_counts=True)
    parts = np.split(np.lexsort((rows.times, member)), np.cumsum(counts)[:-1])
    return [str(name) for name in names], [rows.some(part) for part in parts]


def with_totals(frame: Frame) -> Frame:
    """Pods make up their workload: where a file has only single pods, their sum is added."""
    pods: dict[str, list[int]] = {}
    for row, name in enumerate(frame.names):
        if name.count("/") == POD_LEVEL:
            pods.setdefault("/".join(name.split("/")[:3]), []).append(row)
    missing = {name: rows for name, rows in pods.items() if name not in frame.names}
    if not missing:
        return frame
    totals = [_total(frame.values[rows]) for rows in missing.values()]
    return Frame((*frame.names, *missing), frame.start, frame.step_s, np.vstack([frame.values, *totals]))


def _total(pods: Floats) -> Floats:
    total: Floats = np.nansum(pods, axis=0)
    total[np.isnan(pods).all(axis=0)] = np.nan
    return total


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


def _refuse(path: str, rows: Rows, column: Floats, bad: NDArray[np.bool_], fix: str) -> None:
    if bad.any():
        first = int(np.argmax(bad))
        raise InvalidInput(f"{path} row {rows.lines[first]}", float(column[first]), fix)


def _once(path: str, rows: Rows) -> Rows:
    """Two exports that overlap have the same samples twice; other values of one time are somebody else's."""
    again = np.append(False, np.diff(rows.times) == 0)
    other = again & np.append(False, np.diff(rows.values) != 0)
    if other.any():
        first = int(np.argmax(other))
        fix = "this time is there twice; keep one, or say whose it is in a column pod, and pods are added up"
        raise InvalidInput(f"{path} row {rows.lines[first]}", _date(float(rows.times[first])), fix)
    return rows.some(~again) if again.any() else rows


def _date(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")


def _check_gaps(path: str, rows: Rows, step_s: float) -> None:
    held = len(np.unique(rows.times // step_s))
    if held * 2 >= (rows.times[-1] - rows.times[0]) // step_s:
        return
    widest = int(np.argmax(np.diff(rows.times)))
    gap_s = float(rows.times[widest + 1] - rows.times[widest])
    fix = f"more than half of this series is missing at a step of {step_s:g} s; say --step, or give a fuller file"
    raise InvalidInput(f"{path} row {rows.lines[widest + 1]}", f"{gap_s:g} s without a sample", fix)


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
