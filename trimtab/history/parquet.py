"""Parquet files with the same columns as CSV; needs `trimtab[parquet]`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from trimtab.errors import InvalidInput
from trimtab.history.columns import FileReading, rows_of
from trimtab.history.csv import READING
from trimtab.history.dates import read_times
from trimtab.history.files import FIRST_ROW, to_frame
from trimtab.series import Floats, Frame


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
