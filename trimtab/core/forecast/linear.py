"""The line of best fit through the last observations, read at now + start-up time (document 003; PHPA).

slope = cov(t, y) / var(t); predicted = mean(y) + slope * (now + startup - mean(t)). The document lets the
line only raise: max(predicted, current). `exact` is its program: its own short window, slope < 0 keeps the current
value, else the line counts even where it lies below it. `both_ways` is PHPA: the plain line through the newest replica
counts. Our own line looks back as far as it looks ahead, and at least three minutes; it stays silent until it has seen
as much of the past as it looks ahead: two noisy observations five seconds apart say nothing about the next minute.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from trimtab.core.forecast.dated import Dates, certain, known_at, outdated, too_short
from trimtab.core.forecast.forecaster import Forecaster
from trimtab.core.model import Forecast, Missing, Reason
from trimtab.policy import Record
from trimtab.series import Floats, Frame, Series

Point = tuple[float, float]  # (at, value)

LEAST_WINDOW_S, MOST_WINDOW_S = 180.0, 3600.0
MOST_POINTS = 40  # a line through more is no better, and pairs of points cost their square
STALE_S = 180.0
_HAIR = 1e-6


class LinearOptions(Record, frozen=True):
    """`per_pod` is parity: utilisation of each pod, which drops when pods are added; else total demand."""

    multiplier: float = 20.0  # `exact`: the window is this many start-up times long ...
    cap_s: float = 180.0  # ... but not longer than this
    spacing_s: float = 5.0  # observations closer than this to the one before are refused
    history_size: int | None = None  # PHPA: so many of the newest observations instead of a window
    slope_quantile: float | None = None  # of the slopes between all pairs, instead of least squares: see cautious_lines
    per_pod: bool = False
    exact: bool = False
    both_ways: bool = False
    valid_s: float = 60.0


DEFAULT = LinearOptions()


def forecast(frame: Frame, horizon_s: float, at: float, options: LinearOptions = DEFAULT) -> list[Forecast | Missing]:
    """One line for each row over the observations up to `at`, read at `at + horizon_s`."""
    known = known_at(frame, at)
    return forecast_recent([known.row(row) for row in range(len(frame.names))], horizon_s, at, options)


def forecast_recent(
    observed: Sequence[Series], horizon_s: float, at: float, options: LinearOptions = DEFAULT
) -> list[Forecast | Missing]:
    """The same from observations as they came, each series at its own times."""
    return [_line(recent_of(series, at, horizon_s, options), horizon_s, at, options) for series in observed]


def _line(recent: Series, horizon_s: float, at: float, options: LinearOptions) -> Forecast | Missing:
    needs_s, count = _needs_s(horizon_s, options), len(recent)
    if count == 0 or (needs_s and at - recent.times[-1] > STALE_S):
        return outdated(at, "no observation inside the window")
    if count == 1 and not options.both_ways:
        return Missing(reason=Reason.NOT_ENOUGH_HISTORY, detail="1 observation, a line needs 2")
    if needs_s and at - recent.times[0] < needs_s - _HAIR:
        return too_short(at - float(recent.times[0]), needs_s)
    value = float(predict(recent.times - at, recent.values[None, :], horizon_s, options)[0])
    return certain("linear", Dates(at, at + options.valid_s), value, options.per_pod)


def _needs_s(horizon_s: float, options: LinearOptions) -> float:
    """How much of the past a line must have seen; the programs of others ask for none."""
    if options.exact or options.both_ways or options.history_size is not None:
        return 0.0
    return min(horizon_s, window_s(horizon_s, options))


def recent_of(series: Series, at: float, horizon_s: float, options: LinearOptions) -> Series:
    """The observations that count: the newest few, or those inside the window."""
    if options.history_size is not None:
        return Series(series.times[-options.history_size :], series.values[-options.history_size :])
    edge = at - window_s(horizon_s, options)
    if options.exact or options.both_ways:
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
    """How far back observations count."""
    if options.exact or options.both_ways:
        return min(options.multiplier * horizon_s, options.cap_s)
    return min(max(LEAST_WINDOW_S, horizon_s), MOST_WINDOW_S)


def observe(
    history: tuple[Point, ...], at: float, value: float, startup_s: float, options: LinearOptions = DEFAULT
) -> tuple[Point, ...]:
    """Document 003's program: what has left the window goes, and two observations keep their distance."""
    cutoff = at - min(options.multiplier * startup_s, options.cap_s)
    kept = tuple(point for point in history if point[0] > cutoff)
    return kept if kept and at - kept[-1][0] < options.spacing_s else (*kept, (at, value))


def fit_lines(times: Floats, values: Floats) -> tuple[Floats, Floats]:
    """Slope and intercept of each row by least squares, holes left out; NaN where all times are the same."""
    present = np.isfinite(values)
    count = present.sum(axis=1, keepdims=True)
    filled = np.where(present, values, 0.0)
    clock = np.broadcast_to(times, values.shape)
    with np.errstate(invalid="ignore", divide="ignore"):
        middle = (clock * present).sum(axis=1, keepdims=True) / count
        mean = filled.sum(axis=1, keepdims=True) / count
        away = np.where(present, clock - middle, 0.0)
        slope = (away * np.where(present, values - mean, 0.0)).sum(axis=1) / (away * away).sum(axis=1)
    return slope, mean[:, 0] - slope * middle[:, 0]


def cautious_lines(times: Floats, values: Floats, quantile: float) -> tuple[Floats, Floats]:
    """Slope: a quantile of the slopes between all pairs (Theil, Sen: the median); intercept: the median of the rest.

    A single jump lies between at most half of the pairs, so below the median it is no slope, however high it is.
    """
    first, last = _pairs(len(times))
    slope = _ranked((values[:, last] - values[:, first]) / (times[last] - times[first]), quantile)
    return slope, _ranked(values - slope[:, None] * times, 0.5)


@cache
def _pairs(count: int) -> tuple[np.ndarray, np.ndarray]:
    first, last = np.triu_indices(count, 1)
    return first, last


def _ranked(values: Floats, quantile: float) -> Floats:
    """The quantile of each row by rank, holes left out; NaN where there is nothing."""
    count = np.isfinite(values).sum(axis=1)
    rank = np.floor(quantile * np.maximum(count - 1, 0)).astype(int)
    padded = np.column_stack([np.sort(values, axis=1), np.full(len(values), np.nan)])  # holes are sorted last
    ranked: Floats = np.take_along_axis(padded, rank[:, None], axis=1)[:, 0]
    return ranked


def predict(times: Floats, values: Floats, ahead_s: float, options: LinearOptions = DEFAULT) -> Floats:
    """Each row's value at `ahead_s`; times count from now, for unix seconds squared would eat the digits."""
    if values.shape[1] == 0:
        return np.full(len(values), np.nan)
    quantile = options.slope_quantile
    slope, intercept = fit_lines(times, values) if quantile is None else cautious_lines(times, values, quantile)
    line = intercept + slope * ahead_s
    current = _newest(values)
    if options.both_ways:
        return np.where(np.isfinite(line), line, current)  # a single sample is its own forecast
    if options.exact:
        return np.where(slope < 0, current, line)
    return np.maximum(line, current)


def _newest(values: Floats) -> Floats:
    """The last present value of each row."""
    present = np.isfinite(values)
    last = values.shape[1] - 1 - np.argmax(present[:, ::-1], axis=1)
    newest_values: Floats = values[np.arange(len(values)), last]
    return newest_values


def newest(history: tuple[Point, ...], count: int) -> tuple[Point, ...]:
    """The `count` newest points in order of time, whatever order they come in."""
    return tuple(sorted(history))[max(0, len(history) - count) :]


FORECASTER = Forecaster(forecast, LinearOptions, within_tick=True)
