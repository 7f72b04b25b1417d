"""The line of predictive HPA (McNaughton) and of PHPA, and the start-up time that it looks ahead."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.build import pod
from trimtab.core.forecast import linear
from trimtab.core.forecast.linear import LinearOptions
from trimtab.core.model import Forecast, Missing, Reason
from trimtab.core.startup import mean_startup_s, startup
from trimtab.series import Frame, Series

RAMP = np.array([10.0, 20.0, 30.0, 40.0])
TIMES = np.array([-45.0, -30.0, -15.0, 0.0])


def frame(*rows: list[float], step_s: float = 15.0) -> Frame:
    values = np.array(rows)
    return Frame(tuple(map(str, range(len(rows)))), 1000.0, step_s, values)


def test_a_line_has_the_slope_and_intercept_of_least_squares() -> None:
    assert linear.fit_line(np.array([0.0, 1.0, 2.0]), np.array([1.0, 2.0, 4.0])) == pytest.approx((1.5, 5 / 6))


def test_one_observation_is_a_level_line() -> None:
    assert linear.fit_line(np.zeros(1), np.array([7.0])) == (0.0, 7.0)


@pytest.mark.parametrize(
    "values, ahead_s, options, wanted",
    [
        pytest.param(RAMP, 30.0, LinearOptions(), 60.0, id="a rise goes on"),
        pytest.param(RAMP[::-1], 30.0, LinearOptions(), 10.0, id="a fall keeps the current value"),
        pytest.param(RAMP[::-1], 30.0, LinearOptions(exact=True), 10.0, id="so it does in the program"),
        pytest.param(np.array([1.0, 1.0, 1.0, 9.0]), 0.0, LinearOptions(), 9.0, id="document: never below current"),
        pytest.param(np.array([1.0, 1.0, 1.0, 9.0]), 0.0, LinearOptions(exact=True), 6.6, id="program: the fit"),
    ],
)
def test_predict(values: np.ndarray, ahead_s: float, options: LinearOptions, wanted: float) -> None:
    assert linear.predict(TIMES, values, ahead_s, options) == pytest.approx(wanted)


def step(of: int, at: int) -> np.ndarray:
    return np.array([100.0] * at + [400.0] * (of - at))


@pytest.mark.parametrize("at", range(1, 36))
def test_a_jump_is_no_slope_for_the_cautious_line_whenever_it_was(at: int) -> None:
    times = np.arange(36.0) * 5.0 - 175.0
    assert linear.predict(times, step(36, at), 60.0, LinearOptions(slope_quantile=0.4)) == 400.0


def test_a_jump_is_a_slope_for_least_squares() -> None:
    assert linear.predict(np.arange(36.0) * 5.0 - 175.0, step(36, 18), 60.0) > 600.0


def test_the_cautious_line_goes_on_like_any_other_and_leaves_holes_out() -> None:
    hole, options = float("nan"), LinearOptions(slope_quantile=0.4)
    history = frame([10.0, 20.0, 30.0, 40.0], [10.0, hole, 30.0, 40.0], [hole, hole, 30.0, 40.0], [hole] * 4)
    *rising, nothing = linear.forecast(history, 15.0, 1045.0, options)
    assert [row.demand[0].value for row in rising if isinstance(row, Forecast)] == pytest.approx([50.0, 50.0, 50.0])
    assert isinstance(nothing, Missing)


TWENTY_MINUTES = np.arange(0.0, 1201.0, 15.0)
ABSTAINS = LinearOptions(slope_quantile=0.4, abstains=True)


def speaks(values: np.ndarray, times: np.ndarray = TWENTY_MINUTES) -> bool:
    answer = linear.forecast_recent([Series(times, values)], 135.0, float(times[-1]), ABSTAINS)[0]
    assert isinstance(answer, Forecast) or answer.reason is Reason.NOT_PREDICTABLE
    return isinstance(answer, Forecast)


def minute_means(seed: int, noise: float) -> np.ndarray:
    """Noise as metrics show it: means of a minute, read every 15 s."""
    raw = np.random.default_rng(seed).normal(0.0, noise, len(TWENTY_MINUTES) + 3)
    return np.convolve(raw, np.ones(4) / 4, mode="valid")


def test_the_line_abstains_where_the_load_only_fluctuates() -> None:
    assert sum(speaks(10.0 + minute_means(seed, 2.0)) for seed in range(200)) <= 20
    assert not speaks(np.full(len(TWENTY_MINUTES), 10.0))
    assert not speaks(10.0 - 0.001 * TWENTY_MINUTES)


@pytest.mark.parametrize("rise_per_s", [0.001, 0.005, 0.05])
def test_the_line_speaks_on_every_ramp_from_its_first_minutes_on(rise_per_s: float) -> None:
    level = np.where(TWENTY_MINUTES > 1020.0, 4.0 + rise_per_s * (TWENTY_MINUTES - 1020.0), 4.0)
    assert speaks(level)
    assert speaks(4.0 + rise_per_s * TWENTY_MINUTES)


def test_a_slow_ramp_in_noise_is_seen_over_the_longer_window() -> None:
    ramp = 10.0 + 0.005 * TWENTY_MINUTES
    assert sum(speaks(ramp + minute_means(seed, 1.0)) for seed in range(200)) >= 190


@pytest.mark.parametrize("size", [1.0, 1e-9, 1e12])
def test_significance_does_not_depend_on_the_unit(size: float) -> None:
    series = Series(TWENTY_MINUTES, size * (10.0 + 0.005 * TWENTY_MINUTES + minute_means(7, 1.0)))
    plain = Series(TWENTY_MINUTES, 10.0 + 0.005 * TWENTY_MINUTES + minute_means(7, 1.0))
    assert linear.significance(series) == pytest.approx(linear.significance(plain))


@pytest.mark.parametrize(
    "horizon_s, exact, wanted_s",
    [
        pytest.param(5.0, True, 100.0, id="predictive HPA (McNaughton): 20 times"),
        pytest.param(135.0, True, 180.0, id="predictive HPA (McNaughton): capped"),
        pytest.param(5.0, False, 180.0, id="three minutes at least"),
        pytest.param(600.0, False, 600.0, id="as far back as ahead"),
        pytest.param(7200.0, False, 3600.0, id="an hour at most"),
    ],
)
def test_window(horizon_s: float, exact: bool, wanted_s: float) -> None:
    assert linear.window_s(horizon_s, LinearOptions(exact=exact)) == wanted_s


def test_forecast_reads_the_line_at_the_horizon_and_dates_it() -> None:
    answer = linear.forecast(frame([10.0, 20.0, 30.0, 40.0]), 30.0, 1045.0, LinearOptions(per_pod=True))[0]
    assert isinstance(answer, Forecast)
    assert answer.at_quantile(0.9) == pytest.approx(60.0)
    assert (answer.made_at, answer.expires_at, answer.per_pod, answer.model) == (1045.0, 1105.0, True, "linear")


def test_forecast_says_why_it_is_silent() -> None:
    hole = float("nan")
    old, alone, fine = linear.forecast(frame([hole] * 4, [hole, hole, hole, 3.0], [3.0] * 4), 30.0, 1045.0)
    assert isinstance(old, Missing)
    assert (old.reason, old.detail) == (Reason.STALE, "no observation inside the window")
    assert isinstance(alone, Missing)
    assert (alone.reason, alone.detail) == (Reason.NOT_ENOUGH_HISTORY, "1 observation, a line needs 2")
    assert isinstance(fine, Forecast)


@pytest.mark.parametrize(
    "observed, horizon_s, options, speaks",
    [
        pytest.param(4, 60.0, LinearOptions(), False, id="45 s say nothing about the next minute"),
        pytest.param(5, 60.0, LinearOptions(), True, id="a minute does, both ends counted"),
        pytest.param(12, 180.0, LinearOptions(), False, id="165 s are not three minutes"),
        pytest.param(13, 180.0, LinearOptions(), True, id="three minutes at a tick of 15 s"),
        pytest.param(13, 600.0, LinearOptions(), False, id="three minutes say nothing about ten"),
        pytest.param(2, 60.0, LinearOptions(exact=True), True, id="the program asks for two observations"),
        pytest.param(2, 60.0, LinearOptions(history_size=6), True, id="so does PHPA"),
    ],
)
def test_a_line_needs_as_much_past_as_it_looks_ahead(
    observed: int, horizon_s: float, options: LinearOptions, speaks: bool
) -> None:
    values = [float("nan")] * (13 - observed) + [100.0 + index for index in range(observed)]
    (answer,) = linear.forecast(frame(values), horizon_s, 1000.0 + 12 * 15.0, options)
    assert isinstance(answer, Forecast) == speaks, answer
    if isinstance(answer, Missing):
        assert (answer.reason, "needed" in answer.detail) == (Reason.NOT_ENOUGH_HISTORY, True)


def test_dense_samples_are_thinned_and_both_ends_stay() -> None:
    dense = Series(np.arange(1000.0, 1400.0), np.arange(400.0))
    kept = linear.recent_of(dense, 1399.0, 30.0, LinearOptions())  # a window of three minutes
    assert (len(kept), kept.times[0], kept.times[-1]) == (linear.MOST_POINTS, 1219.0, 1399.0)


def test_a_late_tick_does_not_shorten_the_window() -> None:
    late = Series(np.array([1000.0, 1060.0, 1120.0, 1183.0]), np.arange(4.0))
    assert linear.recent_of(late, 1183.0, 30.0, LinearOptions()).times[0] == 1000.0, "183 s ago, not 123 s"
    gap = Series(np.array([100.0, 1120.0, 1183.0]), np.arange(3.0))
    assert linear.recent_of(gap, 1183.0, 30.0, LinearOptions()).times[0] == 1120.0, "the past before a gap is past"


@settings(max_examples=50)
@given(st.lists(st.floats(0, 1e6), min_size=2, max_size=12), st.floats(0, 600))
def test_the_documents_rule_never_lowers(values: list[float], ahead_s: float) -> None:
    times = np.arange(float(len(values))) * 15.0 - 15.0 * (len(values) - 1)
    predicted = linear.predict(times, np.array(values), ahead_s)
    assert predicted >= values[-1]


def test_startup_counts_ready_pods_and_the_program_every_condition() -> None:
    pods = (
        pod(1, created_at=0.0, ready_since=100.0),
        pod(2, created_at=0.0, ready_since=200.0),
        pod(3, created_at=0.0, ready_since=1.0, ready=False),
        pod(4, created_at=0.0, ready_since=None, ready=None),
    )
    assert mean_startup_s(pods) == 150.0
    assert mean_startup_s(pods, exact=True) == pytest.approx(301 / 3)
    assert mean_startup_s(()) == 0.0


def test_startup_quantiles() -> None:
    found = startup([10.0, 20.0, 30.0, 40.0, 50.0], at=7.0)
    assert not isinstance(found, Missing)
    assert [(q.probability, q.value) for q in found.quantiles] == [(0.5, 30.0), (0.9, 50.0)]
    assert (found.made_at, found.pods) == (7.0, 5)
    silent = startup([], at=7.0)
    assert isinstance(silent, Missing)
    assert silent.reason is Reason.NO_READY_PODS
