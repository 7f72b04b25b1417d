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

import numpy as np

from trimtab.core.forecast.forecaster import Dates, Forecaster, InTick, certain, known_at, outdated, too_short
from trimtab.core.model import Forecast, Missing, Reason
from trimtab.policy import Record
from trimtab.series import Floats, Frame, Series

LEAST_WINDOW_S, MOST_WINDOW_S = 180.0, 3600.0
EXACT_WINDOW_STARTUPS, EXACT_MOST_WINDOW_S = 20.0, 180.0
MOST_POINTS = 40  # a line through more is no better, and pairs of points cost their square
STALE_S = 180.0
_HAIR = 1e-6


class LinearOptions(Record, frozen=True):
    """`per_pod`: the rows are the utilization of each pod, which drops when pods are added; else total demand."""

    history_size: int | None = None  # PHPA: this many of the newest observations instead of a window
    slope_quantile: float | None = None  # of the slopes between all pairs, instead of least squares: see cautious_line
    per_pod: bool = False
    exact: bool = False
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
    return [_line(recent_of(series, at, horizon_s, options), horizon_s, at, options) for series in observed]


def _line(recent: Series, horizon_s: float, at: float, options: LinearOptions) -> Forecast | Missing:
    needs_s = 0.0 if options.as_its_source else min(horizon_s, window_s(horizon_s, options))
    if len(recent) == 0 or (needs_s and at - recent.times[-1] > STALE_S):
        return outdated(at, "no observation inside the window")
    if len(recent) == 1:
        return Missing(reason=Reason.NOT_ENOUGH_HISTORY, detail="1 observation, a line needs 2")
    if needs_s and at - recent.times[0] < needs_s - _HAIR:
        return too_short(at - float(recent.times[0]), needs_s)
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
    first = max(first, int(np.searchsorted(series.times, edge - LEAST_WINDOW_S / 3)))
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


@cache
def _pairs(count: int) -> tuple[np.ndarray, np.ndarray]:
    first, last = np.triu_indices(count, 1)
    return first, last


def _ranked(values: Floats, quantile: float) -> float:
    rank = int(quantile * (len(values) - 1))
    return float(np.partition(values, rank)[rank])


def span_s(horizon_s: float, options: LinearOptions) -> float:
    """Return how much of the history a tick reads."""
    return MOST_WINDOW_S if options.history_size is not None else window_s(horizon_s, options)


FORECASTER = Forecaster(forecast, LinearOptions, in_tick=InTick(forecast_recent, span_s))
