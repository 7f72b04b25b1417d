"""Does a series repeat itself? Spectrum peaks above pure chance, confirmed by peaks of the autocorrelation.

Shuffled samples have |X_k|^2 / (N var) distributed like exp(1), so the largest of M bins stays below t with
probability (1 - e^-t)^M. Solved for t that is the threshold which 100 random shuffles only estimate.
"""

from __future__ import annotations

from math import expm1, log

import numpy as np
from numpy import fft

from trimtab.series import Floats


def noise_ceiling(samples: int, variance: Floats | float, confidence: float) -> Floats:
    """The amplitude |X_k| that the largest of the bins 1 <= k < N/2 of shuffled samples stays below."""
    bins = max(1, samples // 2 - 1)
    power = -log(-expm1(log(confidence) / bins))
    ceiling: Floats = np.sqrt(samples * np.asarray(variance) * power)
    return ceiling


def autocorrelation(values: Floats) -> Floats:
    """Circular, of each row, with r[0] = 1; NaN where a row is constant."""
    samples = values.shape[-1]
    centred = values - values.mean(axis=-1, keepdims=True)
    power = np.abs(fft.rfft(centred, axis=-1)) ** 2
    raw = fft.irfft(power, samples, axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation: Floats = raw / raw[..., :1]
    return correlation


def is_peak(correlation: Floats, lag: int, reach: int) -> bool:
    """Rising before and falling after, by the slope of a line on either side."""
    last = len(correlation) - 1
    if not 1 <= lag <= last:
        return False
    before = correlation[max(0, lag - reach) : lag + 1]
    after = correlation[lag : min(last, lag + reach) + 1]
    return _rise(before) > 0 > _rise(after)


def _rise(values: Floats) -> float:
    """The sign of the least-squares slope."""
    return float(((np.arange(len(values)) - (len(values) - 1) / 2) * values).sum())
