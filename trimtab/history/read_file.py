"""A file of history, read by what it is called and what it holds; text is CSV, or an answer of Prometheus."""

from __future__ import annotations

from trimtab.history.columns import FileReading
from trimtab.history.text_file import STDIN, read_text
from trimtab.series import Frame

ENDINGS = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".json", ".json.gz", ".txt", ".parquet")
__all__ = ["ENDINGS", "STDIN", "read_file"]


def read_file(path: str, reading: FileReading) -> Frame:
    if path.endswith(".parquet"):
        from trimtab.history.parquet import read_parquet

        return read_parquet(path, reading)
    from trimtab.history import csv, prometheus_json

    text = read_text(path)
    read = prometheus_json.from_json if prometheus_json.is_json(text) else csv.from_text
    return read(path, text, reading)
