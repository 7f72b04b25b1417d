"""Read files of samples: CSV as people have it, Prometheus' answers as JSON, and Parquet.

CSV is timestamp,value[,series], or what Grafana, CloudWatch, Datadog and InfluxDB export: commas, semicolons (a comma
is a decimal point then) or tabs; times as unix numbers or dates; cells without a value. Comments (`#`), empty lines and
a repeated header, as in two files put together, are skipped. JSON is what `curl .../api/v1/query_range` or
`promtool query range -o json` printed. Text may be gzipped, and UTF-16 where it says so, as PowerShell writes it.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import sys
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from trimtab.errors import InvalidInput, MetricsUnavailable, NotEnoughData, quoted
from trimtab.history.files import FIRST_ROW, FileReading, Rows, is_number, is_time, read_times, rows_of, to_frame
from trimtab.history.query_pages import read_pairs
from trimtab.history.series_names import LABELS, row_name
from trimtab.quantity import MIB, parse_quantity
from trimtab.series import Floats, Frame
from trimtab.wire.prometheus import Data, Envelope, RangeSeries

ENDINGS = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".json", ".json.gz", ".txt", ".parquet")
STDIN = "-"
TEXT_BYTES = 512 * MIB  # of a file as text, unpacked: a small .gz may hold a very large one
PARQUET_CELLS = 100_000_000  # rows times columns, as the file itself counts them: repeated values take no room in it
TOO_LONG = "give fewer series, a shorter time or a longer step"


def read_file(path: str, reading: FileReading) -> Frame:
    if path.endswith(".parquet"):
        return read_parquet(path, reading)
    text = read_text(path)
    read = from_json if text.lstrip()[:1] in ("{", "[") else from_text
    return read(path, text, reading)


def read_text(path: str) -> str:
    try:
        held = _bytes(path)
        wide = held.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        return held.decode("utf-16" if wide else "utf-8-sig")
    except (OSError, EOFError, zlib.error) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise InvalidInput("file", path, f"cannot be read: {why}") from error
    except UnicodeDecodeError as error:
        raise InvalidInput("file", path, f"cannot be read as text: {error}") from error


def _bytes(path: str) -> bytes:
    if path == STDIN:
        held = sys.stdin.buffer.read(TEXT_BYTES + 1)
    else:
        with gzip.open(path) if path.endswith(".gz") else Path(path).open("rb") as file:
            held = file.read(TEXT_BYTES + 1)
    if len(held) > TEXT_BYTES:
        raise InvalidInput("file", path, f"holds more than {TEXT_BYTES // MIB} MiB of text: {TOO_LONG}")
    return held


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


ASK = "JSON is read as Prometheus answers /api/v1/query_range; write anything else as CSV"
_whole = msgspec.json.Decoder(Envelope[Data[list[RangeSeries]]])
_series = msgspec.json.Decoder(list[RangeSeries])


def from_json(path: str, text: str, reading: FileReading) -> Frame:
    try:
        found = _series.decode(text) if text.lstrip().startswith("[") else _answer(path, text)
        samples = [read_pairs(bytes(series.values)) for series in found]
    except (msgspec.MsgspecError, MetricsUnavailable) as error:
        raise InvalidInput(path, quoted(str(error)), ASK) from error
    if not found:
        raise NotEnoughData(f"{path}: the file holds no samples")
    names = np.repeat(np.array(_names(path, found, reading.namespace)), [len(pairs) for pairs in samples])
    pairs = np.concatenate(samples)
    return to_frame(path, Rows(pairs[:, 0], pairs[:, 1], names, np.arange(len(pairs)) + 1), reading.step_s)


def _answer(path: str, text: str) -> list[RangeSeries]:
    answer = _whole.decode(text)
    if answer.status != "success" or answer.data is None:
        raise InvalidInput(path, quoted(answer.error) or answer.status, "Prometheus refused this query: mend it")
    if answer.warnings or answer.is_partial:
        said = quoted("; ".join(answer.warnings or ["marked as partial"]))
        raise InvalidInput(path, said, "half of the pods look like half of the load: ask again for a whole answer")
    if answer.data.result_type != "matrix":
        raise InvalidInput(path, f"a {answer.data.result_type}", "this is one moment: ask /api/v1/query_range")
    return answer.data.result


def _names(path: str, found: Sequence[RangeSeries], namespace: str) -> list[str]:
    """The workload or pod that labels name, else the labels; one series without any is named after its file."""
    names = [_name(series.metric, namespace) for series in found]
    return names if any(names) else [Path(path.removesuffix(".gz")).stem] * len(names)


def _name(labels: Mapping[str, str], namespace: str) -> str:
    known = {LABELS[key]: value for key, value in labels.items() if key in LABELS}
    return row_name(known, namespace) or ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


def read_parquet(path: str | Path, reading: FileReading = READING) -> Frame:
    """Times are unix numbers, timestamps of any unit and zone, or ISO 8601 texts."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise InvalidInput(
            "file", str(path), "reading Parquet needs pyarrow: pip install 'trimtab[parquet]'"
        ) from error
    try:
        about = parquet.read_metadata(path)
        if about.num_rows * about.num_columns > PARQUET_CELLS:
            cells = f"{about.num_rows:,} rows of {about.num_columns} columns"
            raise InvalidInput("file", str(path), f"holds {cells}, more than {PARQUET_CELLS:,} cells: {TOO_LONG}")
        table = parquet.read_table(path)
    except FileNotFoundError as error:
        raise InvalidInput("file", str(path), "there is no such file") from error
    except (OSError, pyarrow.ArrowException) as error:
        raise InvalidInput("file", str(path), f"cannot be read as Parquet: {error}") from error
    return to_frame(str(path), rows_of(ParquetTable(str(path), table), reading), reading.step_s)


class ParquetTable:
    """The columns of a file; every mistake is named with its column."""

    def __init__(self, path: str, table: Any) -> None:
        self.path, self.stem, self._table = path, Path(path).stem, table
        self.header = list(table.column_names)
        self.lines = np.arange(table.num_rows) + FIRST_ROW

    def texts(self, column: int) -> Sequence[str]:
        return [str(value) for value in self._table.column(column).to_pylist()]

    def holds_numbers(self, column: int) -> bool:
        from pyarrow import types

        kind = self._table.column(column).type
        return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))

    def numbers(self, column: int) -> Floats:
        values = self._table.column(column)
        try:
            numbers: Floats = values.to_numpy().astype(np.float64)  # null becomes NaN, which is a gap
        except (TypeError, ValueError) as error:
            where = f"{self.path} column {self.header[column]}"
            raise InvalidInput(where, str(values.type), "this column must hold numbers") from error
        return numbers

    def times(self, column: int) -> Floats:
        import pyarrow
        from pyarrow import types

        values = self._table.column(column)
        if values.null_count:
            raise InvalidInput(f"{self.path} column {self.header[column]}", "null", "give every row a time")
        if types.is_timestamp(values.type):
            whole = values.cast(pyarrow.timestamp("us", values.type.tz), safe=False).cast("int64")
            exact: Floats = whole.to_numpy() / 1e6
            return exact
        if types.is_string(values.type) or types.is_large_string(values.type):
            return read_times(self.path, values.to_pylist(), self.lines.tolist())
        return self.numbers(column)
