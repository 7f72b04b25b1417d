"""What PromQL makes of stored samples at every point of a grid: rate(x[w]), and the value of x itself.

rate = increase x (sampled + to_start + to_end) / sampled / w, over the samples in (t - w, t]: a fall is a reset, after
which a counter begins at nothing; an end of the window is reached where it is nearer than 1.1 mean distances, else half
a distance; and never further back than the counter would have been zero. Windows are open on the left, as in
Prometheus 3. Source: promql/functions.go, extrapolatedRate.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trimtab.history.source import TimeGrid
from trimtab.series import Floats

Ints = NDArray[np.int64]

LOOKBACK_MS = 300_000  # Prometheus' default: an older sample is no value
STALE = 0x7FF0000000000002  # the NaN that says that a series has ended
NEAR = 1.1


class StoredSamples(NamedTuple):
    """Samples of many series, one series after the other, each in the order of time."""

    times_ms: Ints
    values: Floats
    counts: Ints  # samples of each series

    @property
    def owner(self) -> Ints:
        """The series of each sample."""
        return np.repeat(np.arange(len(self.counts)), self.counts)

    def some(self, first: int, after: int) -> StoredSamples:
        """Those of a few of the series."""
        begin, end = int(self.counts[:first].sum()), int(self.counts[:after].sum())
        return StoredSamples(self.times_ms[begin:end], self.values[begin:end], self.counts[first:after])


def in_order(samples: StoredSamples) -> StoredSamples:
    """Chunks of one series may overlap: sorted then, and of samples at the same time the first is kept."""
    same = np.diff(samples.owner) == 0
    if (np.diff(samples.times_ms)[same] > 0).all():
        return samples
    order = np.lexsort((samples.times_ms, samples.owner))
    times, owner = samples.times_ms[order], samples.owner[order]
    first = np.append(True, (np.diff(times) != 0) | (np.diff(owner) != 0))
    counts = np.bincount(owner[first], minlength=len(samples.counts))
    return StoredSamples(times[first], samples.values[order][first], counts)


def value(samples: StoredSamples, span: TimeGrid) -> Floats:
    """The newest value of each series at each step; NaN where it is too old or the series has ended."""
    if not len(samples.values):
        return np.full((len(samples.counts), span.steps), np.nan)
    seen = _seen(samples, span, 0)
    newest = np.maximum(seen - 1, 0)
    fresh = (seen > _begin(samples)) & (_steps_ms(span) - samples.times_ms[newest] < LOOKBACK_MS)
    return np.where(fresh, samples.values[newest], np.nan)


def rate(samples: StoredSamples, span: TimeGrid, window_s: float) -> Floats:
    """The increase per second of each counter over the window that ends at each step."""
    samples = _without_marks(samples)
    if not len(samples.values):
        return np.full((len(samples.counts), span.steps), np.nan)
    window_ms = round(window_s * 1000)
    first = _seen(samples, span, window_ms)
    held = _seen(samples, span, 0) - first
    last = np.maximum(first + held - 1, 0)
    first = np.minimum(first, len(samples.values) - 1)
    increase = _increase(samples.values, first, last)
    started, ended = samples.times_ms[first], samples.times_ms[last]
    with np.errstate(divide="ignore", invalid="ignore"):  # windows without two samples, which are left out
        sampled = (ended - started) / 1000
        apart = sampled / (held - 1)
        end = _steps_ms(span)
        to_start = _reach((started - (end - window_ms)) / 1000, apart)
        rising = (increase > 0) & (samples.values[first] >= 0)
        np.fmin(to_start, sampled * (samples.values[first] / increase), out=to_start, where=rising)
        to_end = _reach((end - ended) / 1000, apart)
        increase *= (sampled + to_start + to_end) / sampled / window_s
    increase[held < 2] = np.nan
    return increase


def _reach(distance: Floats, apart: Floats) -> Floats:
    return np.where(distance >= apart * NEAR, apart / 2, distance)


def _increase(values: Floats, first: Ints, last: Ints) -> Floats:
    increase = values[last] - values[first]
    before = np.where(values[1:] < values[:-1], values[:-1], 0.0)  # what a counter had reached when it fell
    if not before.any():
        return increase
    falls = np.concatenate([[0], np.cumsum(before != 0)])
    within = falls[last] != falls[first]
    bounds = np.stack([first[within], last[within]], axis=1).ravel()
    increase[within] += np.add.reduceat(np.append(before, 0.0), bounds)[::2]
    return increase


def _without_marks(samples: StoredSamples) -> StoredSamples:
    kept = samples.values.view(np.uint64) != STALE
    if kept.all():
        return samples
    counts = np.bincount(samples.owner[kept], minlength=len(samples.counts))
    return StoredSamples(samples.times_ms[kept], samples.values[kept], counts)


def _seen(samples: StoredSamples, span: TimeGrid, ago_ms: int) -> Ints:
    """The place after the newest sample of each series that is not later than `ago_ms` before each step."""
    start_ms, step_ms = round(span.start * 1000), round(span.step_s * 1000)
    step = -((start_ms - ago_ms - samples.times_ms) // step_ms)  # the first step that sees this sample
    step = np.clip(step, 0, span.steps, out=step) + samples.owner * (span.steps + 1)
    new = np.bincount(step, minlength=len(samples.counts) * (span.steps + 1)).reshape(-1, span.steps + 1)
    return np.cumsum(new[:, :-1], axis=1) + _begin(samples)


def _begin(samples: StoredSamples) -> Ints:
    return (np.cumsum(samples.counts) - samples.counts)[:, None]


def _steps_ms(span: TimeGrid) -> Ints:
    return round(span.start * 1000) + round(span.step_s * 1000) * np.arange(span.steps)
