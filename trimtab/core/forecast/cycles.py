"""The period at which a series repeats, of any length from an hour to half its history, or why there is none.

Candidates are spectral lines above Fisher's bound: with M lines, P_k / sum(P) of white noise exceeds 1 -
(alpha / M)^(1 / (M - 1)) with probability alpha. A candidate counts when the autocorrelation over measured
bins has a clear peak there; of peaks nearly as high as the best the shortest is the period. Multiples of it
sharpen it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy import fft

from trimtab.core.forecast.batches import Batch
from trimtab.series import Floats

CALENDAR_S = (3600.0, 6 * 3600.0, 12 * 3600.0, 86400.0, 604800.0)
SHORTEST_S = 3600.0
_ALPHA = 1e-3
_CANDIDATES = 6
_LEAST_CORRELATION = 0.3
_PROMINENCE = 0.1  # how far the correlation must fall before it rises to the peak
_NEARLY = 0.95
_SNAP = 0.85


class Cycle(NamedTuple):
    """`lag` in bins, possibly fractional; 0 when there is none, and then the best correlation that was seen."""

    lag: float
    correlation: float


def find_cycles(batch: Batch) -> list[Cycle]:
    """One cycle for each row."""
    flat = detrended(batch.values)
    correlation = measured_correlation(flat, batch.present)
    strong = strong_lines(flat)
    return [_cycle(lines, row, batch.step_s) for lines, row in zip(strong, correlation, strict=True)]


def detrended(values: Floats) -> Floats:
    """Without mean and straight line, else every trend looks like a very long period."""
    clock = np.linspace(-1.0, 1.0, values.shape[1])
    centred = values - values.mean(axis=1, keepdims=True)
    slope = centred @ clock / (clock @ clock)
    flat: Floats = centred - slope[:, None] * clock
    return flat


def measured_correlation(flat: Floats, present: Floats | np.ndarray) -> Floats:
    """Autocorrelation at every lag up to half the history, over pairs of bins that were both measured."""
    columns = flat.shape[1]
    size = fast_length(2 * columns)
    known = present.astype(float)
    sums = _lagged(np.where(present, flat, 0.0), size)[:, : columns // 2 + 1]
    pairs = _lagged(known, size)[:, : columns // 2 + 1]
    means = sums / np.maximum(pairs, 1.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation: Floats = np.where(pairs >= columns / 8, means / means[:, :1], 0.0)
    return np.nan_to_num(correlation)


def fast_length(least: int) -> int:
    """The smallest length from `least` on that is a product of 2, 3 and 5: others take several times as long."""
    odd_parts = (3**threes * 5**fives for threes in range(least.bit_length()) for fives in range(least.bit_length()))
    shortest: int = min(odd << (-(-least // odd) - 1).bit_length() for odd in odd_parts)
    return shortest


def _lagged(values: Floats, size: int) -> Floats:
    spectrum = fft.rfft(values, size, axis=1)
    products: Floats = fft.irfft(np.abs(spectrum) ** 2, size, axis=1)
    return products


def strong_lines(flat: Floats) -> list[list[int]]:
    """The few strongest frequencies of each row that chance does not explain."""
    power = np.abs(fft.rfft(flat, axis=1))[:, 1:] ** 2
    lines = power.shape[1]
    bound = 1.0 - (_ALPHA / lines) ** (1.0 / max(1, lines - 1))
    total = power.sum(axis=1, keepdims=True)
    best = np.argsort(power, axis=1)[:, : -_CANDIDATES - 1 : -1]
    share = np.take_along_axis(power, best, axis=1) / np.maximum(total, 1e-300)
    return [(row[good] + 1).tolist() for row, good in zip(best, share > bound, strict=True)]


def _cycle(lines: list[int], correlation: Floats, step_s: float) -> Cycle:
    last = len(correlation) - 1
    shortest = max(2, int(SHORTEST_S / step_s))
    peaks = [_peak(correlation, line, last, shortest) for line in lines]
    best = max((peak.correlation for peak in peaks if peak), default=0.0)
    high = [peak for peak in peaks if peak and peak.correlation >= _NEARLY * best]
    if not high:
        return Cycle(0.0, float(correlation[shortest:].max(initial=0.0)) if lines else 0.0)
    return _snapped(_sharpened(min(high), correlation), correlation, step_s)


def _peak(correlation: Floats, line: int, last: int, shortest: int) -> Cycle | None:
    """The highest correlation among the lags that this frequency may stand for, if it is a peak at all."""
    columns = 2 * last
    low, high = int(columns / (line + 0.5)), min(last, int(np.ceil(columns / max(line - 0.5, 0.5))))
    if high < shortest or low > last:
        return None
    lag = low + int(correlation[low : high + 1].argmax())
    valley = correlation[lag // 4 : lag].min(initial=1.0)
    if lag < shortest or correlation[lag] < max(_LEAST_CORRELATION, valley + _PROMINENCE):
        return None
    return Cycle(float(lag), float(correlation[lag]))


def _sharpened(cycle: Cycle, correlation: Floats) -> Cycle:
    """After m periods an error of the lag has grown m times: look there, and divide by m."""
    lag, times = cycle.lag, 2
    while times * lag < len(correlation) - 1:
        middle, around = round(times * lag), max(1, round(lag / 8))
        low = middle - around
        lag = (low + int(correlation[low : middle + around + 1].argmax())) / times
        times *= 2
    return Cycle(lag, cycle.correlation)


def _snapped(cycle: Cycle, correlation: Floats, step_s: float) -> Cycle:
    """People live by hours, days and weeks: take the calendar's period where it fits as well."""
    for calendar_s in CALENDAR_S:
        lag = calendar_s / step_s
        if abs(lag - cycle.lag) <= 0.03 * lag and round(max(lag, cycle.lag)) < len(correlation):
            times = max(1, int((len(correlation) - 1) / max(lag, cycle.lag)))
            ours, theirs = (correlation[round(times * candidate)] for candidate in (cycle.lag, lag))
            if theirs >= _SNAP * ours:
                return Cycle(lag, cycle.correlation)
    return cycle
