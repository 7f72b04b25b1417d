"""Holt-Winters with fixed coefficients, step by step as statsmodels runs it for PHPA; batched over rows.

additive: l' = a (y - s) + (1 - a)(l + p b); b' = B (l' - l) + (1 - B) p b; s' = g (y - l - p b) + (1 - g)
s, and predicted = l + (p + p^2 + .. + p^h) b + s, where p is the damping (1: none). Multiplicative trend or
season: products and powers instead. Nothing is fitted: coefficients are given, start values are a rule
(holt_start.py). Ours beside PHPA: the series always runs forward in time, and the model is silent where
persistence is as good.
"""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

import numpy as np

from trimtab.core.forecast.batches import HOUR_S, Batch, batches, unusable
from trimtab.core.forecast.dated import Dates, certain, dated, known_at, unpredictable
from trimtab.core.forecast.forecaster import DAY_S as _DAY_S
from trimtab.core.forecast.forecaster import Forecaster
from trimtab.core.forecast.held_out import AccuracyGate, losing, quantiles
from trimtab.core.forecast.holt_start import ComponentType, Known, Start, least_samples, start_state
from trimtab.core.model import Forecast, Missing, Quantile
from trimtab.errors import InvalidInput, NotEnoughData
from trimtab.policy import Record
from trimtab.series import Floats, Frame

DAY_S = 86400.0
Point = tuple[float, float]


class HoltWintersOptions(Record, frozen=True):
    """`exact` gives PHPA's number: one value, silent only where there is too little history, or none of now."""

    season: int | None = None  # in samples; None: one day
    alpha: float = 0.5
    beta: float = 0.01
    gamma: float = 0.3
    damping: float = 1.0
    trend: ComponentType = ComponentType.ADD
    seasonal: ComponentType = ComponentType.ADD
    start: Start = Start.ESTIMATED
    known: Known | None = None
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
    """The value at `at + horizon_s`, counted in whole steps of the frame; holes are bridged by straight lines."""
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
    demand = np.maximum(0.0, last[:, None] + quantiles(errors, options.gate.probabilities))
    return [
        dated("holtWinters", dates, tuple(map(Quantile, options.gate.probabilities, row)))
        if ratio <= options.gate.acceptable
        else unpredictable(losing(ratio, options.gate))
        for row, ratio in zip(demand.tolist(), ratios.tolist(), strict=True)
    ]


def predict(series: Floats, season: int, steps: int, options: HoltWintersOptions = DEFAULT) -> Floats:
    """The next `steps` values of each row; raises where statsmodels would."""
    if series.shape[1] < least_samples(season):
        raise NotEnoughData(
            f"{series.shape[1]} samples: two seasons and 10 + 2 * (season // 2) = {least_samples(season)} are needed"
        )
    if ComponentType.MUL in (options.trend, options.seasonal) and bool((series <= 0).any()):
        raise InvalidInput("series", float(series.min()), "a multiplicative model needs values above zero")
    path = smooth(series, season, options)
    newest = slice(-1, None)
    return np.hstack([ahead(path, newest, step, season, options) for step in range(1, steps + 1)])


def smooth(series: Floats, season: int, options: HoltWintersOptions) -> Path:
    """Run the recursion over the samples."""
    rows, count = series.shape
    first = start_state(series, season, options.start, options.trend, options.seasonal, options.known)
    levels, trends = np.empty((rows, count + 1)), np.empty((rows, count + 1))
    seasons = np.empty((rows, count + season))
    levels[:, 0], trends[:, 0], seasons[:, :season] = first.level, first.trend, first.seasons
    trend_adds, season_adds = options.trend is ComponentType.ADD, options.seasonal is ComponentType.ADD
    alpha, beta, gamma, damping = options.alpha, options.beta, options.gamma, options.damping
    for t in range(count):
        level, value, usual = levels[:, t], series[:, t], seasons[:, t]
        slope = trends[:, t] * damping if trend_adds else trends[:, t] ** damping
        along = level + slope if trend_adds else level * slope
        levels[:, t + 1] = alpha * (value - usual if season_adds else value / usual) + (1 - alpha) * along
        moved = levels[:, t + 1] - level if trend_adds else levels[:, t + 1] / level
        trends[:, t + 1] = beta * moved + (1 - beta) * slope
        seasons[:, t + season] = gamma * (value - along if season_adds else value / along) + (1 - gamma) * usual
    return Path(levels, trends, seasons)


def ahead(path: Path, origins: slice, steps: int, season: int, options: HoltWintersOptions) -> Floats:
    """What was predicted for `steps` later after so many samples, for each of the origins."""
    level, trend = path.levels[:, origins], path.trends[:, origins]
    first = origins.indices(path.levels.shape[1])[0] + (steps - 1) % season
    if options.exact and steps >= season:
        # statsmodels forgets the newest seasonal value from here on and takes the one a season before it.
        first = origins.indices(path.levels.shape[1])[0] - 1 + (steps - season) % season
    weight = float(sum(options.damping**step for step in range(1, steps + 1)))
    along = level + trend * weight if options.trend is ComponentType.ADD else level * trend**weight
    usual = path.seasons[:, first : first + level.shape[1]]
    predicted: Floats = along + usual if options.seasonal is ComponentType.ADD else along * usual
    return predicted


def keep_seasons(history: tuple[Point, ...], season: int, stored: int) -> tuple[Point, ...]:
    """In order of time, without the oldest whole seasons beyond the stored ones."""
    ordered = tuple(sorted(history))
    return ordered[max(0, len(ordered) // season - stored) * season :]


FORECASTER = Forecaster(forecast, HoltWintersOptions, keep_s=4 * _DAY_S, cost=4.0)  # PHPA keeps four seasons
