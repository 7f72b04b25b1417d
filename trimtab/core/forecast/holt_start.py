"""Where Holt-Winters begins: level, trend and season before the first sample, by statsmodels' rules.

heuristic (and estimated, whose fit PHPA switches off): a centred moving average over one season takes the
season out; what remains of each phase is the season, normalised; a line through the first ten averages is
level and trend. legacy-heuristic: the mean of the first phase, the mean change over one season, the first
season itself.
"""

from __future__ import annotations

import enum
from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from trimtab.series import Floats

_LEVEL_SAMPLES = 10
_MOST_CYCLES = 5


class ComponentType(enum.StrEnum):
    ADD = "add"
    MUL = "mul"


class Start(enum.StrEnum):
    ESTIMATED = "estimated"
    HEURISTIC = "heuristic"
    LEGACY = "legacy-heuristic"
    KNOWN = "known"


class Known(NamedTuple):
    """One start for all rows: the season of every phase, the first sample's first."""

    level: float
    trend: float
    seasons: tuple[float, ...]


class State(NamedTuple):
    """The same for each row; seasons[row, phase]."""

    level: Floats
    trend: Floats
    seasons: Floats


def least_samples(season: int) -> int:
    """Two seasons, and ten averages after half a season is lost at either end."""
    return max(2 * season, _LEVEL_SAMPLES + 2 * (season // 2))


def start_state(
    series: Floats, season: int, start: Start, trend: ComponentType, seasonal: ComponentType, known: Known | None
) -> State:
    if start is Start.KNOWN:
        assert known is not None, "start values that are known must be given"
        return State(np.array([known.level]), np.array([known.trend]), np.array([known.seasons]))
    if start is Start.LEGACY:
        return legacy(series, season, trend, seasonal)
    return heuristic(series, season, trend, seasonal)


def heuristic(series: Floats, season: int, trend: ComponentType, seasonal: ComponentType) -> State:
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


def legacy(series: Floats, season: int, trend: ComponentType, seasonal: ComponentType) -> State:
    level = series[:, ::season].mean(axis=1)
    first, second = series[:, :season].mean(axis=1), series[:, season : 2 * season].mean(axis=1)
    slope = (second - first) / season if trend is ComponentType.ADD else (second / first) ** (1.0 / season)
    seasons = (
        series[:, :season] - level[:, None] if seasonal is ComponentType.ADD else series[:, :season] / level[:, None]
    )
    return State(level, slope, seasons)
