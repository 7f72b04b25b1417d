"""Crane's DSP: a daily or weekly period, the best of a few estimators, repeated from now on.

`exact` keeps upstream's quirks: the autocorrelation has no floor, so noise may pass for a week, and the filter halves
weak slow tones (see `smoothed`). Upstream's random threshold is its expectation here (see `noise_ceiling`).
"""

from __future__ import annotations

from math import expm1, log
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy import fft

from trimtab.core.forecast.batches import stale
from trimtab.core.forecast.forecaster import (
    DAY_S,
    HOUR_S,
    WEEK_S,
    Dates,
    Forecaster,
    certain,
    known_at,
    outdated,
    too_short,
    unpredictable,
)
from trimtab.core.model import Forecast, Missing
from trimtab.core.weighted_percentile import rank_percentile
from trimtab.errors import InvalidInput, NotEnoughData
from trimtab.policy import Record
from trimtab.series import Floats, Frame, Series

_CONFIDENCE = 99 / 101  # the expected rank of the 99th smallest of 100 maxima
_PEAK_REACH_S = 4 * HOUR_S
_LEAST_CORRELATION = 0.3
_LOW_PERCENT, _HIGH_PERCENT = 0.1, 99.9  # what lies outside is an outlier
_LEAST_VALUE = 0.01  # replaces an estimate that is not positive
_NEAR_ZERO = 1e-3
_SHORTFALL_BASE = log(1.25)
_WORST_SHORTFALL = 1.0 - 1e-9  # a forecast of zero would be infinitely wrong


class MaxValue(Record, frozen=True):
    """Estimate each phase by its largest value."""

    margin: float = 0.0


class Fft(Record, frozen=True):
    """Estimate the next period by the last one without noise: tones weaker than a floor (see `amplitude_floor`) and
    faster than `high_frequency_hz`."""

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


class DspOptions(Record, frozen=True):
    history_s: float = 15 * DAY_S
    estimators: tuple[Estimator, ...] = DEFAULT_ESTIMATORS
    exact: bool = False
    valid_s: float = 300.0


DEFAULT = DspOptions()


class Period(NamedTuple):
    """A lag in samples, and the autocorrelation there."""

    lag: int
    correlation: float


def forecast(frame: Frame, horizon_s: float, at: float, options: DspOptions = DEFAULT) -> list[Forecast | Missing]:
    """Return the largest value predicted for [at, at + horizon_s], as the metric of an EffectiveHPA serves it."""
    check(frame.step_s, options.history_s)
    recent = known_at(frame, at).tail(int((options.history_s + HOUR_S) / frame.step_s))
    old = stale(recent, at)
    return [
        old.get(row) or _forecast_row(recent.row(row), frame.step_s, horizon_s, at, options)
        for row in range(len(frame.names))
    ]


def check(step_s: float, history_s: float) -> None:
    if step_s > HOUR_S:
        raise InvalidInput("sampleInterval", step_s, "the resolution of the history is too long: at most 1h")
    if history_s < 2 * DAY_S:
        raise InvalidInput("historyLength", history_s, "the history is too short: at least 48h")


def _forecast_row(
    series: Series, step_s: float, horizon_s: float, at: float, options: DspOptions
) -> Forecast | Missing:
    try:
        history = clean(series, step_s, HOUR_S)
    except (NotEnoughData, InvalidInput) as error:
        return unpredictable(str(error))
    predicted = predict(history, step_s, options)
    if isinstance(predicted, Missing):
        return predicted
    value = largest_between(predicted.times, predicted.values, at, at + max(horizon_s, step_s))  # a bin at least
    if value is None:
        return outdated(float(predicted.times[-1]), "the prediction ends before now: the history is too old")
    return certain("dsp", Dates(at, at + options.valid_s), value)


def largest_between(times: Floats, values: Floats, start: float, end: float) -> float | None:
    """Return the largest value predicted for start <= t <= end; None when the prediction does not reach there."""
    inside = values[(times >= start) & (times <= end)]
    return float(inside.max()) if len(inside) else None


def predict(history: Series, step_s: float, options: DspOptions = DEFAULT) -> Series | Missing:
    """Predict the next periods, as many as the history has, from its last sample on."""
    unit_s = repeating_unit_s(len(history) * step_s)
    if unit_s is None:
        return too_short(len(history) * step_s, 2 * DAY_S)
    period_s = accepted_period_s(newest_units(history, step_s, unit_s).values, step_s, options.exact)
    if isinstance(period_s, Missing):
        return period_s
    period = int(period_s / step_s)
    signal = newest_units(history, step_s, period_s).values
    best = best_estimator(signal, period, step_s, options)
    values = np.tile(next_period(best, signal, period, step_s, options.exact), len(signal) // period)
    return Series(history.times[-1] + step_s * np.arange(1, len(values) + 1), values)


# Preparing the history. Our own models take frames with holes instead.


def clean(series: Series, step_s: float, unit_s: float) -> Series:
    """Prepare a series as Crane does: cut it before long gaps, fill short ones, keep whole units, flatten outliers.

    A gap above an hour discards everything before it. Timestamps that are not a multiple of the interval apart make the
    series invalid.
    """
    whole = newest_units(fill(after_last_gap(series), step_s), step_s, unit_s)
    return Series(whole.times, without_outliers(whole.values)) if len(whole) else whole


def after_last_gap(series: Series) -> Series:
    gaps = np.flatnonzero(np.diff(series.times) > HOUR_S)
    return series.since(float(series.times[gaps[-1] + 1])) if len(gaps) else series


def fill(series: Series, step_s: float) -> Series:
    """Draw straight lines across missing samples."""
    if len(series) == 0:
        raise NotEnoughData("the series is empty: check the query and its time range")
    steps = np.diff(series.times) / step_s
    if bool((steps == 1.0).all()):
        return series
    odd = np.flatnonzero(steps != np.rint(steps))
    if len(odd):
        late = float(series.times[odd[0] + 1])
        raise InvalidInput("timestamp", late, f"must lie a multiple of {step_s:g} s after the one before")
    places = np.concatenate(([0.0], np.cumsum(steps)))
    count = int(places[-1]) + 1
    values = np.interp(np.arange(count), places, series.values)
    return Series(series.times[0] + step_s * np.arange(count), values)


def newest_units(series: Series, step_s: float, unit_s: float) -> Series:
    """Keep the newest whole units (hours, days, weeks)."""
    first = len(series) % int(unit_s / step_s)
    return Series(series.times[first:], series.values[first:])


def without_outliers(values: Floats) -> Floats:
    """Replace outliers by the value before them; the first sample stays. Series too short to tell stay as they are."""
    try:
        low, high = rank_percentile(values, _LOW_PERCENT), rank_percentile(values, _HIGH_PERCENT)
    except NotEnoughData:
        return values
    good = (values >= low) & (values <= high)
    good[0] = True
    source = np.maximum.accumulate(np.where(good, np.arange(len(values)), 0))
    flattened: Floats = values[source]
    return flattened


# Finding the period.


def repeating_unit_s(history_s: float) -> float | None:
    """Two weeks may show a weekly pattern, two days a daily one, less shows nothing."""
    return next((unit for unit in (WEEK_S, DAY_S) if history_s >= 2 * unit), None)


def accepted_period_s(signal: Floats, step_s: float, exact: bool) -> float | Missing:
    """Return a day or a week; every other period counts as none."""
    found = find_period(signal, step_s)
    if found is None:
        return unpredictable("no period stands out of the noise")
    period_s = found.lag * step_s
    if period_s not in (DAY_S, WEEK_S):
        return unpredictable(f"repeats every {period_s / HOUR_S:.1f} h, which is neither a day nor a week")
    if not exact and found.correlation < _LEAST_CORRELATION:
        return unpredictable(f"periods resemble each other too little (correlation {found.correlation:.2f})")
    return period_s


def find_period(signal: Floats, step_s: float) -> Period | None:
    """Take the lags of frequencies stronger than chance; the highest peak of the autocorrelation is the period."""
    if np.ptp(signal) == 0:
        return None
    samples = len(signal)
    strength = np.abs(np.asarray(fft.rfft(signal)))[: samples // 2]
    strong = np.flatnonzero(strength > noise_ceiling(samples, float(signal.var()), _CONFIDENCE))
    lags = np.unique(samples // strong[strong >= 2])
    correlation = autocorrelation(signal)
    reach = int(_PEAK_REACH_S / step_s)
    peaks = [
        Period(int(lag), float(correlation[lag])) for lag in lags if is_peak(correlation, lag, min(reach, lag // 2))
    ]
    best = max(peaks, key=lambda peak: (peak.correlation, peak.lag), default=None)
    return best if best is not None and best.correlation > 0 else None


def noise_ceiling(samples: int, variance: float, confidence: float) -> float:
    """Return the amplitude |X_k| that the largest of the bins 1 <= k < N/2 of shuffled samples stays below.

    Shuffled samples have |X_k|^2 / (N var) distributed like exp(1), so the largest of M bins stays below t with
    probability (1 - e^-t)^M. Solved for t, that is the threshold which 100 random shuffles only estimate.
    """
    bins = max(1, samples // 2 - 1)
    power = -log(-expm1(log(confidence) / bins))
    return float(np.sqrt(samples * variance * power))


def autocorrelation(values: Floats) -> Floats:
    """Return the circular autocorrelation, with r[0] = 1; NaN where the values are constant."""
    centred = values - values.mean()
    raw = fft.irfft(np.abs(fft.rfft(centred)) ** 2, len(values))
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation: Floats = raw / raw[0]
    return correlation


def is_peak(correlation: Floats, lag: int, reach: int) -> bool:
    """Return whether it rises before the lag and falls after it, by the slope of a line on either side."""
    last = len(correlation) - 1
    if not 1 <= lag <= last:
        return False
    before = correlation[max(0, lag - reach) : lag + 1]
    after = correlation[lag : min(last, lag + reach) + 1]
    return _rise(before) > 0 > _rise(after)


def _rise(values: Floats) -> float:
    """The sign of the least-squares slope."""
    return float(((np.arange(len(values)) - (len(values) - 1) / 2) * values).sum())


# Estimating the next period.


def best_estimator(signal: Floats, period: int, step_s: float, options: DspOptions = DEFAULT) -> Estimator:
    """Train on all periods but the last, compare with the last, and take the smallest error."""
    earlier, actual = signal[:-period], signal[-period:]
    shapes: dict[Estimator, Floats] = {}  # most estimators differ in their margin only

    def error(estimator: Estimator) -> float:
        bare = replace(estimator, margin=0.0)
        if bare not in shapes:
            shapes[bare] = next_period(bare, earlier, period, step_s, options.exact)
        return prediction_error(actual, shapes[bare] * (1.0 + estimator.margin))

    return min(options.estimators, key=error)


def next_period(estimator: Estimator, signal: Floats, period: int, step_s: float, exact: bool) -> Floats:
    """Return one period after the signal, margin included."""
    if isinstance(estimator, MaxValue):
        shape = signal[len(signal) % period :].reshape(-1, period).max(axis=0)
    else:
        smooth = smoothed(estimator, signal, step_s, exact)[-period:]
        shape = np.where(smooth <= 0.0, _LEAST_VALUE, smooth)
    estimated: Floats = shape * (1.0 + estimator.margin)
    return estimated


def smoothed(estimator: Fft, signal: Floats, step_s: float, exact: bool) -> Floats:
    """Remove weak high frequencies from the spectrum.

    Upstream filters bin k by the frequency k / N, also above N / 2, so a weak slow tone keeps one of its two halves and
    half its amplitude; `exact` repeats that, otherwise both halves are kept or removed together.
    """
    count = len(signal)
    spectrum = np.asarray(fft.fft(signal) if exact else fft.rfft(signal))
    amplitudes = np.abs(spectrum) / count
    frequencies = np.arange(len(spectrum)) / (count * step_s)
    weak = amplitudes < amplitude_floor(estimator, amplitudes[1 : count // 2])
    kept = np.where(weak & (frequencies > estimator.high_frequency_hz), 0.0, spectrum)
    clean_signal: Floats = fft.ifft(kept).real if exact else fft.irfft(kept, count)
    return clean_signal


def amplitude_floor(estimator: Fft, items: Floats) -> float:
    """Return at least low_amplitude and the amplitude of item max_items, but never above that of item min_items.

    `items` are the amplitudes of the slower half of the spectrum without the mean; the largest is item 1.
    """
    most, least = (len(items) - min(rank, len(items)) for rank in (estimator.max_items, estimator.min_items))
    ordered = np.partition(items, (most, least))
    floor = max(float(ordered[most]), estimator.low_amplitude)
    return min(floor, float(ordered[least])) if len(items) >= estimator.min_items else floor


def prediction_error(actual: Floats, predicted: Floats) -> float:
    """Return Crane's error: the mean relative error, with a relative shortfall x counted as -ln(1 - x) / ln(1.25).

    An actual value near zero makes relative errors meaningless; then it is the mean absolute error.
    """
    if bool((actual < _NEAR_ZERO).any()):
        return float(np.abs(predicted - actual).mean())
    relative = (predicted - actual) / actual
    shortfall = np.clip(-relative, 0.0, _WORST_SHORTFALL)
    return float(np.where(relative < 0, -np.log1p(-shortfall) / _SHORTFALL_BASE, relative).mean())


FORECASTER = Forecaster(forecast, DspOptions, cost=4.0)
