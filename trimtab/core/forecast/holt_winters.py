"""Holt-Winters with fixed coefficients, step by step as statsmodels runs it for PHPA; batched over rows.

additive: l' = a (y - s) + (1 - a)(l + b); b' = B (l' - l) + (1 - B) b; s' = g (y - l - b) + (1 - g) s, and
predicted = l + h b + s. Multiplicative trend or season: products
and powers instead. Nothing is fitted: coefficients are given, start values follow statsmodels' rules. Unlike PHPA, the
series always runs forward in time, and the model abstains where "the same as now" is as good.
"""

from __future__ import annotations

import enum
from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from trimtab.core.forecast.batches import Batch, batches, unusable
from trimtab.core.forecast.forecaster import DAY_S, HOUR_S, Dates, Forecaster, certain, known_at, unpredictable
from trimtab.core.forecast.held_out import AccuracyGate, admitted, quantiles
from trimtab.core.model import Forecast, Missing
from trimtab.policy import Record
from trimtab.series import Floats, Frame

_LEVEL_SAMPLES = 10
_MOST_CYCLES = 5


class ComponentType(enum.StrEnum):
    ADD = "add"
    MUL = "mul"


class State(NamedTuple):
    """Level, trend and season of each row before the first sample; seasons[row, phase]."""

    level: Floats
    trend: Floats
    seasons: Floats


class HoltWintersOptions(Record, frozen=True):
    """`exact` gives PHPA's number: one value, missing only where the history is too short or too old."""

    season: int | None = None  # in samples; None: one day
    alpha: float = 0.5
    beta: float = 0.01
    gamma: float = 0.3
    trend: ComponentType = ComponentType.ADD
    seasonal: ComponentType = ComponentType.ADD
    exact: bool = False
    gate: AccuracyGate = AccuracyGate()
    valid_s: float = 300.0


DEFAULT = HoltWintersOptions()


class Path(NamedTuple):
    """levels[:, t] and trends[:, t] before sample t was seen, seasons[:, t] for sample t."""

    levels: Floats
    trends: Floats
    seasons: Floats


def forecast(
    frame: Frame, horizon_s: float, at: float, options: HoltWintersOptions = DEFAULT
) -> list[Forecast | Missing]:
    """Return the value at `at + horizon_s`, in whole steps of the frame; holes are filled with straight lines."""
    known = known_at(frame, at)
    season = options.season or max(2, round(DAY_S / frame.step_s))
    least_s = least_samples(season) * frame.step_s
    skip = _not_positive(known, options) | unusable(known, at, least_s)
    answers: dict[int, Forecast | Missing] = dict(skip)
    steps = max(1, ceil((at + horizon_s - known.end) / frame.step_s))
    dates = Dates(at, at + options.valid_s)
    for batch in batches(known, skip, least_s, frame.step_s if options.exact else HOUR_S):
        answers.update(zip(batch.rows.tolist(), _forecast_rows(batch, season, steps, dates, options), strict=True))
    return [answers[row] for row in range(len(frame.names))]


def _not_positive(frame: Frame, options: HoltWintersOptions) -> dict[int, Missing]:
    if ComponentType.MUL not in (options.trend, options.seasonal):
        return {}
    refused = unpredictable("a multiplicative trend or season needs values above zero")
    return dict.fromkeys(np.flatnonzero((frame.values <= 0).any(axis=1)).tolist(), refused)


def _forecast_rows(
    batch: Batch, season: int, steps: int, dates: Dates, options: HoltWintersOptions
) -> list[Forecast | Missing]:
    path = smooth(batch.values, season, options)
    last = ahead(path, slice(-1, None), steps, season, options)[:, 0]
    if options.exact:
        return [certain("holtWinters", dates, value) for value in last.tolist()]
    return _gated(batch.values, path, last, season, steps, dates, options)


def _gated(
    series: Floats, path: Path, last: Floats, season: int, steps: int, dates: Dates, options: HoltWintersOptions
) -> list[Forecast | Missing]:
    """Every step of the newer half was a forecast of unseen data: its errors are the uncertainty."""
    middle, end = series.shape[1] // 2, series.shape[1] - steps
    predicted = ahead(path, slice(middle, end + 1), steps, season, options)
    now, later = series[:, middle - 1 : end], series[:, middle + steps - 1 :]
    errors = np.sort(later - predicted, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = np.abs(errors).sum(axis=1) / np.abs(later - now).sum(axis=1)
    shifts = quantiles(errors, options.gate.probabilities)
    return admitted("holtWinters", last, shifts, ratios, options.gate, dates)


def smooth(series: Floats, season: int, options: HoltWintersOptions) -> Path:
    """Run the recursion over the samples."""
    rows, count = series.shape
    first = start_state(series, season, options.trend, options.seasonal)
    levels, trends = np.empty((rows, count + 1)), np.empty((rows, count + 1))
    seasons = np.empty((rows, count + season))
    levels[:, 0], trends[:, 0], seasons[:, :season] = first.level, first.trend, first.seasons
    trend_adds, season_adds = options.trend is ComponentType.ADD, options.seasonal is ComponentType.ADD
    alpha, beta, gamma = options.alpha, options.beta, options.gamma
    for t in range(count):
        level, slope, value, usual = levels[:, t], trends[:, t], series[:, t], seasons[:, t]
        along = level + slope if trend_adds else level * slope
        levels[:, t + 1] = alpha * (value - usual if season_adds else value / usual) + (1 - alpha) * along
        moved = levels[:, t + 1] - level if trend_adds else levels[:, t + 1] / level
        trends[:, t + 1] = beta * moved + (1 - beta) * slope
        seasons[:, t + season] = gamma * (value - along if season_adds else value / along) + (1 - gamma) * usual
    return Path(levels, trends, seasons)


def ahead(path: Path, origins: slice, steps: int, season: int, options: HoltWintersOptions) -> Floats:
    """Return what was predicted `steps` ahead of each origin."""
    level, trend = path.levels[:, origins], path.trends[:, origins]
    first = origins.indices(path.levels.shape[1])[0] + (steps - 1) % season
    if options.exact and steps >= season:
        # statsmodels forgets the newest seasonal value from here on and takes the one a season before it.
        first = origins.indices(path.levels.shape[1])[0] - 1 + (steps - season) % season
    along = level + trend * steps if options.trend is ComponentType.ADD else level * trend**steps
    usual = path.seasons[:, first : first + level.shape[1]]
    predicted: Floats = along + usual if options.seasonal is ComponentType.ADD else along * usual
    return predicted


# Level, trend and season before the first sample.


def least_samples(season: int) -> int:
    """Return two seasons, or ten averages after half a season is lost at either end."""
    return max(2 * season, least_averages(season))


def start_state(series: Floats, season: int, trend: ComponentType, seasonal: ComponentType) -> State:
    """A centred moving average over one season takes the season out (statsmodels "heuristic"; "estimated" unfitted).

    What remains of each phase is the season, normalized. A line through the first ten averages is level and trend.
    """
    cycles = max(min(_MOST_CYCLES, series.shape[1] // season), ceil(least_averages(season) / season))
    used = series[:, : season * cycles]
    averages = moving_average(used, season)
    half = season // 2
    inner = used[:, half : half + averages.shape[1]]
    rest = inner - averages if seasonal is ComponentType.ADD else inner / averages
    phases = (np.arange(averages.shape[1]) + half) % season
    means = np.stack([rest[:, phases == phase].mean(axis=1) for phase in range(season)], axis=1)
    middle = means.mean(axis=1, keepdims=True)
    seasons = means - middle if seasonal is ComponentType.ADD else means / middle
    clock = np.arange(1, _LEVEL_SAMPLES + 1)
    away = clock - clock.mean()
    first = averages[:, :_LEVEL_SAMPLES]
    slope = first @ away / (away @ away)
    level = first.mean(axis=1) - slope * clock.mean()
    return State(level, slope if trend is ComponentType.ADD else 1.0 + slope / level, seasons)


def least_averages(season: int) -> int:
    return _LEVEL_SAMPLES + 2 * (season // 2)


def moving_average(series: Floats, season: int) -> Floats:
    """Centred over one season; an even season takes half of the sample at either end."""
    if season % 2:
        weights = np.full(season, 1.0 / season)
    else:
        weights = np.full(season + 1, 1.0 / season)
        weights[[0, -1]] /= 2
    averages: Floats = sliding_window_view(series, len(weights), axis=1) @ weights
    return averages


FORECASTER = Forecaster(forecast, HoltWintersOptions, keep_s=4 * DAY_S, cost=4.0)  # PHPA keeps four seasons
