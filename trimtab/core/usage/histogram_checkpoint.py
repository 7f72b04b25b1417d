"""A row of the histograms as the status of a VerticalPodAutoscalerCheckpoint (v3), so that a restart forgets nothing.

Bucket weights are whole numbers scaled so that the largest is 10000; what rounds to 0 is dropped but stays in the
total. VPA's own checkpoints load as they are; ours add the facts of the safety rules, which VPA does not keep.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from math import floor, isfinite
from typing import Any

import numpy as np

from trimtab.core.usage.bank import Bank
from trimtab.core.usage.histograms import UsageHistograms
from trimtab.core.usage.peaks import note_highest
from trimtab.errors import InvalidInput
from trimtab.series import Floats

VERSION = "v3"
LARGEST = 10_000

# Times of a row, by the names under which they are written; the last three are ours.
_TIMES = {
    "firstSampleStart": "cpu_first",
    "lastSampleStart": "cpu_last",
    "lastMemorySampleStart": "memory_last",
    "memoryWatchedSince": "watched_since",
    "lastOOM": "oom_at",
}


def save(histograms: UsageHistograms, workload: str, container: str, at: float) -> dict[str, Any]:
    """What to write for one container."""
    row = histograms.row(workload, container)
    assert row is not None, f"nothing is known of {workload}/{container}"
    facts, peak = histograms.rows[row], float(histograms.memory_peaks(at)[row])
    status: dict[str, Any] = {
        "version": VERSION,
        "lastUpdateTime": _rfc3339(at),
        "cpuHistogram": save_row(histograms.cpu, row),
        "memoryHistogram": save_row(histograms.memory, row),
        "totalSamplesCount": int(facts["count"]),
    }
    status |= {name: _rfc3339(facts[key]) for name, key in _TIMES.items() if isfinite(facts[key])}
    status |= {"unseenSeconds": float(facts["unseen_s"])} if facts["unseen_s"] else {}
    status |= {"oomNeedBytes": float(facts["oom_need"])} if isfinite(facts["oom_need"]) else {}
    highest = histograms.highest[row]
    windows = {
        f"{w:.0f}": b for w, b in zip(highest["window"].tolist(), highest["bytes"].tolist(), strict=True) if w == w
    }
    status |= {"memoryHighestBytes": windows} if windows else {}
    return status | ({"memoryPeakBytes": peak} if isfinite(peak) else {})


def load(
    histograms: UsageHistograms, workload: str, container: str, status: Mapping[str, Any], path: str = "status"
) -> None:
    """Take a container up where a checkpoint left it; a bad one is refused before anything changes."""
    if status.get("version") != VERSION:
        raise InvalidInput(f"{path}.version", status.get("version"), f"only {VERSION} can be read; start afresh")
    made_at = _seconds(status, "lastUpdateTime", path)
    facts = {key: _seconds(status, name, path) for name, key in _TIMES.items() if status.get(name)}
    facts["count"] = _amount(status, "totalSamplesCount", path)
    facts["unseen_s"] = _amount(status, "unseenSeconds", path)
    if status.get("memoryPeakBytes") is not None:
        facts |= {"carried_peak": _amount(status, "memoryPeakBytes", path), "carried_at": made_at}
    if status.get("oomNeedBytes") is not None:
        facts["oom_need"] = _amount(status, "oomNeedBytes", path)
    cpu = read_row(histograms.cpu, status.get("cpuHistogram"), f"{path}.cpuHistogram")
    memory = read_row(histograms.memory, status.get("memoryHistogram"), f"{path}.memoryHistogram")
    highest = _windows(status, path)
    row = histograms.ensure_row(workload, container, made_at)
    if highest:
        window_s = histograms.settings.memory_window_s
        rows = np.full(len(highest), row, dtype=np.intp)
        times = np.array(list(highest), dtype=float) * window_s
        note_highest(histograms.highest, rows, np.array(list(highest.values())), times, window_s)
    histograms.cpu.put(row, *cpu)
    histograms.memory.put(row, *memory)
    for key, fact in facts.items():
        histograms.rows[key][row] = fact


def save_row(bank: Bank, row: int) -> dict[str, Any]:
    """One histogram."""
    weights = bank.weights[row]
    largest = float(weights.max())
    kept: dict[str, int] = {}
    if largest >= bank.epsilon:
        scaled = (floor(weight * (LARGEST / largest) + 0.5) for weight in weights.tolist())
        kept = {str(bucket): weight for bucket, weight in enumerate(scaled) if weight > 0}
    saved: dict[str, Any] = {"bucketWeights": kept, "totalWeight": float(bank.totals[row])}
    return saved | ({"referenceTimestamp": _rfc3339(bank.references[row])} if bank.references[row] else {})


def read_row(bank: Bank, saved: Any, path: str = "histogram") -> tuple[Floats, float, float]:
    """Weights, total and reference of a saved histogram."""
    if not isinstance(saved, Mapping):
        raise InvalidInput(path, saved, "a histogram is an object with bucketWeights and totalWeight")
    total, weights = _amount(saved, "totalWeight", path), np.zeros(len(bank.buckets))
    kept = saved.get("bucketWeights") or {}
    if not isinstance(kept, Mapping):
        raise InvalidInput(f"{path}.bucketWeights", kept, "write the weight of each bucket by its number")
    for key in kept:
        weights[_bucket(bank, key, path)] = _amount(kept, key, f"{path}.bucketWeights")
    reference = _seconds(saved, "referenceTimestamp", path) if saved.get("referenceTimestamp") else 0.0
    sum_saved = float(weights.sum())
    return (weights * (total / sum_saved), total, reference) if sum_saved else (weights, 0.0, reference)


def _windows(status: Mapping[str, Any], path: str) -> dict[int, float]:
    """The highest working set by the number of its window."""
    found = status.get("memoryHighestBytes") or {}
    if not isinstance(found, Mapping) or not all(str(key).isdecimal() and len(str(key)) < 12 for key in found):
        raise InvalidInput(f"{path}.memoryHighestBytes", found, "write bytes by the number of their window")
    return {int(str(key)): _amount(found, key, f"{path}.memoryHighestBytes") for key in found}


def _bucket(bank: Bank, key: object, path: str) -> int:
    try:
        bucket = int(str(key))
    except ValueError:
        bucket = -1
    if not 0 <= bucket < len(bank.buckets):
        raise InvalidInput(f"{path}.bucketWeights", key, f"buckets are numbered 0 to {len(bank.buckets) - 1}")
    return bucket


def _amount(fields: Mapping[str, Any], name: str, path: str) -> float:
    amount = fields.get(name, 0)
    if not isinstance(amount, int | float) or not (isfinite(amount) and amount >= 0):
        raise InvalidInput(f"{path}.{name}", amount, "write a number that is not negative")
    return float(amount)


def _rfc3339(at: float) -> str:
    text = datetime.fromtimestamp(float(at), UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def _seconds(fields: Mapping[str, Any], name: str, path: str) -> float:
    try:
        return datetime.fromisoformat(str(fields.get(name))).timestamp()
    except ValueError:
        raise InvalidInput(f"{path}.{name}", fields.get(name), "write a time as 2026-01-31T12:00:00Z") from None
