"""Which column is what: the time, the values, and what says whose they are; for CSV and Parquet alike.

One row per sample (`value`, and `series` or labels such as namespace, deployment, pod beside it), or one column per
series after the time. What is neither a number nor a known label, such as a unit, is left alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from trimtab.errors import InvalidInput
from trimtab.history.dates import is_number
from trimtab.history.files import Rows
from trimtab.history.series_names import LABELS, row_name, series_name
from trimtab.series import Floats

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
