"""Percentiles as Crane takes them: a load-weighted histogram with a margin, and the rank rule for P95.

estimate = P * (1 + margin) / target utilisation; a sample weighs max(least weight, its own value), so a
percentile is of the load served and not of the time passed, and it is the END of its bucket. Upstream
parses a half life and ignores it; `exact` does too, by default old samples fade.
"""

from __future__ import annotations

from math import ceil, floor

import numpy as np

from trimtab.core.usage.bank import NO_DECAY, Bank
from trimtab.core.usage.bucket_edges import BucketEdges, exponential, linear
from trimtab.errors import NotEnoughData
from trimtab.policy import Record
from trimtab.series import Floats, Frame

DAY_S = 86400.0
_CHUNK = 500  # rows at a time


class PercentileOptions(Record, frozen=True):
    """The histogram is linear when a bucket size is given, else exponential."""

    percentile: float = 0.99
    margin: float = 0.0
    target_utilization: float = 1.0
    least_weight: float = 1e-5
    max_value: float = 1e12
    bucket_size: float | None = None
    first_bucket_size: float = 1e-3
    growth: float = 0.05
    half_life_s: float = DAY_S
    epsilon: float = 1e-10
    exact: bool = False
    valid_s: float = 3600.0  # as a forecast


DEFAULT = PercentileOptions()
CRANE = PercentileOptions(bucket_size=0.1, max_value=100.0, exact=True)  # its CPU histogram, in cores


def estimate(frame: Frame, options: PercentileOptions = DEFAULT) -> Floats:
    """Percentile, margin and target utilisation of each row; 0 where there is no sample."""
    raw = weighted_percentiles(frame, options)
    scaled: Floats = raw * (1.0 + options.margin) / options.target_utilization
    return scaled


def weighted_percentiles(frame: Frame, options: PercentileOptions = DEFAULT) -> Floats:
    """The end of the bucket in which the load-weighted percentile of each row lies."""
    parts = [frame.values[first : first + _CHUNK] for first in range(0, len(frame.names), _CHUNK)]
    return np.concatenate([_percentiles(part, frame.step_s, options) for part in parts] or [np.empty(0)])


def _percentiles(values: Floats, step_s: float, options: PercentileOptions) -> Floats:
    half_life_s = NO_DECAY if options.exact else options.half_life_s
    bank = Bank(buckets_of(options), len(values), half_life_s, options.epsilon)
    rows, columns = np.nonzero(np.isfinite(values))
    samples = values[rows, columns]
    bank.add(rows, samples, np.maximum(options.least_weight, samples), columns * step_s)
    ends: Floats = bank.percentiles([options.percentile])[0]
    return ends


def buckets_of(options: PercentileOptions) -> BucketEdges:
    if options.bucket_size is not None:
        return linear(options.max_value, options.bucket_size)
    return exponential(options.max_value, options.first_bucket_size, 1.0 + options.growth)


def rank_percentile(values: Floats, percent: float) -> float:
    """The value of rank percent * n / 100; between two ranks their mean. Too few values have no such rank."""
    index = percent / 100.0 * len(values)
    if len(values) == 1 and 0 < percent <= 100:
        return float(values[0])
    if not 0 < percent <= 100 or index < 1:
        raise NotEnoughData(f"{len(values)} values have no percentile {percent:g}: ask for one in (0, 100]")
    lower = floor(index)
    if index == lower:
        return float(np.partition(values, lower - 1)[lower - 1])
    pair = np.partition(values, (lower - 1, ceil(index) - 1))
    return float((pair[lower - 1] + pair[lower]) / 2)
