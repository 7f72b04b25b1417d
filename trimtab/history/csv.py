"""CSV files with the columns timestamp,value and, for several series, series; two columns may have other names."""

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


def read_csv(path: str | Path, step_s: float | None = None) -> Frame:
    """Times are unix seconds or ISO 8601 (UTC where no zone is written)."""
    try:
        with Path(path).open(newline="", encoding="utf-8-sig") as file:
            table = list(csv.reader(file))
    except OSError as error:
        raise InvalidInput("file", str(path), f"cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise InvalidInput("file", str(path), f"cannot be read as CSV: {error}") from error
    header = check_columns(str(path), _two_columns([name.strip() for name in table[0]]) if table else [])
    return to_frame(str(path), _rows(str(path), header, table[1:]), step_s)


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


def _rows(path: str, header: list[str], lines: list[list[str]]) -> Rows:
    while lines and not lines[-1]:
        lines.pop()  # empty lines at the end are nobody's mistake
    for row, line in enumerate(lines, start=FIRST_ROW):
        if len(line) != len(header):
            raise InvalidInput(f"{path} row {row}", ",".join(line), f"write the columns {','.join(header)}")
    columns = dict(zip(header, zip(*lines, strict=True), strict=True)) if lines else dict.fromkeys(header, ())
    series = columns.get(SERIES) or (Path(path).stem,) * len(lines)
    times, values = read_times(path, columns["timestamp"]), _numbers(path, columns["value"])
    return Rows(times, values, np.array([name.strip() for name in series], dtype=np.str_))


def _numbers(path: str, texts: Sequence[str]) -> Floats:
    try:
        return np.array(texts, dtype=np.float64)
    except ValueError:
        row, text = next((row, text) for row, text in enumerate(texts, start=FIRST_ROW) if not _is_number(text))
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
