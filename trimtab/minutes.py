"""What each minute was like, kept for weeks: ticks are folded into one row of numbers for each object and hour.

A row holds sixty minutes of every column as compressed 32-bit floats: a tenth of what the ticks take.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trimtab.series import Floats

MINUTE_S, HOUR_S = 60.0, 3600.0
SCHEMA = """
CREATE TABLE minutes (object INTEGER, hour INTEGER, content BLOB, PRIMARY KEY (object, hour)) WITHOUT ROWID;
CREATE INDEX minutes_by_time ON minutes (hour);
CREATE TABLE hours (hour INTEGER, object INTEGER, pod_minutes REAL, load REAL, violating REAL,
                    PRIMARY KEY (hour, object)) WITHOUT ROWID;
"""
COLUMNS = (
    "load",
    "capacity",
    "forecast_low",
    "forecast",
    "forecast_high",
    "horizon_s",
    "replicas",
    "planned",
    "ready",
    "cpu_cores",
    "memory_bytes",
    "violated",  # the share of the minute's looks at which the load was above the capacity
)
_READ = ", ".join(COLUMNS[:-1])
_SHAPE = (len(COLUMNS), 60)
Content = NDArray[np.float32]


class Minutes(NamedTuple):
    """Consecutive minutes of one object; NaN where nothing was seen. A minute is named by its beginning."""

    times: Floats
    columns: dict[str, Content]


def fold(db: sqlite3.Connection, until: float) -> int:
    """Move every tick before the last whole minute into `minutes`; gives the number of rows written."""
    end = until // MINUTE_S * MINUTE_S
    rows = db.execute(f"SELECT object, at, {_READ} FROM ticks WHERE at < ? ORDER BY object, at", (end,))
    written = 0
    with db:
        for (identity, hour), ticks in groupby(rows.fetchall(), key=lambda row: (row[0], int(row[1] // HOUR_S))):
            old = db.execute("SELECT content FROM minutes WHERE object = ? AND hour = ?", (identity, hour)).fetchone()
            content = _unpacked(old[0]) if old else _empty()
            _fill(content, hour, list(ticks))
            db.execute("INSERT OR REPLACE INTO minutes VALUES (?, ?, ?)", (identity, hour, _packed(content)))
            db.execute("INSERT OR REPLACE INTO hours VALUES (?, ?, ?, ?, ?)", (hour, identity, *_sums(content)))
            written += 1
        db.execute("DELETE FROM ticks WHERE at < ?", (end,))
    return written


def read(db: sqlite3.Connection, identity: int, start: float, end: float) -> Minutes:
    """The minutes of an object from `start` to `end`, the newest ones straight from its ticks."""
    hours: dict[int, Content] = {
        hour: _unpacked(content)
        for hour, content in db.execute(
            "SELECT hour, content FROM minutes WHERE object = ? AND hour BETWEEN ? AND ?",
            (identity, int(start // HOUR_S), int(end // HOUR_S)),
        )
    }
    ticks = db.execute(
        f"SELECT object, at, {_READ} FROM ticks WHERE object = ? AND at BETWEEN ? AND ? ORDER BY at",
        (identity, start, end),
    )
    for hour, rows in groupby(ticks.fetchall(), key=lambda row: int(row[1] // HOUR_S)):
        _fill(hours.setdefault(hour, _empty()), hour, list(rows))
    return _joined(hours, start, end)


def _joined(hours: dict[int, Content], start: float, end: float) -> Minutes:
    """One grid from the first to the last minute in which something was seen."""
    if not hours:
        return Minutes(np.empty(0), {name: np.empty(0, np.float32) for name in COLUMNS})
    first, last = min(hours), max(hours)
    table = np.full((len(COLUMNS), (last - first + 1) * 60), np.nan, np.float32)
    for hour, content in hours.items():
        table[:, (hour - first) * 60 : (hour - first + 1) * 60] = content
    times: Floats = first * HOUR_S + MINUTE_S * np.arange(table.shape[1], dtype=np.float64)
    known = np.flatnonzero(np.isfinite(table[COLUMNS.index("replicas")]) & (times > start - MINUTE_S) & (times <= end))
    part = slice(known[0], known[-1] + 1) if len(known) else slice(0)
    return Minutes(times[part], dict(zip(COLUMNS, table[:, part], strict=True)))


def _fill(content: Content, hour: int, ticks: Sequence[Sequence[Any]]) -> None:
    """Mean load, least capacity, most replicas, and the last of everything else."""
    numbers = np.array([row[1:] for row in ticks], dtype=np.float64)
    minute = ((numbers[:, 0] - hour * HOUR_S) // MINUTE_S).astype(int)
    edges = np.flatnonzero(np.diff(minute, prepend=-1))
    values = numbers[:, 1:].T
    last = np.append(edges[1:], len(minute)) - 1
    place, load, capacity = minute[edges], values[0], values[1]
    content[:-1, place] = values[:, last]
    content[0, place] = _mean(load, edges)
    content[1, place] = np.fmin.reduceat(capacity, edges)
    content[COLUMNS.index("replicas"), place] = np.fmax.reduceat(values[COLUMNS.index("replicas")], edges)
    above = np.where(np.isfinite(load) & np.isfinite(capacity), (load > capacity).astype(float), np.nan)
    content[-1, place] = _mean(above, edges)


def _sums(content: Content) -> tuple[float, float, float]:
    """Pod-minutes, load-minutes, and those of them that met too little capacity."""
    load, violated = np.nan_to_num(content[0].astype(float)), np.nan_to_num(content[-1].astype(float))
    pods = np.nan_to_num(content[COLUMNS.index("replicas")].astype(float))
    return float(pods.sum()), float(load.sum()), float((load * violated).sum())


def _mean(values: Floats, edges: NDArray[np.intp]) -> Floats:
    known = np.isfinite(values)
    total, count = np.add.reduceat(np.where(known, values, 0.0), edges), np.add.reduceat(known.astype(float), edges)
    mean: Floats = np.divide(total, count, out=np.full(len(edges), np.nan), where=count > 0)
    return mean


def _empty() -> Content:
    return np.full(_SHAPE, np.nan, np.float32)


def _packed(content: Content) -> bytes:
    """Bytes of equal weight side by side: neighbours in time share their high ones, which compresses well."""
    lanes = np.ascontiguousarray(content, dtype="<f4").view(np.uint8).reshape(-1, 4).T
    return zlib.compress(lanes.tobytes(), 6)


def _unpacked(content: bytes) -> Content:
    lanes = np.frombuffer(zlib.decompress(content), dtype=np.uint8).reshape(4, -1)
    return np.ascontiguousarray(lanes.T).view("<f4").reshape(_SHAPE).astype(np.float32)


def forget_before(db: sqlite3.Connection, at: float) -> None:
    """Hours that were over by then."""
    for table in ("minutes", "hours"):
        db.execute(f"DELETE FROM {table} WHERE (hour + 1) * {HOUR_S} <= ?", (at,))
