"""Crane's DSP: what it cleans, which period it sees, which estimator wins, and how wrong a forecast was."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.core.forecast import dsp
from trimtab.core.forecast.dsp import (
    Fft,
    MaxValue,
    autocorrelation,
    is_peak,
    largest_between,
    next_period,
    noise_ceiling,
)
from trimtab.core.forecast.forecaster import spell
from trimtab.core.model import Forecast, Missing, Reason
from trimtab.errors import InvalidInput, NotEnoughData
from trimtab.series import Frame, Series

STEP_S = 300.0
DAY = 288  # samples


def days(count: int, noise: float = 0.0) -> np.ndarray:
    t = np.arange(count * DAY)
    return 10 + 4 * np.sin(2 * np.pi * t / DAY) + noise * np.random.default_rng(1).normal(size=len(t))


def series(values: np.ndarray) -> Series:
    return Series(np.arange(float(len(values))) * STEP_S, values)


def one_row(values: np.ndarray) -> Frame:
    return Frame(("cpu",), 0.0, STEP_S, values[None, :])


# --- cleaning --------------------------------------------------------------------------------------------------------


def test_a_gap_above_an_hour_discards_what_is_before_it() -> None:
    kept = dsp.after_last_gap(Series(np.array([0.0, 60.0, 4000.0, 4060.0]), np.arange(4.0)))
    assert kept.values.tolist() == [2.0, 3.0]


def test_short_gaps_are_filled_with_straight_lines() -> None:
    filled = dsp.fill(Series(np.array([0.0, 60.0, 240.0]), np.array([1.0, 2.0, 5.0])), 60.0)
    assert filled.values.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]


def test_a_jittered_timestamp_makes_the_series_invalid() -> None:
    with pytest.raises(InvalidInput, match=r"timestamp: 61\.0: must lie a multiple of 60 s"):
        dsp.fill(Series(np.array([0.0, 61.0]), np.zeros(2)), 60.0)
    with pytest.raises(NotEnoughData):
        dsp.fill(Series(np.zeros(0), np.zeros(0)), 60.0)


def test_outliers_take_the_value_before_them_also_in_a_row() -> None:
    values = np.tile([1.0, 2.0], 1500)
    values[[100, 101]] = 50.0
    cleaned = dsp.without_outliers(values)
    assert cleaned[99:103].tolist() == [2.0, 2.0, 2.0, 1.0]
    assert dsp.without_outliers(np.array([1.0, 99.0])).tolist() == [1.0, 99.0]  # too few to say


def test_only_the_newest_whole_units_are_kept() -> None:
    assert dsp.newest_units(series(np.arange(30.0)), STEP_S, 3600.0).values.tolist() == list(range(6, 30))


# --- periods ---------------------------------------------------------------------------------------------------------


def test_the_noise_ceiling_is_what_shuffles_estimate() -> None:
    """The analytic threshold lies within a few percent of the 99th of 100 maxima of shuffled samples."""
    rng, values = np.random.default_rng(3), days(4)
    shuffled = [np.abs(np.fft.rfft(rng.permutation(values)))[1 : len(values) // 2].max() for _ in range(100)]
    ceiling = noise_ceiling(len(values), float(values.var()), 99 / 101)
    assert ceiling == pytest.approx(sorted(shuffled)[98], rel=0.08)


def test_autocorrelation_of_a_sine_and_its_peaks() -> None:
    correlation = autocorrelation(np.sin(2 * np.pi * np.arange(400) / 100))
    assert correlation[[0, 50, 100]] == pytest.approx([1.0, -1.0, 1.0])
    assert is_peak(correlation, 100, 20)
    assert not is_peak(correlation, 50, 20)
    assert not is_peak(correlation, 400, 20)


@pytest.mark.parametrize(
    "values, lag",
    [
        pytest.param(days(4, noise=0.5), DAY, id="a day"),
        pytest.param(np.full(4 * DAY, 3.0), None, id="constant"),
        pytest.param(np.random.default_rng(5).normal(size=4 * DAY), None, id="noise"),
    ],
)
def test_find_period(values: np.ndarray, lag: int | None) -> None:
    found = dsp.find_period(values, STEP_S)
    assert (None if found is None else found.lag) == lag


@pytest.mark.parametrize("history_s, unit_s", [(15 * 86400.0, 604800.0), (13 * 86400.0, 86400.0), (47 * 3600.0, None)])
def test_what_a_history_can_show(history_s: float, unit_s: float | None) -> None:
    assert dsp.repeating_unit_s(history_s) == unit_s


# --- estimators ------------------------------------------------------------------------------------------------------


def test_max_value_takes_the_largest_of_each_phase() -> None:
    signal = np.array([1.0, 5.0, 2.0, 3.0, 4.0, 1.0])
    assert next_period(MaxValue(margin=0.5), signal, 2, 60, exact=True).tolist() == [6.0, 7.5]


@pytest.mark.parametrize(
    "exact, weak", [pytest.param(True, 0.1, id="upstream halves it"), pytest.param(False, 0.2, id="ours keeps it")]
)
def test_a_weak_slow_tone(exact: bool, weak: float) -> None:
    t = np.arange(4 * DAY)
    signal = 10 + 3 * np.cos(2 * np.pi * t / DAY) + 0.2 * np.cos(4 * np.pi * t / DAY)
    found = next_period(Fft(min_items=1), signal, DAY, STEP_S, exact)
    assert found[0] == pytest.approx(13 + weak)


def test_values_that_are_not_positive_become_a_hundredth() -> None:
    signal = np.tile([4.0, -2.0], 8)
    assert next_period(Fft(margin=1.0), signal, 2, 60, exact=True).tolist() == pytest.approx([8.0, 0.02])


def test_the_estimator_with_the_smallest_error_on_the_last_period_wins() -> None:
    calm, generous = MaxValue(), MaxValue(margin=0.5)
    best = dsp.best_estimator(days(3), DAY, STEP_S, dsp.DspOptions(estimators=(generous, calm)))
    assert best is calm


# --- forecast --------------------------------------------------------------------------------------------------------


def test_forecast_is_the_largest_value_within_the_window() -> None:
    values = days(4)
    options = dsp.DspOptions(estimators=(MaxValue(),))
    answer = dsp.forecast(one_row(values), 6 * 3600.0, 4 * 86400.0, options)[0]
    assert isinstance(answer, Forecast)
    assert answer.at_quantile(0.5) == pytest.approx(values[: DAY // 4 + 1].max())


@pytest.mark.parametrize(
    "values, reason, word",
    [
        pytest.param(days(1), Reason.NOT_ENOUGH_HISTORY, "1 d of history, 2 d needed", id="one day"),
        pytest.param(np.full(3 * DAY, 2.0), Reason.NOT_PREDICTABLE, "no period stands out", id="flat"),
        pytest.param(np.full(3 * DAY, np.nan), Reason.NOT_PREDICTABLE, "the series is empty", id="empty"),
        pytest.param(
            10 + np.sin(2 * np.pi * np.arange(4 * DAY) / 72), Reason.NOT_PREDICTABLE, "every 6.0 h", id="six hours"
        ),
    ],
)
def test_forecast_says_why_it_is_silent(values: np.ndarray, reason: Reason, word: str) -> None:
    answer = dsp.forecast(one_row(values), 3600.0, len(values) * STEP_S)[0]
    assert isinstance(answer, Missing)
    assert answer.reason is reason
    assert word in answer.detail


def test_an_old_history_reaches_into_the_past_only() -> None:
    answer = dsp.forecast(one_row(days(3)), 3600.0, 30 * 86400.0)[0]
    assert isinstance(answer, Missing)
    assert answer.reason is Reason.STALE


def test_the_exact_mode_has_no_floor_for_the_correlation() -> None:
    noisy = days(4, noise=9.0)
    found = dsp.find_period(noisy, STEP_S)
    assert found is not None
    assert found.correlation < 0.3
    assert dsp.accepted_period_s(noisy, STEP_S, exact=True) == 86400.0
    assert isinstance(dsp.accepted_period_s(noisy, STEP_S, exact=False), Missing)


@pytest.mark.parametrize(
    "step_s, history_s, word",
    [(3660.0, 1e6, "sampleInterval: 3660.0: .* at most 1h"), (60.0, 3600.0, "historyLength: 3600.0: .* at least 48h")],
)
def test_settings_out_of_range_are_refused(step_s: float, history_s: float, word: str) -> None:
    with pytest.raises(InvalidInput, match=word):
        dsp.check(step_s, history_s)


# --- accuracy --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "actual, predicted, error",
    [
        pytest.param([2.0, 2.0], [2.0, 3.0], 0.25, id="too much counts as it is"),
        pytest.param([2.0, 2.0], [2.0, 1.0], 1.553142, id="too little is amplified"),
        pytest.param([0.0, 2.0], [1.0, 1.0], 1.0, id="near zero: absolute"),
    ],
)
def test_prediction_error(actual: list[float], predicted: list[float], error: float) -> None:
    assert dsp.prediction_error(np.array(actual), np.array(predicted)) == pytest.approx(error, abs=1e-6)


def test_a_shortfall_of_a_fifth_counts_as_one() -> None:
    assert dsp.prediction_error(np.array([1.0]), np.array([0.8])) == pytest.approx(1.0)


@settings(max_examples=50)
@given(st.lists(st.floats(0.01, 1e6), min_size=1, max_size=20), st.floats(0.01, 0.9))
def test_a_shortage_is_worse_than_the_same_excess(values: list[float], share: float) -> None:
    actual = np.array(values)
    short, excess = (dsp.prediction_error(actual, actual * (1 + sign * share)) for sign in (-1, 1))
    assert short > excess > 0


@pytest.mark.parametrize("start, end, largest", [(0.0, 10.0, 3.0), (11.0, 20.0, 9.0), (21.0, 30.0, None)])
def test_largest_between(start: float, end: float, largest: float | None) -> None:
    assert largest_between(np.array([0.0, 10.0, 20.0]), np.array([1.0, 3.0, 9.0]), start, end) == largest


@pytest.mark.parametrize(
    "seconds, text", [(45.0, "45 s"), (3600.0, "1 h"), (90.0, "90 s"), (129600.0, "36 h"), (216000.0, "2.5 d")]
)
def test_spell(seconds: float, text: str) -> None:
    assert spell(seconds) == text
