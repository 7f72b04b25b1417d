"""The learned forecast as a model: what it says of good pasts, and why it is silent about bad ones."""

from __future__ import annotations

import numpy as np
import pytest

from trimtab.core.forecast.learned.features import BLOCK, DAY
from trimtab.core.forecast.learned.model import (
    HOUR_BEFORE,
    LONGEST_S,
    Moment,
    forecast,
    newest_of,
    say,
    study,
    throughout,
)
from trimtab.core.forecast.learned.net import PROBABILITIES
from trimtab.core.forecast.learned.study import Study
from trimtab.core.model import Forecast, Missing, Reason
from trimtab.series import Floats, Frame
from trimtab.sim.sliding_windows import delayed, forward_max, trailing_mean

FIRST = 29_000_000  # minutes since 1970
DAYS = 3
NOISE = 0.02


def wave(days: float = DAYS, phase: int = 0, seed: int = 0) -> Floats:
    """20 pods, 10 more or less by the hour of the day."""
    clock = np.arange(round(days * DAY)) + phase
    noise = 1.0 + NOISE * np.random.default_rng(seed).standard_normal(len(clock))
    return np.asarray((20.0 + 10.0 * np.sin(2 * np.pi * clock / DAY)) * noise)


def frame(*rows: Floats, first: int = FIRST) -> Frame:
    return Frame(tuple(str(row) for row in range(len(rows))), first * 60.0, 60.0, np.stack(rows))


def at_end(of: Frame) -> float:
    return of.end


def answer(values: Floats, horizon_s: float = 120.0) -> Forecast | Missing:
    (found,) = forecast(frame(values), horizon_s, at_end(frame(values)))
    return found


def studied(values: Floats, startup_s: float = 120.0, known: Study | None = None, carries: float = 1.0) -> list[Study]:
    """What is learned of minutes from `FIRST` on: from the half-hour that is known, or of the present one alone."""
    half = (FIRST + len(values)) // BLOCK
    return study(values, FIRST, carries, startup_s, known, range(known.half + 1 if known else half, half + 1))


def told(values: Floats, about: Study, at: float | None = None) -> Forecast | Missing:
    """What is said at the end of these minutes, or later."""
    end = (FIRST + len(values)) * 60.0
    times = 60.0 * np.arange(FIRST + 1, FIRST + len(values) + 1, dtype=np.float64)
    moment = Moment(about, 120.0, newest_of(times, values, at or end))
    (found,) = say([moment], values[None, -HOUR_BEFORE:], end)
    return found


def speaks(found: Forecast | Missing) -> Forecast:
    assert isinstance(found, Forecast), found
    return found


def test_quantiles_ascend_around_what_comes() -> None:
    whole = wave(DAYS + 0.25)
    known = whole[: DAYS * DAY]
    found = speaks(answer(known))
    values = [quantile.value for quantile in found.demand]
    assert values == sorted(values)
    assert found.demand[0].value * 0.9 < whole[DAYS * DAY + 2] < found.demand[-1].value * 1.1
    assert (
        found.at_quantile(0.9) <= next(quantile.value for quantile in found.keep if quantile.probability >= 0.9) * 1.02
    )
    assert (found.model, found.note) == ("learned", "")
    assert found.expires_at > found.made_at == at_end(frame(known))


def test_a_morning_that_comes_every_day_is_expected() -> None:
    """Ten minutes before a step of two thirds, on the fourth day alike."""
    day = np.where(np.arange(DAY) < 600, 15.0, 25.0)
    whole = np.tile(day, DAYS + 1) * (1.0 + NOISE * np.random.default_rng(3).standard_normal((DAYS + 1) * DAY))
    before, calm = DAYS * DAY + 595, DAYS * DAY + 400
    expected, still = speaks(answer(whole[:before], 600.0)), speaks(answer(whole[:calm], 600.0))
    assert expected.at_quantile(0.9) > 1.3 * still.at_quantile(0.9)


def test_upper_quantiles_cover_what_they_say() -> None:
    """A minute after a pod serves stays below the quantile for nine in ten, nine times in ten, as an operator sees."""
    below, steps, ahead = [], 4 * DAY * (DAYS + 1), 8
    for seed in range(2):
        noise = 1.0 + NOISE * np.random.default_rng(seed).standard_normal(steps)
        load = (20.0 + 10.0 * np.sin(2 * np.pi * np.arange(steps) / (4 * DAY))) * noise
        found = throughout(
            60.0 * FIRST + 15.0 * np.arange(1.0, steps + 1.0), delayed(trailing_mean(load, 4), 1), 1.0, 120.0
        )
        spoken = slice(4 * DAYS * DAY, steps - 60)
        assert not found.silent[spoken].any()
        highest = np.roll(forward_max(load, 3), -1 - ahead)
        below += (highest <= found.start[:, PROBABILITIES.tolist().index(0.9)])[spoken].tolist()
    assert 0.85 <= np.mean(below) <= 0.97


def test_what_a_row_counts_in_is_no_matter() -> None:
    (one,), (other,) = studied(wave()), studied(250.0 * wave(), carries=250.0)
    pods, units = speaks(told(wave(), one)), speaks(told(250.0 * wave(), other))
    for few, many in zip(pods.demand, units.demand, strict=True):
        assert many.value == pytest.approx(250.0 * few.value, rel=2e-3)


def test_nothing_after_now_is_looked_at() -> None:
    whole = frame(wave(DAYS + 1))
    now = (FIRST + DAYS * DAY) * 60.0 - 1.0
    changed = Frame(whole.names, whole.start, whole.step_s, whole.values.copy())
    changed.values[:, DAYS * DAY :] *= np.random.default_rng(1).uniform(0.2, 3.0, DAY)
    assert forecast(whole, 120.0, now) == forecast(changed, 120.0, now)


def test_learned_at_once_or_half_an_hour_at_a_time_is_the_same_bit_for_bit() -> None:
    whole = wave(DAYS)
    (once,), (known,) = studied(whole), studied(whole[: 2 * DAY])
    for end in range(2 * DAY + BLOCK, DAYS * DAY + 1, BLOCK):
        known = studied(whole[:end], known=known)[-1]
    assert np.array_equal(known.last, once.last)
    assert told(whole, known) == told(whole, once)


def test_beyond_ten_minutes_ten_are_used_and_that_is_said() -> None:
    longest, longer = speaks(answer(wave(), LONGEST_S)), speaks(answer(wave(), 3 * LONGEST_S))
    assert longer.demand == longest.demand
    assert (longest.note, longer.note) == ("", "looks 10 min ahead: no start-up is known beyond")


def gappy() -> Floats:
    values = wave()
    values[np.random.default_rng(2).random(len(values)) < 0.4] = np.nan
    return values


def with_gap(minutes: int) -> Floats:
    values = wave()
    values[DAY : DAY + minutes] = np.nan
    return values


def ended(minutes: int) -> Floats:
    values = wave()
    values[-minutes:] = np.nan
    return values


def unit_changed(hours: float, factor: float) -> Floats:
    values = wave()
    values[-round(60 * hours) :] *= factor
    return values


@pytest.mark.parametrize(
    ("values", "reason", "words"),
    [
        pytest.param(wave(0.9), Reason.NOT_ENOUGH_HISTORY, "of history, 1 d needed", id="short"),
        pytest.param(wave(1.05), Reason.NOT_ENOUGH_HISTORY, "60 are needed", id="too short to be judged"),
        pytest.param(np.full(DAYS * DAY, 12.0), Reason.NOT_PREDICTABLE, "constant", id="constant"),
        pytest.param(np.zeros(DAYS * DAY), Reason.NOT_PREDICTABLE, "no load", id="zero"),
        pytest.param(np.full(DAYS * DAY, np.nan), Reason.NOT_ENOUGH_HISTORY, "first forecast", id="nothing"),
        pytest.param(gappy(), Reason.NOT_ENOUGH_HISTORY, "has samples, 70% needed", id="gappy"),
        pytest.param(ended(5), Reason.STALE, "no sample in the last 3 min", id="ended"),
        pytest.param(unit_changed(2.0, 1000.0), Reason.NOT_ENOUGH_HISTORY, "another unit", id="thousands for ones"),
        pytest.param(unit_changed(3.0, 0.001), Reason.NOT_ENOUGH_HISTORY, "another unit", id="ones for thousands"),
    ],
)
def test_bad_pasts_are_met_with_a_reason(values: Floats, reason: Reason, words: str) -> None:
    found = answer(values)
    assert isinstance(found, Missing), found
    assert found.reason is reason
    assert words in found.detail


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(with_gap(300), id="five hours are missing"),
        pytest.param(np.concatenate([wave(2.0), wave(1.0, phase=60)]), id="the clocks were changed"),
        pytest.param(
            np.where(np.arange(DAYS * DAY) % 997 == 0, 0.0, wave()), id="a counter that was reset now and then"
        ),
        pytest.param(np.where(np.arange(DAYS * DAY) == 2 * DAY, 1e6, wave()), id="one minute of nonsense"),
        pytest.param(unit_changed(33.0, 1000.0), id="a unit that changed more than a day ago"),
        pytest.param(wave() * 0.02, id="less than a pod"),
    ],
)
def test_odd_pasts_never_make_a_wild_forecast(values: Floats) -> None:
    found, recent = answer(values), values[-DAY:]
    if isinstance(found, Missing):
        assert found.detail
        return
    assert found.demand[0].value >= 0.0
    assert found.at_quantile(0.99) <= 2.0 * np.nanquantile(recent, 0.99) + 1.0


def test_a_load_far_off_all_it_knows_is_not_extrapolated() -> None:
    """The unit changes between two studies: the next forecast is silent at once."""
    known = wave(4.0)
    (about,) = studied(known)
    known[-10:] *= 1000.0
    found = told(known, about)
    assert isinstance(found, Missing)
    assert "8 times off" in found.detail


def test_one_that_loses_to_the_same_as_now_is_silent() -> None:
    """Its load jumps at random, which no other does so."""
    (about,) = studied(wave(4.0))
    worse = about._replace(surprise=np.array([about.surprise[1] + 0.1 * about.lessons, about.surprise[1]]))
    (after,) = studied(wave(4.0 + BLOCK / DAY), known=worse)
    found = told(wave(4.0 + BLOCK / DAY), after)
    assert isinstance(found, Missing)
    assert '"the same as now" was the better forecast, by 0.' in found.detail


def test_what_was_kept_in_coarse_steps_does_not_make_it_too_sure() -> None:
    """After a restart five minutes are one mean: the spread stays about what it is with minutes."""
    fine = wave(seed=4)
    coarse = np.repeat(fine.reshape(-1, 5).mean(axis=1), 5)
    coarse[-120:] = fine[-120:]
    spreads = []
    for values in (fine, coarse):
        found = speaks(answer(values))
        spreads.append(found.at_quantile(0.95) / found.at_quantile(0.5))
    assert spreads[1] - 1.0 > 0.4 * (spreads[0] - 1.0)
