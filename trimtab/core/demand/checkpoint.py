"""What a restart keeps where no Prometheus does: the last hour and fifteen days of demand, in 20 KB at most.

With more signals the bins grow, so that all of them fit. A checkpoint that is read is bounded and its shape checked.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np

from trimtab.core.demand.log import DAYS, HOLE, RECENT_S, Codes, DemandLog, codes_of, values_of
from trimtab.errors import InvalidInput
from trimtab.series import Series

VERSION = 1
MOST_BYTES = 20_000
RECENT_POINTS = 240  # an hour at a tick of 15 s
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


def _stored(log: DemandLog, key: str, at: float, step_s: float) -> StoredDemand:
    frame, recent = log.frame([key], at, step_s), log.recent(key, at, RECENT_S)
    chosen = np.unique(np.linspace(0, len(recent) - 1, min(len(recent), RECENT_POINTS)).round().astype(np.intp))
    ages = np.rint((at - recent.times[chosen]) / _GRAIN_S)
    bins = codes_of(frame.values[0])
    return StoredDemand(frame.end, step_s, _packed(bins), _packed(ages), _packed(codes_of(recent.values[chosen])))


def _load(log: DemandLog, key: str, stored: StoredDemand, at: float) -> None:
    bins, ages, recent = _unpacked(stored.bins), _unpacked(stored.ages), _unpacked(stored.recent)
    if not (stored.step_s in BINS_S and len(bins) * stored.step_s <= DAYS * 86400.0):
        raise InvalidInput("checkpoint.bins", len(bins), f"of {stored.step_s:g} s they are more than {DAYS} days")
    if not (0 < at < 1e11 and abs(stored.end - at) <= 7200.0):
        raise InvalidInput("checkpoint.at", at, "is no time that it can have been written at")
    times = (at - ages * _GRAIN_S).astype(np.float64)
    if len(ages) != len(recent) or not np.all(np.diff(times) > 0):
        raise InvalidInput("checkpoint.recent", len(recent), "one increasing time belongs to each value")
    if len(recent):
        log.restore(key, Series(times, values_of(recent)), 60.0)
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
