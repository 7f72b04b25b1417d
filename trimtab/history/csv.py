"""CSV files with the columns timestamp,value and, for several series, series; two columns may have other names.

As dashboards export them: semicolons, names in any case, one column per series after the time, cells without a value.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from trimtab.errors import InvalidInput
from trimtab.history.files import FIRST_ROW, Rows, to_frame
from trimtab.series import Floats, Frame

COLUMNS = ("timestamp", "value")
SERIES = "series"
TIME = "timestamp"
TIME_NAMES = ("time", "timestamp", "date", "datetime")
EMPTY = ("", "nan", "null", "-", "undefined")


def read_csv(path: str | Path, step_s: float | None = None) -> Frame:
    """Times are unix seconds or ISO 8601 (UTC where no zone is written)."""
    try:
        with Path(path).open(newline="", encoding="utf-8-sig") as file:
            table = _table(file.read())
    except OSError as error:
        raise InvalidInput("file", str(path), f"cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise InvalidInput("file", str(path), f"cannot be read as CSV: {error}") from error
    header = _known_names([name.strip() for name in table[0]]) if table else []
    if _is_wide(header):
        return to_frame(str(path), _wide_rows(str(path), header, table[1:]), step_s)
    header = check_columns(str(path), _two_columns(header))
    return to_frame(str(path), _rows(str(path), header, table[1:]), step_s)


def _table(text: str) -> list[list[str]]:
    """Where columns are parted by semicolons, a comma is a decimal point."""
    first = text.partition("\n")[0]
    if ";" not in first or "," in first:
        return list(csv.reader(text.splitlines()))
    return [[cell.replace(",", ".") for cell in line] for line in csv.reader(text.splitlines(), delimiter=";")]


def _known_names(header: list[str]) -> list[str]:
    """Our own names in whatever case, and Time as the first column of a dashboard's export."""
    names = [name.lower() if name.lower() in (*COLUMNS, SERIES) else name for name in header]
    return [TIME, *names[1:]] if _names_series(names) and names[0].lower() in TIME_NAMES else names


def _names_series(header: list[str]) -> bool:
    """Columns after the first bear names of series: several do, and one that is written as NAMESPACE/KIND/NAME."""
    return len(header) > 2 or (len(header) == 2 and "/" in header[1])


def _is_wide(header: list[str]) -> bool:
    return _names_series(header) and header[0] == TIME and "value" not in header


def _wide_rows(path: str, header: list[str], lines: list[list[str]]) -> Rows:
    """One column per series after the time."""
    texts = _columns(path, header, lines)
    times = read_times(path, texts[0])
    values = [_numbers(path, column) for column in texts[1:]]
    names = np.repeat(np.array(header[1:], dtype=np.str_), len(times))
    return Rows(np.tile(times, len(values)), np.concatenate(values), names)


def _two_columns(header: list[str]) -> list[str]:
    """Dashboards export a time and a series under names of their own: of two columns the first is the time."""
    known = [name in COLUMNS for name in header]
    if len(header) != 2 or all(known) or any(map(_is_number, header)):
        return header
    first_is_time = header[0] == "timestamp" or header[1] == "value" or not any(known)
    return list(COLUMNS if first_is_time else COLUMNS[::-1])


def check_columns(path: str, header: list[str]) -> list[str]:
    missing = [name for name in COLUMNS if name not in header]
    if missing:
        found = ",".join(header)[:80] or "nothing"
        raise InvalidInput(f"{path} row 1", found, f"the first row must name timestamp,value[,series]; no {missing[0]}")
    return header


def _columns(path: str, header: list[str], lines: list[list[str]]) -> list[Sequence[str]]:
    while lines and not lines[-1]:
        lines.pop()  # empty lines at the end are nobody's mistake
    for row, line in enumerate(lines, start=FIRST_ROW):
        if len(line) != len(header):
            raise InvalidInput(f"{path} row {row}", ",".join(line), f"write the columns {','.join(header)}")
    return list(zip(*lines, strict=True)) if lines else [()] * len(header)


def _rows(path: str, header: list[str], lines: list[list[str]]) -> Rows:
    columns = dict(zip(header, _columns(path, header, lines), strict=True))
    series = columns.get(SERIES) or (Path(path).stem,) * len(lines)
    times, values = read_times(path, columns["timestamp"]), _numbers(path, columns["value"])
    return Rows(times, values, np.array([name.strip() for name in series], dtype=np.str_))


def _numbers(path: str, texts: Sequence[str]) -> Floats:
    try:
        return np.array(["nan" if text.strip().lower() in EMPTY else text for text in texts], dtype=np.float64)
    except ValueError:
        row, text = next(
            (row, text)
            for row, text in enumerate(texts, start=FIRST_ROW)
            if not _is_number(text) and text.strip().lower() not in EMPTY
        )
        raise InvalidInput(f"{path} row {row}", text, "write the value as a number") from None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def read_times(path: str, texts: Sequence[str]) -> Floats:
    """All as numbers, or all as ISO times."""
    try:
        return np.array(texts, dtype=np.float64)
    except ValueError:
        return np.array([_iso(path, row, text) for row, text in enumerate(texts, start=FIRST_ROW)])


def _iso(path: str, row: int, text: str) -> float:
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError:
        fix = "write unix seconds or ISO 8601 such as 2026-11-15T12:00:00Z, the same way in all rows"
        raise InvalidInput(f"{path} row {row}", text, fix) from None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
