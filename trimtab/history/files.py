"""Rows of a file (timestamp, value, series) as a Frame; what cannot be meant is refused with file and row.

Rows are counted as people see them: the header is row 1. They come in any order of time, and pods are added up where
their workload is not there itself. A missing sample is a hole, not an error, until more
than half of a series is missing: then the step, or the file, is not what its owner thinks.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from trimtab.errors import InvalidInput, NotEnoughData
from trimtab.history.series_names import LABELS, row_name, series_name
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


VALUES, SERIES = ("value", "_value"), "series"
TIMES = ("timestamp", "time", "date", "datetime", "@timestamp", "_time", "timestamp (utc)", "time (utc)")
LATEST_S = 1e11  # the year 5138: a larger number is in a smaller unit
UNITS = (1.0, 1e3, 1e6, 1e9)


class FileReading(NamedTuple):
    """What a file does not say by itself: the distance of its samples, its column of times, its namespace."""

    step_s: float | None = None
    time_column: str = ""
    namespace: str = "default"


class Table(Protocol):
    """A file with named columns of equal length."""

    path: str
    stem: str
    header: list[str]
    lines: NDArray[np.intp]  # of the file, as people count them

    def times(self, column: int) -> Floats: ...
    def numbers(self, column: int) -> Floats: ...
    def texts(self, column: int) -> Sequence[str]: ...
    def holds_numbers(self, column: int) -> bool: ...


def rows_of(table: Table, reading: FileReading) -> Rows:
    """Every sample of the table with the name of its series."""
    time = time_column(table, reading.time_column)
    times = in_seconds(table.times(time))
    labels = {name.lower(): column for column, name in enumerate(table.header) if name.lower() in (SERIES, *LABELS)}
    values = value_columns(table, time, labels)
    if labels:
        return Rows(times, table.numbers(values[0]), _labelled(table, labels, reading.namespace), table.lines)
    names = [series_name(table.header[column], reading.namespace) for column in values]
    if len(names) == 1 and "/" not in names[0]:
        names = [table.stem]
    return Rows(
        np.tile(times, len(values)),
        np.concatenate([table.numbers(column) for column in values]),
        np.repeat(np.array(names, dtype=np.str_), len(times)),
        np.tile(table.lines, len(values)),
    )


def time_column(table: Table, wanted: str) -> int:
    names = [name.lower() for name in table.header]
    if wanted:
        if wanted.lower() not in names:
            raise InvalidInput("--time-column", wanted, f"{table.path} has {', '.join(table.header)[:80]}")
        return names.index(wanted.lower())
    known = [names.index(name) for name in TIMES if name in names]
    if known:
        return known[0]
    if len(names) != 2 or any(map(is_number, names)):
        found = ",".join(table.header)[:80] or "nothing"
        fix = "the first row must name timestamp,value[,series]; no timestamp: say --time-column NAME"
        raise InvalidInput(f"{table.path} row 1", found, fix)
    return 1 if names[0] in VALUES else 0


def value_columns(table: Table, time: int, labels: dict[str, int]) -> list[int]:
    """The one called value, or every column of numbers; with labels in the rows there can be only one."""
    names = [name.lower() for name in table.header]
    if known := [names.index(name) for name in VALUES if name in names]:
        return known[:1]
    others = [
        column for column, name in enumerate(names) if column != time and name not in TIMES and name not in labels
    ]
    numeric = others if len(others) == 1 else [column for column in others if table.holds_numbers(column)]
    if not numeric or (labels and len(numeric) > 1):
        found = ",".join(table.header)[:80]
        fix = "the first row must name timestamp,value[,series]; no value: call the column with the values so"
        raise InvalidInput(f"{table.path} row 1", found, fix)
    return numeric


def _labelled(table: Table, labels: dict[str, int], namespace: str) -> NDArray[np.str_]:
    """The series that each row names, or what its labels come to; each combination is worked out once."""
    if SERIES in labels:
        return np.array([name.strip() for name in table.texts(labels[SERIES])], dtype=np.str_)
    keys = [LABELS[name] for name in labels]
    combinations = list(zip(*(table.texts(column) for column in labels.values()), strict=True))
    names = {each: _name_of(dict(zip(keys, each, strict=True)), namespace) for each in dict.fromkeys(combinations)}
    return np.array([names[each] for each in combinations], dtype=np.str_)


def _name_of(labels: dict[str, str], namespace: str) -> str:
    stripped = {key: value.strip() for key, value in labels.items()}
    return row_name(stripped, namespace) or "/".join(filter(None, stripped.values()))


def in_seconds(times: Floats) -> Floats:
    """Unix times in seconds, milliseconds, microseconds or nanoseconds."""
    latest = float(np.max(times, initial=0.0))
    unit = next((unit for unit in UNITS if latest / unit < LATEST_S), 1.0)
    seconds: Floats = times / unit
    return seconds


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
