"""Holt-Winters: the recursion by hand, its start values, its limits, and when it is silent."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.holt_winters import predict
from trimtab.core.forecast import holt_winters
from trimtab.core.forecast.holt_winters import (
    ComponentType,
    HoltWintersOptions,
    least_samples,
    moving_average,
    start_state,
)
from trimtab.core.model import Forecast, Missing, Reason
from trimtab.series import Frame

RAMP = np.array([[2.0, 4.0, 8.0, 6.0] * 4]) + np.arange(16) * 0.5
SHAPES = [ComponentType.ADD, ComponentType.MUL]


def by_hand(values: np.ndarray, season: int, options: HoltWintersOptions, steps: int) -> float:
    """The textbook, sample by sample."""
    start = start_state(values, season, options.trend, options.seasonal)
    level, trend, seasons = float(start.level[0]), float(start.trend[0]), start.seasons[0].tolist()
    add_t, add_s = options.trend is ComponentType.ADD, options.seasonal is ComponentType.ADD
    for index, y in enumerate(values[0].tolist()):
        base = level + trend if add_t else level * trend
        new = options.alpha * (y - seasons[index] if add_s else y / seasons[index]) + (1 - options.alpha) * base
        trend = options.beta * (new - level if add_t else new / level) + (1 - options.beta) * trend
        seasons.append(options.gamma * (y - base if add_s else y / base) + (1 - options.gamma) * seasons[index])
        level = new
    base = level + steps * trend if add_t else level * trend**steps
    usual = float(seasons[values.shape[1] + (steps - 1) % season])
    return base + usual if add_s else base * usual


@pytest.mark.parametrize("trend", SHAPES)
@pytest.mark.parametrize("seasonal", SHAPES)
def test_the_recursion_by_hand(trend: ComponentType, seasonal: ComponentType) -> None:
    options = HoltWintersOptions(alpha=0.4, beta=0.2, gamma=0.3, trend=trend, seasonal=seasonal)
    found = predict(RAMP, 4, 6, options)[0]
    assert found == pytest.approx([by_hand(RAMP, 4, options, steps) for steps in range(1, 7)])


def test_exact_forgets_the_newest_season_as_statsmodels_does() -> None:
    ours, theirs = (predict(RAMP, 4, 4, HoltWintersOptions(gamma=0.9, exact=exact))[0] for exact in (False, True))
    assert ours[:3] == pytest.approx(theirs[:3])
    assert ours[3] != pytest.approx(theirs[3])


def test_a_perfect_season_is_continued() -> None:
    values = np.array([[1.0, 5.0, 3.0] * 6])
    assert predict(values, 3, 4)[0] == pytest.approx([1.0, 5.0, 3.0, 1.0])


def test_heuristic_start_of_a_line_with_a_season() -> None:
    """y = t / 2 + season: the averages take the season out exactly."""
    t = np.arange(20)
    values = (0.5 * t + np.tile([-1.0, 2.0, 0.0, -1.0], 5))[None, :]
    start = start_state(values, 4, ComponentType.ADD, ComponentType.ADD)
    assert np.squeeze(start.trend) == pytest.approx(0.5)
    assert np.squeeze(start.seasons) == pytest.approx([-1.0, 2.0, 0.0, -1.0])
    assert np.squeeze(start.level) == pytest.approx(0.5)  # half a season later, half a step earlier


@pytest.mark.parametrize("season, wanted", [(3, [2.0, 3.0, 4.0]), (4, [3.0])])
def test_moving_average_is_centred(season: int, wanted: list[float]) -> None:
    assert moving_average(np.array([[1.0, 2.0, 3.0, 4.0, 5.0]]), season)[0] == pytest.approx(wanted)


@pytest.mark.parametrize("season, wanted", [(2, 12), (3, 12), (6, 16), (40, 80)])
def test_least_samples(season: int, wanted: int) -> None:
    assert least_samples(season) == wanted


def day(days: int, noise: float = 1.0) -> np.ndarray:
    t = np.arange(days * 96)
    return 50 + 20 * np.sin(2 * np.pi * t / 96) + np.random.default_rng(4).normal(0, noise, len(t))


def frame(*rows: np.ndarray) -> Frame:
    return Frame(tuple(map(str, range(len(rows)))), 0.0, 900.0, np.array(rows))


def test_forecast_of_a_day_with_quantiles() -> None:
    history = frame(day(5))
    answer = holt_winters.forecast(history, 1800.0, history.end)[0]
    assert isinstance(answer, Forecast)
    assert answer.at_quantile(0.5) == pytest.approx(50 + 20 * np.sin(2 * np.pi / 96), abs=4.0)
    values = [quantile.value for quantile in answer.demand]
    assert values == sorted(values)


def test_forecast_says_why_it_is_silent() -> None:
    gappy, negative = day(5), day(5) - 60
    gappy[::2] = np.nan
    history = frame(gappy, np.full(480, 3.0), 50 + np.random.default_rng(1).normal(0, 1, 480).cumsum())
    holes, flat, walk = holt_winters.forecast(history, 900.0, history.end)
    assert isinstance(holes, Missing) and "only 50% of the last 5 d has samples" in holes.detail
    assert isinstance(flat, Missing) and "constant" in flat.detail
    assert isinstance(walk, Missing) and 'the error of "the same as now"' in walk.detail
    product = holt_winters.forecast(frame(negative), 900.0, history.end, HoltWintersOptions(trend=ComponentType.MUL))[0]
    assert isinstance(product, Missing) and "above zero" in product.detail
    short = holt_winters.forecast(frame(day(1)), 900.0, 86400.0)[0]
    assert isinstance(short, Missing)
    assert (short.reason, short.detail) == (Reason.NOT_ENOUGH_HISTORY, "1 d of history, 2 d needed")


def test_exact_gives_the_one_number_of_its_program() -> None:
    history = frame(np.tile([1.0, 3.0, 1.0], 5))
    answer = holt_winters.forecast(history, 900.0, history.end, HoltWintersOptions(season=3, exact=True))[0]
    assert isinstance(answer, Forecast)
    assert [quantile.value for quantile in answer.demand] == pytest.approx([1.0])


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from(SHAPES), st.sampled_from(SHAPES), st.floats(1.5, 100))
def test_scaling_the_load_scales_the_forecast(
    seed: int, trend: ComponentType, seasonal: ComponentType, factor: float
) -> None:
    values = np.random.default_rng(seed).uniform(1, 10, (2, 24))
    options = HoltWintersOptions(trend=trend, seasonal=seasonal)
    assert predict(values * factor, 4, 2, options) == pytest.approx(predict(values, 4, 2, options) * factor, rel=1e-6)
