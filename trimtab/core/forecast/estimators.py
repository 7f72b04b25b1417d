"""Crane's two estimators: from a signal of whole periods to the next period.

maxValue: the largest value of each phase. fft: the spectrum without its weak high frequencies. Upstream
filters bin k by the frequency k / N, also above N / 2, so that a weak slow tone keeps one of its two halves
and half its amplitude; `exact` repeats that, otherwise both halves share one fate.
"""

from __future__ import annotations

import numpy as np
from numpy import fft

from trimtab.policy import Record
from trimtab.series import Floats

_LEAST_VALUE = 0.01  # what a value that is not positive becomes


class MaxValue(Record, frozen=True):
    margin: float = 0.0


class Fft(Record, frozen=True):
    """Tones weaker than a floor and faster than `high_frequency_hz` are noise; see `amplitude_floor`."""

    min_items: int = 3
    max_items: int = 100
    high_frequency_hz: float = 1.0 / 3600.0
    low_amplitude: float = 1.0
    margin: float = 0.0


Estimator = MaxValue | Fft

DEFAULT_ESTIMATORS: tuple[Estimator, ...] = tuple(
    Fft(min_items=items, low_amplitude=amplitude, margin=margin)
    for items, amplitude in ((3, 1.0), (50, 0.05))
    for margin in (0.01, 0.10, 0.15, 0.20)
)


def next_period(estimator: Estimator, signal: Floats, period: int, step_s: float, exact: bool) -> Floats:
    """One period after the signal, margin included."""
    if isinstance(estimator, MaxValue):
        shape = signal[len(signal) % period :].reshape(-1, period).max(axis=0)
    else:
        smooth = smoothed(estimator, signal, step_s, exact)[-period:]
        shape = np.where(smooth <= 0.0, _LEAST_VALUE, smooth)
    estimated: Floats = shape * (1.0 + estimator.margin)
    return estimated


def smoothed(estimator: Fft, signal: Floats, step_s: float, exact: bool) -> Floats:
    """The signal without its noise."""
    count = len(signal)
    spectrum = np.asarray(fft.fft(signal) if exact else fft.rfft(signal))
    amplitudes = np.abs(spectrum) / count
    frequencies = np.arange(len(spectrum)) / (count * step_s)
    weak = amplitudes < amplitude_floor(estimator, amplitudes[1 : count // 2])
    kept = np.where(weak & (frequencies > estimator.high_frequency_hz), 0.0, spectrum)
    clean: Floats = fft.ifft(kept).real if exact else fft.irfft(kept, count)
    return clean


def amplitude_floor(estimator: Fft, items: Floats) -> float:
    """At least low_amplitude and the amplitude of item max_items, but never above that of item min_items.

    `items` are the amplitudes of the slower half of the spectrum without the mean; the largest is item 1.
    """
    most, least = (len(items) - min(rank, len(items)) for rank in (estimator.max_items, estimator.min_items))
    ordered = np.partition(items, (most, least))
    floor = max(float(ordered[most]), estimator.low_amplitude)
    return min(floor, float(ordered[least])) if len(items) >= estimator.min_items else floor
