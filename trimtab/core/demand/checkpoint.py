"""What outlives an operator: demand that no Prometheus remembers, and what was observed last.

A checkpoint holds the last hour and fifteen days, in 20 KB at most: with more signals the bins grow, so that all of
them fit. `RecentDemand` holds a quarter of an hour and is written every minute, so that a new leader goes on where the
one before ended. What is read is bounded and its shape checked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from trimtab.core.demand.log import DAYS, HOLE, RECENT_S, Codes, DemandLog, codes_of, values_of
from trimtab.errors import InvalidInput
from trimtab.series import Series

VERSION = 1
MOST_BYTES = 20_000
RECENT_POINTS = 240  # an hour at a tick of 15 s
NEWEST_S, NEWEST_POINTS = 900.0, 64  # more than the time between two checkpoints
BINS_S = (300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0)
_GRAIN_S = 0.1  # of the last hour's times
_TWO_BYTES = "<u2"


class StoredDemand(msgspec.Struct, frozen=True):
    """One signal: codes of bins up to `end`, and of the last observations with their age in tenths of a second."""

    end: float
    step_s: float
    bins: bytes
    ages: bytes
    recent: bytes


class RecentDemand(msgspec.Struct, frozen=True, array_like=True):
    """Of one object: ages and codes of the newest observations of each signal, and the start-ups that were seen."""

    at: float
    startups_s: tuple[float, ...]
    waits_s: tuple[float, ...]  # for a node
    signals: dict[str, tuple[bytes, bytes]]


class DemandCheckpoint(msgspec.Struct, frozen=True):
    version: int
    at: float
    signals: dict[str, StoredDemand]


def save(log: DemandLog, keys: Mapping[str, str], at: float) -> bytes:
    """Encode the signals by name, with the finest bins that fit; of very many signals only the first ones."""
    known = {name: key for name, key in keys.items() if key in log}
    while True:
        for step_s in BINS_S:
            signals = {name: _stored(log, key, at, step_s) for name, key in known.items()}
            data = msgspec.json.encode(DemandCheckpoint(VERSION, at, signals))
            if len(data) <= MOST_BYTES:
                return data
        known.popitem()


def load(log: DemandLog, keys: Mapping[str, str], data: bytes) -> None:
    """Fill the holes of the log; refuse with a reason what `save` would not have written."""
    if len(data) > MOST_BYTES:
        raise InvalidInput("checkpoint", f"{len(data)} bytes", f"at most {MOST_BYTES} are read")
    try:
        found = msgspec.json.decode(data, type=DemandCheckpoint)
    except msgspec.DecodeError as error:
        raise InvalidInput("checkpoint", "demand", str(error)) from error
    if found.version != VERSION:
        raise InvalidInput("checkpoint.version", found.version, f"this trimtab reads version {VERSION}")
    for name, key in keys.items():
        if name in found.signals:
            _load(log, key, found.signals[name], found.at)


def recent_of(log: DemandLog, keys: Mapping[str, str], at: float, *startups: Sequence[float]) -> RecentDemand:
    """The last quarter of an hour of these signals, by name, and the start-ups that were seen, with their waits."""
    signals = {name: _observed(log, key, at, NEWEST_S, NEWEST_POINTS) for name, key in keys.items() if key in log}
    startups_s, waits_s = (tuple(round(each, 1) for each in times) for times in startups)
    return RecentDemand(at, startups_s, waits_s if any(waits_s) else (), signals)


def load_recent(log: DemandLog, keys: Mapping[str, str], found: RecentDemand) -> None:
    """Add what another leader observed."""
    for name, key in keys.items():
        if name in found.signals:
            log.restore_observations(key, _observations(*found.signals[name], found.at))


def _stored(log: DemandLog, key: str, at: float, step_s: float) -> StoredDemand:
    frame = log.frame([key], at, step_s)
    recent = _observed(log, key, at, RECENT_S, RECENT_POINTS)
    return StoredDemand(frame.end, step_s, _packed(codes_of(frame.values[0])), *recent)


def _observed(log: DemandLog, key: str, at: float, span_s: float, most: int) -> tuple[bytes, bytes]:
    """Ages in tenths of a second, and codes."""
    recent = log.recent(key, at, span_s)
    times, values = recent.times, recent.values
    if len(times) > most:
        chosen = np.unique(np.linspace(0, len(times) - 1, most).round().astype(np.intp))
        times, values = times[chosen], values[chosen]
    return _packed(np.rint((at - times) / _GRAIN_S)), _packed(codes_of(values))


def _observations(packed_ages: bytes, packed_codes: bytes, at: float) -> Series:
    ages, codes = _unpacked(packed_ages), _unpacked(packed_codes)
    if not 0 < at < 1e11:
        raise InvalidInput("checkpoint.at", at, "is no time that it can have been written at")
    times = (at - ages * _GRAIN_S).astype(np.float64)
    if len(ages) != len(codes) or not np.all(np.diff(times) > 0):
        raise InvalidInput("checkpoint.recent", len(codes), "one increasing time belongs to each value")
    return Series(times, values_of(codes))


def _load(log: DemandLog, key: str, stored: StoredDemand, at: float) -> None:
    bins = _unpacked(stored.bins)
    if not (stored.step_s in BINS_S and len(bins) * stored.step_s <= DAYS * 86400.0):
        raise InvalidInput("checkpoint.bins", len(bins), f"of {stored.step_s:g} s they are more than {DAYS} days")
    if not abs(stored.end - at) <= 7200.0:
        raise InvalidInput("checkpoint.at", at, "is no time that it can have been written at")
    log.restore_observations(key, _observations(stored.ages, stored.recent, at))
    if len(bins) and bool((bins != HOLE).any()):
        ends = stored.end - stored.step_s * np.arange(len(bins) - 1, -1, -1, dtype=np.float64)
        log.restore(key, Series(ends, values_of(bins)), stored.step_s)


def _packed(numbers: np.ndarray) -> bytes:
    packed: bytes = numbers.astype(_TWO_BYTES).tobytes()
    return packed


def _unpacked(data: bytes) -> Codes:
    if len(data) % 2:
        raise InvalidInput("checkpoint", f"{len(data)} bytes", "codes have two bytes each")
    return np.frombuffer(data, dtype=_TWO_BYTES).astype(np.uint16)
