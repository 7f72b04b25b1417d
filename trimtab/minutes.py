"""What each minute was like, kept for weeks: ticks are folded into one row of numbers for each object and hour.

A row holds sixty minutes of every column as compressed 32-bit floats: a tenth of what the ticks take.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trimtab.series import Floats

MINUTE_S, HOUR_S = 60.0, 3600.0
SLICE = 100  # objects whose ticks are folded at once: some hundredths of a second
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
    "bridge",
)  # in the order in which they lie in a row: what comes later goes to the end
LOAD, CAPACITY, REPLICAS, VIOLATED, BRIDGE = (
    COLUMNS.index(name) for name in ("load", "capacity", "replicas", "violated", "bridge")
)
_LOOKED = [index for index in range(len(COLUMNS)) if index != VIOLATED]
_READ = ", ".join(COLUMNS[index] for index in _LOOKED)
_SHAPE = (len(COLUMNS), 60)
Content = NDArray[np.float32]


class Minutes(NamedTuple):
    """Consecutive minutes of one object; NaN where nothing was seen. A minute is named by its beginning."""

    times: Floats
    columns: dict[str, Content]


def fold(db: sqlite3.Connection, until: float) -> Iterator[None]:
    """Move every tick before the last whole minute into `minutes`, some objects at a time: one transaction each."""
    end = until // MINUTE_S * MINUTE_S
    last = db.execute("SELECT max(id) FROM objects").fetchone()[0] or 0
    for first in range(1, last + 1, SLICE):
        with db:
            _fold_slice(db, end, (first, first + SLICE - 1))
        yield


def _fold_slice(db: sqlite3.Connection, end: float, ids: tuple[int, int]) -> None:
    chosen = "FROM ticks WHERE object BETWEEN ? AND ? AND at < ?"
    rows = db.execute(f"SELECT object, at, load_at, {_READ} {chosen} ORDER BY object, at", (*ids, end)).fetchall()
    if not rows:
        return
    ticks = np.array(rows, dtype=np.float64)
    hours = ticks[:, 1] // HOUR_S
    old = db.execute(
        "SELECT object, hour, content FROM minutes WHERE object BETWEEN ? AND ? AND hour BETWEEN ? AND ?",
        (*ids, int(hours.min()) - 1, int(hours.max())),
    )
    known = {(identity, hour): _unpacked(content) for identity, hour, content in old}
    for (identity, hour), content in _filled(known, ticks).items():
        db.execute("INSERT OR REPLACE INTO minutes VALUES (?, ?, ?)", (identity, hour, _packed(content)))
        db.execute("INSERT OR REPLACE INTO hours VALUES (?, ?, ?, ?, ?)", (hour, identity, *_sums(content)))
    db.execute(f"DELETE {chosen}", (*ids, end))


def read(db: sqlite3.Connection, identity: int, start: float, end: float) -> Minutes:
    """The minutes of an object from `start` to `end`, the newest ones straight from its ticks."""
    hours = {
        (identity, hour): _unpacked(content)
        for hour, content in db.execute(
            "SELECT hour, content FROM minutes WHERE object = ? AND hour BETWEEN ? AND ?",
            (identity, int(start // HOUR_S), int(end // HOUR_S)),
        )
    }
    ticks = db.execute(
        f"SELECT object, at, load_at, {_READ} FROM ticks WHERE object = ? AND at BETWEEN ? AND ? ORDER BY at",
        (identity, start, end),
    ).fetchall()
    if ticks:
        hours |= _filled(hours, np.array(ticks, dtype=np.float64))
    return _joined({hour: content for (_, hour), content in hours.items()}, start, end)


def _joined(hours: dict[int, Content], start: float, end: float) -> Minutes:
    """One grid from the first to the last minute in which something was seen."""
    if not hours:
        return Minutes(np.empty(0), {name: np.empty(0, np.float32) for name in COLUMNS})
    first, last = min(hours), max(hours)
    table = np.full((len(COLUMNS), (last - first + 1) * 60), np.nan, np.float32)
    for hour, content in hours.items():
        table[:, (hour - first) * 60 : (hour - first + 1) * 60] = content
    times: Floats = first * HOUR_S + MINUTE_S * np.arange(table.shape[1], dtype=np.float64)
    known = np.flatnonzero(np.isfinite(table[REPLICAS]) & (times > start - MINUTE_S) & (times <= end))
    part = slice(known[0], known[-1] + 1) if len(known) else slice(0)
    return Minutes(times[part], dict(zip(COLUMNS, table[:, part], strict=True)))


Hours = dict[tuple[int, int], Content]  # by object and hour


def _filled(known: Hours, ticks: Floats) -> Hours:
    """The hours that ticks touch, with their minutes.

    A minute's load is what the newest sample by its end says: a metric is a mean of the last minute or so, and a mean
    of such means, taken when they were seen, would be a smoothed and delayed picture of the load. Capacity and bridge
    are the least of the minute, replicas the most, everything else the last. Ticks come in order of object and time,
    all objects at once: one at a time, numpy's overhead is ten times the work.
    """
    owner, at, load_at, *columns = ticks.T
    load, capacity, replicas, bridge = (columns[_LOOKED.index(index)] for index in (LOAD, CAPACITY, REPLICAS, BRIDGE))
    minute = at // MINUTE_S
    sampled = np.where(np.isfinite(load_at), np.ceil(load_at / MINUTE_S) - 1.0, minute)
    sampled = np.clip(sampled, minute - 60, minute)  # no sample is from the future, and an hour old one is too old
    slots = np.column_stack((np.tile(owner, 2), np.concatenate((minute, sampled)) // 60)).astype(int)
    hours, slot = np.unique(slots, axis=0, return_inverse=True)
    names: list[tuple[int, int]] = [(identity, hour) for identity, hour in hours.tolist()]
    table = np.stack([known[name] if name in known else _empty() for name in names])
    row, load_row = slot.reshape(2, -1)
    edges = np.flatnonzero((np.diff(owner, prepend=-1.0) != 0) | (np.diff(minute, prepend=-1.0) != 0))
    last = np.append(edges[1:], len(ticks)) - 1
    row, place = row[edges], (minute[edges] % 60).astype(int)
    for index, values in zip(_LOOKED, columns, strict=True):
        if index != LOAD:
            table[row, index, place] = values[last]
    seen = np.isfinite(load)
    table[load_row[seen], LOAD, (sampled[seen] % 60).astype(int)] = load[seen]  # of several the last stays
    above = np.where(seen & np.isfinite(capacity), (load > capacity).astype(float), np.nan)
    table[row, CAPACITY, place] = np.fmin.reduceat(capacity, edges)
    table[row, REPLICAS, place] = np.fmax.reduceat(replicas, edges)
    table[row, BRIDGE, place] = np.fmin.reduceat(bridge, edges)
    table[row, VIOLATED, place] = _mean(above, edges)
    return dict(zip(names, table, strict=True))


def _sums(content: Content) -> tuple[float, float, float]:
    """Pod-minutes, load-minutes, and those of them that met too little capacity."""
    load, violated, pods = np.nan_to_num(content[[LOAD, VIOLATED, REPLICAS]].astype(float))
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
    known = np.ascontiguousarray(lanes.T).view("<f4").reshape(-1, 60)
    found = _empty()
    found[: len(known)] = known  # a row of before has fewer columns
    return found


def forget_before(db: sqlite3.Connection, at: float) -> None:
    """Hours that had begun by then: whoever makes room for more must come further with each step."""
    for table in ("minutes", "hours"):
        db.execute(f"DELETE FROM {table} WHERE hour < ?", (at / HOUR_S,))
