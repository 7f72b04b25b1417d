"""Crane's formulas, with its two misprints resolved: min <= target <= max, and a percentage is divided by 100.

target = clamp(ceil(100 * usage / request), min, max); minReplicas = ceil(lowest hourly median / (request * max));
maxReplicas = ceil(P95 * factor / (request * target)), never below minReplicas.
"""

from __future__ import annotations

from math import ceil

import numpy as np

from trimtab.core.model import RUNNING, Pod
from trimtab.series import Floats

_NOISE = 1e-9
_IDLE_MEDIAN = 0.1  # stands for a median of zero in the ratio, as upstream does
OOM_LEAST_BUMP_BYTES = 100 * 1024**2


def target_percent(usage_cores: float, request_cores: float, least: float, most: float) -> int:
    return int(max(least, min(most, ceil(100.0 * usage_cores / request_cores - _NOISE))))


def least_replicas(trough_cores: float, request_cores: float, target_ratio: float, default: int) -> int:
    """The floor that the quietest hour needs, never below the default nor below one."""
    return max(default, 1, ceil(trough_cores / (request_cores * target_ratio) - _NOISE))


def most_replicas(p95: float, request_cores: float, target_ratio: float, factor: float, least: int) -> int:
    return max(least, ceil(p95 * factor / (request_cores * target_ratio) - _NOISE))


def hourly_medians(values: Floats, hours: Floats) -> Floats:
    """The median of each hour of the day that has samples, in the order of the hours."""
    present = np.isfinite(values)
    values, whole = values[present], hours[present].astype(np.uint8)  # small integers sort in linear time
    ordered = values[np.argsort(whole, kind="stable")]
    ends = np.cumsum(np.bincount(whole, minlength=24)).tolist()
    spans = zip([0, *ends[:-1]], ends, strict=True)
    medians: Floats = np.array([_median(ordered[first:end]) for first, end in spans if end > first])
    return medians


def _median(values: Floats) -> float:
    """numpy's own takes three times as long to look for NaN, which is not here."""
    half = len(values) // 2
    if len(values) % 2:
        return float(np.partition(values, half)[half])
    ordered = np.partition(values, (half - 1, half))
    return float((ordered[half - 1] + ordered[half]) / 2)


def hours_utc(start: float, step_s: float, count: int) -> Floats:
    hours: Floats = (start + step_s * np.arange(count, dtype=np.float64)) // 3600 % 24
    return hours


def fluctuation(lowest: float, highest: float) -> float:
    """How many times busier the busiest hour is than the quietest."""
    return highest / (lowest or _IDLE_MEDIAN)


def available(pod: Pod, min_ready_s: float, at: float) -> bool:
    """Running, staying, and Ready for strictly longer than asked; with 0 at once."""
    if pod.phase != RUNNING or pod.deleting or not pod.ready:
        return False
    return min_ready_s == 0 or (pod.ready_since is not None and at - pod.ready_since > min_ready_s)


def after_oom(recommended: float, oom_bytes: float | None, ratio: float) -> float:
    """Memory that would have survived the kill."""
    if oom_bytes is None:
        return recommended
    return max(recommended, oom_bytes + OOM_LEAST_BUMP_BYTES, oom_bytes * ratio)


def on_ladder(cores: float, memory: float, ladder: tuple[tuple[float, float], ...]) -> tuple[float, float]:
    """The smallest step with enough of both, CPU first; what no step holds stays as it is."""
    fitting = [step for step in sorted(ladder) if step[0] >= cores and step[1] >= memory]
    return fitting[0] if fitting else (cores, memory)
