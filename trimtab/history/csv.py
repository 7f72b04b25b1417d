"""CSV files as people have them: timestamp,value[,series], and what Grafana, CloudWatch, Datadog and InfluxDB export.

Commas, semicolons (a comma is a decimal point then) or tabs; times as unix numbers or dates; cells without a value.
Comments (`#`), empty lines and a header that comes again, as in two files put together, are nobody's data.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trimtab.errors import InvalidInput
from trimtab.history.columns import FileReading, rows_of
from trimtab.history.dates import is_number, is_time, read_times
from trimtab.history.files import to_frame
from trimtab.history.text_file import read_text
from trimtab.quantity import parse_quantity
from trimtab.series import Floats, Frame

EMPTY = ("", "nan", "null", "-", "undefined")
LABEL_ROWS = ("full label", "label", "id")  # CloudWatch begins with rows about each column, the labels first
CLOUDWATCH = {"label": "series", "timestamps": "timestamp", "values": "value"}  # or writes a row per sample
AS_NUMBER = 'write the value as a number; in Grafana, switch off "Formatted data"'
NO_TIMES = "these are the values of one moment: `trimtab recommend --recipe` says where a past comes from"
READING = FileReading()
Lines = list[tuple[int, list[str]]]  # with the row that each stands in


def read_csv(path: str | Path, reading: FileReading = READING) -> Frame:
    """Times without a zone are UTC."""
    return from_text(str(path), read_text(str(path)), reading)


def from_text(path: str, text: str, reading: FileReading) -> Frame:
    try:
        table = CsvTable(path, _lines(text))
    except csv.Error as error:
        raise InvalidInput("file", path, f"cannot be read as CSV: {error}") from error
    return to_frame(path, rows_of(table, reading), reading.step_s)


def _lines(text: str) -> Lines:
    lines = ["" if line.startswith(("#", "sep=")) else line for line in text.splitlines()]  # sep= is for Excel
    first = next(filter(str.strip, lines), "")
    semicolons = ";" in first and "," not in first
    reader = csv.reader(lines, delimiter=";" if semicolons else "\t" if "\t" in first else ",")
    found = [(reader.line_num, cells) for cells in reader if any(cells)]
    if semicolons:
        found = [(row, [cell.replace(",", ".") for cell in cells]) for row, cells in found]
    return [(row, cells) for index, (row, cells) in enumerate(found) if index == 0 or cells != found[0][1]]


class CsvTable:
    """The cells of a file by column; every mistake is named with its row."""

    def __init__(self, path: str, lines: Lines) -> None:
        self.path, self.stem = path, Path(path.removesuffix(".gz")).stem
        (_, head), *body = lines or [(1, [])]
        self.header = [name.strip() for name in head]
        names = [name.lower() for name in self.header]
        if sorted(names) == sorted(CLOUDWATCH):
            self.header = [CLOUDWATCH[name] for name in names]
        elif names[:1] and names[0] in LABEL_ROWS:
            self.header[0] = "timestamp"
            about = (index for index, (_, cells) in enumerate(body) if is_time(cells[0]))
            body = body[next(about, 0) :]
        if len(names) == 1 and "CPU(cores)" in self.header[0]:
            raise InvalidInput(path, "the output of kubectl top", NO_TIMES)
        self._cells = _columns(path, self.header, body)
        self.lines: NDArray[np.intp] = np.array([row for row, _ in body], dtype=np.intp)

    def texts(self, column: int) -> Sequence[str]:
        return self._cells[column]

    def holds_numbers(self, column: int) -> bool:
        return any(_number(text) is not None and text.strip().lower() not in EMPTY for text in self._cells[column])

    def numbers(self, column: int) -> Floats:
        texts = ["nan" if text.strip().lower() in EMPTY else text for text in self._cells[column]]
        try:
            return np.array(texts, dtype=np.float64)
        except ValueError:
            values = [_number(text) for text in texts]
        if None in values:
            wrong = values.index(None)
            raise InvalidInput(f"{self.path} row {self.lines[wrong]}", texts[wrong], AS_NUMBER)
        return np.array(values, dtype=np.float64)

    def times(self, column: int) -> Floats:
        return read_times(self.path, self._cells[column], self.lines.tolist())


def _number(text: str) -> float | None:
    """Plain, or as Kubernetes writes it: 250m cores, 120Mi bytes."""
    try:
        return float(text) if is_number(text) else parse_quantity(text)
    except InvalidInput:
        return None


def _columns(path: str, header: list[str], lines: Lines) -> list[Sequence[str]]:
    for row, cells in lines:
        if len(cells) != len(header):
            raise InvalidInput(f"{path} row {row}", ",".join(cells), f"write the columns {','.join(header)}")
    return list(zip(*(cells for _, cells in lines), strict=True)) if lines else [()] * len(header)
