"""Crane's DSP: a daily or weekly period, the best of a few estimators, repeated from now on (document 000).

`exact` is upstream with its quirks: no floor for the autocorrelation, so noise may pass for a week, and a
filter that halves weak slow tones (estimators.py). The random threshold of upstream is its expectation here
(periods.py).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy import fft

from trimtab.core.forecast.accuracy import prediction_error
from trimtab.core.forecast.batches import stale
from trimtab.core.forecast.cleaning import clean
from trimtab.core.forecast.dated import Dates, certain, known_at, largest_between, outdated, too_short, unpredictable
from trimtab.core.forecast.estimators import DEFAULT_ESTIMATORS, Estimator, next_period
from trimtab.core.forecast.forecaster import Forecaster
from trimtab.core.forecast.periods import autocorrelation, is_peak, noise_ceiling
from trimtab.core.model import Forecast, Missing
from trimtab.errors import InvalidInput, NotEnoughData
from trimtab.policy import Record
from trimtab.series import Floats, Frame, Series

HOUR_S, DAY_S, WEEK_S = 3600.0, 86400.0, 604800.0
_CONFIDENCE = 99 / 101  # the expected rank of the 99th smallest of 100 maxima
_PEAK_REACH_S = 4 * HOUR_S
_LEAST_CORRELATION = 0.3


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


class Model(NamedTuple):
    estimator: Estimator
    error: float


def forecast(frame: Frame, horizon_s: float, at: float, options: DspOptions = DEFAULT) -> list[Forecast | Missing]:
    """The largest value predicted for [at, at + horizon_s], as the metric of an EffectiveHPA serves it."""
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


def predict(history: Series, step_s: float, options: DspOptions = DEFAULT) -> Series | Missing:
    """The next periods, as many as the history has, from its last sample on."""
    unit_s = repeating_unit_s(len(history) * step_s)
    if unit_s is None:
        return too_short(len(history) * step_s, 2 * DAY_S)
    period_s = accepted_period_s(history.values[len(history) % int(unit_s / step_s) :], step_s, options.exact)
    if isinstance(period_s, Missing):
        return period_s
    period = int(period_s / step_s)
    signal = history.values[len(history) % period :]
    best = best_estimator(signal, period, step_s, options)
    shape = next_period(best.estimator, signal, period, step_s, options.exact)
    values = np.tile(shape, len(signal) // period)
    return Series(history.times[-1] + step_s * np.arange(1, len(values) + 1), values)


def repeating_unit_s(history_s: float) -> float | None:
    """Two weeks may show a weekly pattern, two days a daily one, less shows nothing."""
    return next((unit for unit in (WEEK_S, DAY_S) if history_s >= 2 * unit), None)


def accepted_period_s(signal: Floats, step_s: float, exact: bool) -> float | Missing:
    """A day or a week; every other period counts as none."""
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
    """Frequencies stronger than chance give lags; the highest peak of the autocorrelation is the period."""
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


def best_estimator(signal: Floats, period: int, step_s: float, options: DspOptions = DEFAULT) -> Model:
    """Train on all periods but the last, compare with the last; the smallest error wins."""
    earlier, actual = signal[:-period], signal[-period:]
    shapes: dict[Estimator, Floats] = {}  # most estimators differ in their margin only
    tried = []
    for estimator in options.estimators:
        bare = replace(estimator, margin=0.0)
        if bare not in shapes:
            shapes[bare] = next_period(bare, earlier, period, step_s, options.exact)
        tried.append(Model(estimator, prediction_error(actual, shapes[bare] * (1.0 + estimator.margin))))
    return min(tried, key=lambda model: model.error)


FORECASTER = Forecaster(forecast, DspOptions, cost=4.0)
