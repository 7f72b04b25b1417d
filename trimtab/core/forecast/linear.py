"""The line of best fit through the last observations, read at now + start-up time (predictive HPA, McNaughton; PHPA).

slope = cov(t, y) / var(t); predicted = mean(y) + slope * (now + startup - mean(t)). The line may only raise:
max(predicted, current). `exact` is McNaughton's program: its own short window, slope < 0 keeps the current value, and
the line counts even where it lies below it. Our own line looks back as far as it looks ahead, and at least three
minutes. It abstains until it has seen as much history as it looks ahead: two noisy observations five seconds apart say
nothing about the next minute.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import inf, sqrt

import numpy as np

from trimtab.core.forecast.forecaster import Dates, Forecaster, InTick, certain, known_at, outdated, too_short
from trimtab.core.model import Forecast, Missing, Reason
from trimtab.policy import Record
from trimtab.series import Floats, Frame, Series

LEAST_WINDOW_S, MOST_WINDOW_S = 180.0, 3600.0
EXACT_WINDOW_STARTUPS, EXACT_MOST_WINDOW_S = 20.0, 180.0
MOST_POINTS = 40  # a line through more is no better, and pairs of points cost their square
STALE_S = 180.0
EXACT_REST_S = 300.0  # its longer rest after a scaling: all that it looks back on is of the present pods then
EXACT_STALE_S = 5.0  # McNaughton's program predicts in the pass that measures, and keeps observations 5 s apart
METRIC_MEAN_S = 60.0  # metrics are means of so long
TREND_S = 900.0
CLEAR_RISE, SLOW_RISE = 5.0, 3.0  # standard errors, within the line's window and within the longer one
LEAST_NOISE = 0.001  # of the load: measured values are rounded, and so are those that a restart kept
DEVIATION_OF_MEDIAN = 1.4826  # from the median deviation of normal noise to its standard deviation
_HAIR = 1e-6


class LinearOptions(Record, frozen=True):
    """`per_pod`: the rows are the utilization of each pod, which drops when pods are added; else total demand."""

    history_size: int | None = None  # PHPA: this many of the newest observations instead of a window
    slope_quantile: float | None = None  # of the slopes between all pairs, instead of least squares: see cautious_line
    abstains: bool = False  # where the load shows no trend beyond its noise: see rises
    per_pod: bool = False
    exact: bool = False
    rest_s: float = EXACT_REST_S  # of `exact`: the present counts so long after the pods changed
    valid_s: float = 60.0

    @property
    def as_its_source(self) -> bool:
        return self.exact or self.history_size is not None


DEFAULT = LinearOptions()


def forecast(frame: Frame, horizon_s: float, at: float, options: LinearOptions = DEFAULT) -> list[Forecast | Missing]:
    """Draw one line for each row over the observations up to `at`, and read it at `at + horizon_s`."""
    known = known_at(frame, at)
    return forecast_recent([known.row(row) for row in range(len(frame.names))], horizon_s, at, options)


def forecast_recent(
    observed: Sequence[Series], horizon_s: float, at: float, options: LinearOptions = DEFAULT
) -> list[Forecast | Missing]:
    """Do the same from observations as they came, each series at its own times."""
    return [_line(series, horizon_s, at, options) for series in observed]


def _line(series: Series, horizon_s: float, at: float, options: LinearOptions) -> Forecast | Missing:
    recent = recent_of(series, at, horizon_s, options)
    needs_s = 0.0 if options.as_its_source else min(horizon_s, window_s(horizon_s, options))
    stale_s = EXACT_STALE_S if options.exact else STALE_S if needs_s else inf
    if len(recent) == 0 or at - recent.times[-1] > stale_s:
        return outdated(at, "no observation inside the window")
    if len(recent) == 1:
        return Missing(reason=Reason.NOT_ENOUGH_HISTORY, detail="1 observation, a line needs 2")
    if needs_s and at - recent.times[0] < needs_s - _HAIR:
        return too_short(at - float(recent.times[0]), needs_s)
    if options.abstains and not rises(series, recent, at):
        return Missing(reason=Reason.NOT_PREDICTABLE, detail="the load shows no trend beyond its noise")
    value = predict(recent.times - at, recent.values, horizon_s, options)
    return certain("linear", Dates(at, at + options.valid_s), value, options.per_pod)


def recent_of(series: Series, at: float, horizon_s: float, options: LinearOptions) -> Series:
    """Return the observations that count: the newest few, or those inside the window."""
    if options.history_size is not None:
        return Series(series.times[-options.history_size :], series.values[-options.history_size :])
    edge = at - window_s(horizon_s, options)
    if options.exact:
        return _part(series, np.flatnonzero(series.times > edge))
    # Both ends count: from the newest observation that is not younger than the edge, unless it is far from it.
    first = int(np.searchsorted(series.times, edge + _HAIR, side="right")) - 1
    return _thinned(series, max(first, int(np.searchsorted(series.times, edge - LEAST_WINDOW_S / 3))))


def _thinned(series: Series, first: int) -> Series:
    """Return the observations from the first one on, or so many of them as a line needs."""
    count = len(series) - first
    if count <= MOST_POINTS:
        return _part(series, np.arange(first, len(series)))
    return _part(series, first + np.linspace(0, count - 1, MOST_POINTS).round().astype(np.intp))


def _part(series: Series, places: np.ndarray) -> Series:
    return Series(series.times[places], series.values[places])


def window_s(horizon_s: float, options: LinearOptions = DEFAULT) -> float:
    """Return how far back observations count."""
    if options.exact:
        return min(EXACT_WINDOW_STARTUPS * horizon_s, EXACT_MOST_WINDOW_S)
    return min(max(LEAST_WINDOW_S, horizon_s), MOST_WINDOW_S)


def predict(times: Floats, values: Floats, ahead_s: float, options: LinearOptions = DEFAULT) -> float:
    """Return the value at `ahead_s`. Times count from now, because squared unix seconds lose digits."""
    quantile = options.slope_quantile
    slope, intercept = fit_line(times, values) if quantile is None else cautious_line(times, values, quantile)
    line, current = intercept + slope * ahead_s, float(values[-1])
    if options.exact:
        return current if slope < 0 else line
    return max(line, current)


def fit_line(times: Floats, values: Floats) -> tuple[float, float]:
    """Return slope and intercept by least squares; a level line where all times are the same."""
    away = times - times.mean()
    spread = float(away @ away)
    slope = float(away @ (values - values.mean())) / spread if spread else 0.0
    return slope, float(values.mean() - slope * times.mean())


def cautious_line(times: Floats, values: Floats, quantile: float) -> tuple[float, float]:
    """Return a quantile of the slopes between all pairs (Theil, Sen: the median), and the median intercept.

    A single jump lies between at most half of the pairs, so below the median it is no slope, however high it is.
    """
    first, last = _pairs(len(times))
    slope = _ranked((values[last] - values[first]) / (times[last] - times[first]), quantile)
    return slope, _ranked(values - slope * times, 0.5)


def rises(series: Series, recent: Series, at: float) -> bool:
    """Return whether the load rises beyond its noise: clearly in the line's window, or within the last 15 minutes.

    The line's own few minutes cannot tell a slow ramp from noise, the longer window cannot see a ramp that has just
    begun. The line is drawn through the short window either way.
    """
    trend = int(np.searchsorted(series.times, at - TREND_S))
    return significance(recent) >= CLEAR_RISE or significance(_thinned(series, trend)) >= SLOW_RISE


def significance(series: Series) -> float:
    """Return the median slope between all pairs of observations, in its standard errors; 0 where it does not rise.

    The residuals are measured by their median deviation, so that a pod that starts or a missing scrape does not hide a
    ramp. Metrics are means of a minute: observations that are closer count as one.
    """
    times, values = series.times, series.values
    if len(times) < 4:
        return 0.0
    slope, intercept = cautious_line(times, values, 0.5)
    if slope <= 0:
        return 0.0
    noise = DEVIATION_OF_MEDIAN * _ranked(np.abs(values - intercept - slope * times), 0.5)
    noise = max(noise, LEAST_NOISE * float(np.abs(values).max()))
    apart = min(len(times), (times[-1] - times[0]) / METRIC_MEAN_S + 1)
    return slope * float(times.std()) * sqrt(max(apart - 2.0, 1.0)) / noise


@cache
def _pairs(count: int) -> tuple[np.ndarray, np.ndarray]:
    first, last = np.triu_indices(count, 1)
    return first, last


def _ranked(values: Floats, quantile: float) -> float:
    rank = int(quantile * (len(values) - 1))
    return float(np.partition(values, rank)[rank])


def span_s(horizon_s: float, options: LinearOptions) -> float:
    """Return how much of the history a tick reads."""
    if options.history_size is not None:
        return MOST_WINDOW_S
    return max(window_s(horizon_s, options), TREND_S if options.abstains else 0.0)


FORECASTER = Forecaster(forecast, LinearOptions, in_tick=InTick(forecast_recent, span_s))
