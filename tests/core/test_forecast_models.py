"""The seasonal model forgives holes, knows its errors, and abstains with a stated reason."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.core.forecast import (
    FORECASTERS,
    batches,
    forecast_rows,
    held_out,
    options_of,
    seasonal,
)
from trimtab.core.forecast.forecaster import too_short
from trimtab.core.model import Forecast, Missing, Reason
from trimtab.errors import InvalidPolicy
from trimtab.policy import ForecastChoice
from trimtab.series import Frame, Series, grid

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0
RNG = np.random.default_rng(11)


def frame(*rows: np.ndarray, step_s: float = 300.0) -> Frame:
    return Frame(tuple(map(str, range(len(rows)))), 0.0, step_s, np.array(rows))


def clock(days: float, step_s: float = 300.0) -> np.ndarray:
    return np.arange(0, days * DAY, step_s)


def wave(t: np.ndarray, period_s: float = DAY, level: float = 100.0, size: float = 40.0) -> np.ndarray:
    """A smooth load, highest in the second half of its period."""
    angle = 2 * np.pi * t / period_s
    return level - size * np.sin(angle) + 0.2 * size * np.cos(2 * angle)


def noise(size: float, count: int, seed: int = 5) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, size, count)


def expect(answer: Forecast | Missing) -> Forecast:
    assert isinstance(answer, Forecast), answer
    return answer


def silent(answer: Forecast | Missing) -> Missing:
    assert isinstance(answer, Missing), answer
    return answer


# --- what they predict -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("horizon_s", [600.0, 2 * HOUR])
def test_a_daily_load_is_foreseen(horizon_s: float) -> None:
    t = clock(8)
    history = frame(wave(t) + noise(1.0, len(t)))
    answer = expect(seasonal.forecast(history, horizon_s, history.end)[0])
    coming = wave(history.end + horizon_s + np.arange(0, 600, 60.0)).max()
    assert answer.at_quantile(0.5) == pytest.approx(coming, abs=3.0)
    assert (answer.made_at, answer.expires_at) == (history.end, history.end + 300.0)


def test_quantiles_rise_and_cover_what_comes() -> None:
    """About nine in ten of what comes lies below the 0.9 quantile."""
    t = clock(9)
    load = np.array([wave(t) + noise(5.0, len(t), seed) for seed in range(40)])
    now = 8 * 288
    hits = 0
    for row, answer in enumerate(seasonal.forecast(frame(*load[:, :now]), 600.0, now * 300.0)):
        values = [quantile.value for quantile in expect(answer).demand]
        assert values == sorted(values)
        hits += load[row, now + 1] <= expect(answer).at_quantile(0.9)
    assert 32 <= hits <= 40


def test_the_level_of_today_counts() -> None:
    """Twice the usual load since this morning: the forecast follows instead of repeating yesterday."""
    t = clock(8)
    load = wave(t) * np.where(t >= 7.5 * DAY, 1.5, 1.0) * np.where((t >= 4 * DAY) & (t < 5.5 * DAY), 1.4, 1.0)
    load += noise(1.0, len(t))
    history = frame(load)
    answer = expect(seasonal.forecast(history, 1800.0, history.end)[0])
    assert answer.at_quantile(0.5) > 1.2 * wave(np.array([history.end + 1800.0]))[0]


def test_holes_and_jitter_are_forgiven() -> None:
    t = np.cumsum(RNG.uniform(20, 100, int(9 * DAY / 60)))
    t = t[t < 8 * DAY]
    kept = RNG.random(len(t)) > 0.15
    kept &= ~((t > 3 * DAY) & (t < 3 * DAY + 5 * HOUR))
    history = grid([Series(t[kept], (wave(t) + noise(1.0, len(t)))[kept])], ("x",), MINUTE)
    answer = expect(seasonal.forecast(history, 900.0, 8 * DAY)[0])
    assert answer.at_quantile(0.5) == pytest.approx(wave(np.array([8 * DAY + 1200.0]))[0], abs=4.0)


def test_seasonal_takes_the_week_where_weekends_differ() -> None:
    t = clock(22)
    weekend = (t // DAY) % 7 >= 5
    history = frame(wave(t) * np.where(weekend, 0.3, 1.0) + noise(0.5, len(t)))
    saturday = 4 * 7 * DAY - 2 * DAY
    cut = Frame(("x",), 0.0, 300.0, history.values[:, : int(19 * DAY / 300)])  # until Friday midnight
    answer = expect(seasonal.forecast(cut, HOUR, 19 * DAY)[0])
    coming = 0.3 * wave(np.array([saturday + HOUR]))[0]
    assert answer.at_quantile(0.5) == pytest.approx(coming, rel=0.25)


def test_a_mixed_fleet_is_answered_row_by_row() -> None:
    """Batches hold rows of one age; the answers come back in the order of the frame, as for each row alone."""
    t = clock(8)
    young = wave(t) + noise(1.0, len(t), 1)
    young[: 4 * 288] = np.nan
    rows = [wave(t) + noise(1.0, len(t), 2), np.full(len(t), 7.0), young, wave(t, 6 * HOUR) + noise(1.0, len(t), 3)]
    history = frame(*rows)
    together = seasonal.forecast(history, 900.0, history.end)
    for answer, row in zip(together, rows, strict=True):
        alone = seasonal.forecast(frame(row), 900.0, history.end)[0]
        if isinstance(alone, Missing):
            assert answer == alone
        else:
            assert [q.value for q in expect(answer).demand] == pytest.approx([q.value for q in alone.demand])


# --- why they are silent ---------------------------------------------------------------------------------------------

T = clock(8)
GAPPY = np.where(np.random.default_rng(2).random(len(T)) < 0.5, wave(T), np.nan)
STALE = np.where(T < 7.9 * DAY, wave(T), np.nan)


@pytest.mark.parametrize(
    "values, reason, words",
    [
        pytest.param(np.full(len(T), 5.0), Reason.NOT_PREDICTABLE, "the load is constant", id="flat"),
        pytest.param(
            100 + noise(10.0, len(T)).cumsum() / 10,
            Reason.NOT_PREDICTABLE,
            'the error of "the same as now" on held-out days; at most 0.95',
            id="random walk",
        ),
        pytest.param(
            10 + 0.01 * T / 300 + noise(0.3, len(T)).cumsum() / 10,
            Reason.NOT_PREDICTABLE,
            'the error of "the same as now"',
            id="trending",
        ),
        pytest.param(GAPPY, Reason.NOT_ENOUGH_HISTORY, "of the last 8 d has samples, 70% needed", id="gappy"),
        pytest.param(STALE, Reason.STALE, "the newest sample is 2.3 h old", id="stale"),
        pytest.param(np.full(len(T), np.nan), Reason.NOT_ENOUGH_HISTORY, "0 s of history", id="empty"),
        pytest.param(
            np.where(T > 7.9 * DAY, wave(T), np.nan), Reason.NOT_ENOUGH_HISTORY, "of history, 2 d needed", id="new"
        ),
    ],
)
def test_the_stated_reason(values: np.ndarray, reason: Reason, words: str) -> None:
    history = frame(values)
    answer = silent(seasonal.forecast(history, 900.0, history.end)[0])
    assert answer.reason is reason
    assert words in answer.detail


def test_a_shape_that_stopped_repeating_loses_to_persistence() -> None:
    shape = np.where(T < 4 * DAY, wave(T), 100 + noise(8.0, len(T)).cumsum() / 8)
    answer = silent(seasonal.forecast(frame(shape), 300.0, T[-1] + 300.0)[0])
    assert answer.reason is Reason.NOT_PREDICTABLE


# --- the parts -------------------------------------------------------------------------------------------------------


def test_a_horizon_that_no_held_out_stretch_reaches_needs_more_history() -> None:
    (answer,) = seasonal.forecast(frame(wave(clock(2.5), DAY)), 12 * HOUR, 2.5 * DAY)
    assert silent(answer).reason is Reason.NOT_ENOUGH_HISTORY
    assert silent(answer).detail.endswith("3 d needed")


def test_bins_are_means_of_what_was_measured() -> None:
    minutes = np.arange(12.0)
    minutes[7:12] = np.nan
    binned = batches.binned(frame(minutes, step_s=MINUTE))
    assert (binned.start, binned.step_s) == (-180.0, 300.0)
    assert binned.values[0, :2].tolist() == [0.5, 4.0]  # minutes 0 and 1, 2..6
    assert np.isnan(binned.values[0, 2])


def test_filled_draws_straight_lines() -> None:
    hole = np.nan
    assert batches.filled(np.array([[hole, 2.0, hole, 4.0, hole]])).tolist() == [[2.0, 2.0, 3.0, 4.0, 4.0]]


def test_reach_counts_columns_after_the_last() -> None:
    assert held_out.reach_of(0.0, 0.0, 300.0, 300.0) == (1, 2)
    assert held_out.reach_of(900.0, 60.0, 600.0, 300.0) == (4, 6)


def test_error_quantiles_skip_holes() -> None:
    ordered = np.sort(np.array([[4.0, 1.0, np.nan, 2.0, 3.0]]), axis=1)
    assert held_out.quantiles(ordered, (0.1, 0.5, 0.99)).tolist() == [[1.0, 3.0, 4.0]]


def test_a_perfect_baseline_has_no_error_and_a_useless_one_is_persistence() -> None:
    values = frame(wave(T)).values
    batch = batches.Batch(np.arange(1), values, np.isfinite(values), 300.0)
    perfect = held_out.judge(batch, lambda cut: np.hstack([values, values]), 3)
    useless = held_out.judge(batch, lambda cut: np.zeros((1, 2 * values.shape[1])), 3)
    assert perfect.ratio[0] == pytest.approx(0.0, abs=1e-9)
    assert useless.ratio[0] == pytest.approx(1.0, abs=0.05)
    assert useless.memory[0] == pytest.approx(1.0, abs=0.05)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**31), st.floats(0.0, 0.2), st.sampled_from([0.0, 1.0, 1e6]))
def test_outlooks_are_finite_ordered_and_never_negative(seed: int, holes: float, level: float) -> None:
    rng = np.random.default_rng(seed)
    t = clock(4)
    load = np.maximum(0.0, level + wave(t, rng.choice([3, 12, 24]) * HOUR, 0.0) + rng.normal(0, 10, len(t)))
    load[rng.random(len(t)) < holes] = np.nan
    for answer in seasonal.forecast(frame(load), 600.0, 4 * DAY):
        if isinstance(answer, Forecast):
            values = [quantile.value for quantile in answer.demand]
            assert values == sorted(values)
            assert np.isfinite(values).all() and min(values) >= 0


@pytest.mark.parametrize("name", sorted(FORECASTERS))
def test_the_future_is_never_looked_at(name: str) -> None:
    t = clock(4, MINUTE)
    load = wave(t) + noise(1.0, len(t))
    honest, lying = load[t <= 3 * DAY], np.where(t > 3 * DAY, 1e9, load)
    then, ahead = (FORECASTERS[name].forecast(frame(row, step_s=MINUTE), 600.0, 3 * DAY)[0] for row in (honest, lying))
    assert expect(then) == ahead


@pytest.mark.parametrize("name", sorted(FORECASTERS))
def test_every_forecaster_answers_every_row(name: str) -> None:
    step_s = FORECASTERS[name].bin_s or 300.0
    t = clock(3, step_s)
    history = frame(wave(t), np.full(len(t), np.nan), np.full(len(t), 3.0), step_s=step_s)
    answers = FORECASTERS[name].forecast(history, 600.0, history.end)
    assert len(answers) == 3
    assert isinstance(answers[1], Missing)
    assert answers[1].detail


# --- from a policy to a model ----------------------------------------------------------------------------------------


def test_a_policy_chooses_model_and_settings() -> None:
    t = clock(3)
    history = frame(wave(t))
    choice = ForecastChoice(model="percentile", options={"percentile": 0.5, "margin": 1.0})
    answer = expect(forecast_rows(choice, history, 600.0, history.end)[0])
    plain = expect(
        forecast_rows(ForecastChoice(model="percentile", options={"percentile": 0.5}), history, 600.0, 3 * DAY)[0]
    )
    assert answer.at_quantile(0.5) == pytest.approx(2 * plain.at_quantile(0.5))


def test_exact_means_the_program_and_for_a_line_each_pods_utilisation() -> None:
    exact = options_of(ForecastChoice(model="linear", exact=True))
    assert (exact.exact, exact.per_pod) == (True, True)
    ours = options_of(ForecastChoice(model="linear"))
    assert (ours.exact, ours.per_pod) == (False, False)
    assert options_of(ForecastChoice(model="holtWinters", options={"season": 12.0})).season == 12
    assert options_of(ForecastChoice(model="seasonal", exact=True)) == seasonal.SeasonalOptions()  # there is no other


@pytest.mark.parametrize(
    "choice, word",
    [
        (ForecastChoice(model="oracle"), "forecast.model: 'oracle': known models: linear"),
        (ForecastChoice(model="dsp", options={"histroy_s": 1.0}), "forecast.options.histroy_s: 1.0: known: "),
        (ForecastChoice(model="holtWinters", options={"season": 1.5}), "forecast.options: .*season"),
    ],
)
def test_a_model_or_setting_nobody_knows_is_refused(choice: ForecastChoice, word: str) -> None:
    with pytest.raises(InvalidPolicy, match=word):
        options_of(choice)


def test_a_history_that_grows_is_news_an_hour_at_most_while_two_days_are_needed() -> None:
    told = {too_short(minutes * 60.0, 2 * DAY).detail for minutes in range(1, 6 * 60)}
    assert len(told) == 6 and "less than 1 h of history, 2 d needed" in told and "5 h of history, 2 d needed" in told
