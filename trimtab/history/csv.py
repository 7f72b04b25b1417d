"""CSV files as people have them: timestamp,value[,series], and what Grafana, CloudWatch and Datadog export.

Commas, semicolons (a comma is a decimal point then) or tabs; times as unix numbers or dates; cells without a value.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import re
import sys
import zlib
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from trimtab.errors import InvalidInput
from trimtab.history.columns import FileReading, is_number, rows_of
from trimtab.history.files import FIRST_ROW, to_frame
from trimtab.series import Floats, Frame

EMPTY = ("", "nan", "null", "-", "undefined")
LABEL_ROWS = ("full label", "label", "id")  # CloudWatch begins with rows about each column, the labels first
AS_NUMBER = 'write the value as a number; in Grafana, switch off "Formatted data"'
AS_TIME = "write unix seconds or ISO 8601 such as 2026-11-15T12:00:00Z, the same way in all rows"
SLASHED = re.compile(r"(\d{4})/(\d\d)/(\d\d)")
DOTTED = re.compile(r"(\d\d)\.(\d\d)\.(\d{4})")  # day, month, year wherever dots are written
READING = FileReading()


def read_csv(path: str | Path, reading: FileReading = READING) -> Frame:
    """Times without a zone are UTC."""
    try:
        lines = _lines(_text(str(path)))
    except (OSError, EOFError, zlib.error) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise InvalidInput("file", str(path), f"cannot be read: {why}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise InvalidInput("file", str(path), f"cannot be read as CSV: {error}") from error
    return to_frame(str(path), rows_of(CsvTable(str(path), lines), reading), reading.step_s)


def _text(path: str) -> str:
    """Packed or plain, or the standard input (`-`); UTF-16 where it says so, as PowerShell does."""
    if path == "-":
        held = sys.stdin.buffer.read()
    else:
        with gzip.open(path) if path.endswith(".gz") else Path(path).open("rb") as file:
            held = file.read()
    wide = held.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return held.decode("utf-16" if wide else "utf-8-sig")


def _lines(text: str) -> list[list[str]]:
    if text.startswith("sep="):  # for Excel
        text = text.partition("\n")[2]
    first = text.partition("\n")[0]
    if ";" in first and "," not in first:
        return [[cell.replace(",", ".") for cell in line] for line in csv.reader(text.splitlines(), delimiter=";")]
    return list(csv.reader(text.splitlines(), delimiter="\t" if "\t" in first else ","))


class CsvTable:
    """The cells of a file by column; every mistake is named with its row."""

    def __init__(self, path: str, lines: list[list[str]]) -> None:
        head, *body = lines or [[]]
        self.path, self.stem = path, Path(path.removesuffix(".gz")).stem
        self.header = [name.strip() for name in head]
        about = 0
        if self.header and self.header[0].lower() in LABEL_ROWS:
            self.header[0] = "timestamp"
            about = next((number for number, line in enumerate(body) if line and _moment(line[0]) is not None), 0)
        self._cells = _columns(path, self.header, body[about:], FIRST_ROW + about)
        self.lines = np.arange(len(self._cells[0]) if self._cells else 0) + FIRST_ROW + about

    def texts(self, column: int) -> Sequence[str]:
        return self._cells[column]

    def holds_numbers(self, column: int) -> bool:
        return any(is_number(text) and text.strip().lower() not in EMPTY for text in self._cells[column])

    def numbers(self, column: int) -> Floats:
        texts = self._cells[column]
        try:
            return np.array(["nan" if text.strip().lower() in EMPTY else text for text in texts], dtype=np.float64)
        except ValueError:
            wrong = (index for index, text in enumerate(texts) if not is_number(text) and text.lower() not in EMPTY)
            index = next(wrong)
            raise InvalidInput(f"{self.path} row {self.lines[index]}", texts[index], AS_NUMBER) from None

    def times(self, column: int) -> Floats:
        return read_times(self.path, self._cells[column], int(self.lines[0]) if len(self.lines) else FIRST_ROW)


def _columns(path: str, header: list[str], lines: list[list[str]], first: int) -> list[Sequence[str]]:
    while lines and not any(lines[-1]):
        lines.pop()  # empty lines at the end are nobody's mistake
    for row, line in enumerate(lines, start=first):
        if len(line) != len(header):
            raise InvalidInput(f"{path} row {row}", ",".join(line), f"write the columns {','.join(header)}")
    return list(zip(*lines, strict=True)) if lines else [()] * len(header)


def read_times(path: str, texts: Sequence[str], first_row: int = FIRST_ROW) -> Floats:
    """All as numbers, or all as dates."""
    try:
        return np.array(texts, dtype=np.float64)
    except ValueError:
        moments = [_moment(text) for text in texts]
    if None in moments:
        row = moments.index(None)
        raise InvalidInput(f"{path} row {row + first_row}", texts[row], AS_TIME)
    return np.array(moments, dtype=np.float64)


def _moment(text: str) -> float | None:
    """A date as unix seconds; a number is one already."""
    if is_number(text):
        return float(text)
    try:
        dashed = DOTTED.sub(r"\3-\2-\1", SLASHED.sub(r"\1-\2-\3", text.strip()))
        at = datetime.fromisoformat(dashed.removesuffix(" UTC"))
    except ValueError:
        return None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
