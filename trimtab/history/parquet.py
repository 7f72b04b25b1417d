"""Parquet files with the same columns as CSV: timestamp, value and perhaps series; needs `trimtab[parquet]`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from trimtab.errors import InvalidInput
from trimtab.history.csv import COLUMNS, SERIES, check_columns, read_times
from trimtab.history.files import Rows, to_frame
from trimtab.series import Floats, Frame


def read_parquet(path: str | Path, step_s: float | None = None) -> Frame:
    """Times are numbers (unix seconds), timestamps of any unit and zone, or ISO 8601 texts."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise InvalidInput(
            "file", str(path), "reading Parquet needs pyarrow: pip install 'trimtab[parquet]'"
        ) from error
    try:
        file = parquet.ParquetFile(path)
        names = check_columns(str(path), file.schema_arrow.names)
        table = file.read([name for name in (*COLUMNS, SERIES) if name in names])
    except FileNotFoundError as error:
        raise InvalidInput("file", str(path), "there is no such file") from error
    except (OSError, pyarrow.ArrowException) as error:
        raise InvalidInput("file", str(path), f"cannot be read as Parquet: {error}") from error
    series = table[SERIES].to_pylist() if SERIES in names else [Path(path).stem] * table.num_rows
    times, values = _times(pyarrow, str(path), table), _numbers(str(path), "value", table["value"])
    return to_frame(str(path), Rows(times, values, np.array(series, dtype=np.str_)), step_s)


def _times(pyarrow: Any, path: str, table: Any) -> Floats:
    column = table["timestamp"]
    if column.null_count:
        raise InvalidInput(f"{path} column timestamp", "null", "give every row a time")
    kind = column.type
    if pyarrow.types.is_timestamp(kind):
        exact: Floats = column.cast(pyarrow.timestamp("us", kind.tz), safe=False).cast("int64").to_numpy() / 1e6
        return exact
    if pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind):
        return read_times(path, column.to_pylist())
    return _numbers(path, "timestamp", column)


def _numbers(path: str, name: str, column: Any) -> Floats:
    try:
        numbers: Floats = column.to_numpy().astype(np.float64)  # null becomes NaN, which is refused with its row
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{path} column {name}", str(column.type), "this column must hold numbers") from error
    return numbers
