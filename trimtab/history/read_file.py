"""A file of history, read by what it is called; the standard input holds CSV."""

from __future__ import annotations

from trimtab.history.columns import FileReading
from trimtab.series import Frame

ENDINGS = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet")
STDIN = "-"


def read_file(path: str, reading: FileReading) -> Frame:
    if path.endswith(".parquet"):
        from trimtab.history.parquet import read_parquet

        return read_parquet(path, reading)
    from trimtab.history.csv import read_csv

    return read_csv(path, reading)
