"""The learned forecast as a model: what it says of good pasts, and why it is silent about bad ones."""

from __future__ import annotations

import numpy as np
import pytest

from trimtab.core.forecast.learned.features import DAY, looked_at
from trimtab.core.forecast.learned.model import LONGEST_S, Learned, forecast, learn, say
from trimtab.core.forecast.learned.study import AGAIN, Study
from trimtab.core.model import Forecast, Missing, Reason
from trimtab.series import Floats, Frame

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
    return of.end - 1.0


def answer(values: Floats, horizon_s: float = 120.0) -> Forecast | Missing:
    (found,) = forecast(frame(values), horizon_s, at_end(frame(values)))
    return found


def glimpse_of(known: Frame) -> Floats:
    """What is looked at of two minutes' lead."""
    places = known.values.shape[1] + looked_at(2)
    return np.where(places >= 0, known.values[:, np.maximum(places, 0)], np.nan)


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
    """Of 300 moments of four workloads, nine in ten stay below the quantile for nine in ten."""
    whole, known = np.stack([wave(DAYS + 1, seed=seed) for seed in range(4)]), DAYS * DAY
    past = frame(*whole[:, :known])
    studies = [study for study in learn(past, 120.0, at_end(past), [None] * 4, np.ones(4)).studies if study is not None]
    below = []
    for end in range(known, known + 300, 4):
        found = say(glimpse_of(frame(*whole[:, :end])), 120.0, (FIRST + end) * 60.0, studies, np.ones(4))
        below += [row[end + 2] <= speaks(said).at_quantile(0.9) for row, said in zip(whole, found, strict=True)]
    assert 0.85 <= np.mean(below) <= 0.96


def test_what_a_row_counts_in_is_no_matter() -> None:
    known = frame(wave(), 250.0 * wave())
    one, other = learn(known, 120.0, at_end(known), [None, None], np.array([1.0, 250.0])).forecasts
    for pods, units in zip(speaks(one).demand, speaks(other).demand, strict=True):
        assert units.value == pytest.approx(250.0 * pods.value, rel=1e-6)


def test_nothing_after_now_is_looked_at() -> None:
    whole = frame(wave(DAYS + 1))
    now = (FIRST + DAYS * DAY) * 60.0 - 1.0
    changed = Frame(whole.names, whole.start, whole.step_s, whole.values.copy())
    changed.values[:, DAYS * DAY :] *= np.random.default_rng(1).uniform(0.2, 3.0, DAY)
    assert forecast(whole, 120.0, now) == forecast(changed, 120.0, now)


def test_a_restart_with_the_same_past_says_the_same() -> None:
    """Learned in one go, or hour by hour as an operator does: nearly the same layer."""
    whole = wave(DAYS)
    late = frame(whole)
    once = speaks(answer(whole))
    early = frame(whole[: 2 * DAY])
    known: list[Study | None] = learn(early, 120.0, at_end(early), [None], np.ones(1)).studies
    for end in range(2 * DAY + AGAIN + 30, DAYS * DAY, AGAIN + 30):
        some = frame(whole[:end])
        known = learn(some, 120.0, at_end(some), known, np.ones(1)).studies
    found: Learned = learn(late, 120.0, at_end(late), known, np.ones(1))
    for one, other in zip(once.demand, speaks(found.forecasts[0]).demand, strict=True):
        assert one.value == pytest.approx(other.value, rel=0.02)


def test_where_nothing_is_new_a_glimpse_is_enough() -> None:
    known = frame(wave(4.0), wave(4.0, phase=300, seed=1))
    first = learn(known, 120.0, at_end(known), [None, None], np.ones(2))
    studies = [study for study in first.studies if study is not None]
    assert say(glimpse_of(known), 120.0, at_end(known), studies, np.ones(2)) == first.forecasts


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
        pytest.param(wave(1.1), Reason.NOT_ENOUGH_HISTORY, "60 are needed", id="too short to be judged"),
        pytest.param(np.full(DAYS * DAY, 12.0), Reason.NOT_PREDICTABLE, "constant", id="constant"),
        pytest.param(np.zeros(DAYS * DAY), Reason.NOT_PREDICTABLE, "no load", id="zero"),
        pytest.param(np.full(DAYS * DAY, np.nan), Reason.NOT_ENOUGH_HISTORY, "history", id="nothing"),
        pytest.param(gappy(), Reason.NOT_ENOUGH_HISTORY, "has samples, 70% needed", id="gappy"),
        pytest.param(ended(4), Reason.STALE, "no sample in the last 3 min", id="ended"),
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
    known = frame(wave(4.0))
    (study,) = learn(known, 120.0, at_end(known), [None], np.ones(1)).studies
    assert study is not None
    glimpse = glimpse_of(known)
    glimpse[:, -10:] *= 1000.0
    (found,) = say(glimpse, 120.0, at_end(known), [study], np.ones(1))
    assert isinstance(found, Missing)
    assert "8 times off" in found.detail


def test_one_that_loses_to_the_same_as_now_is_silent() -> None:
    known = frame(wave(4.0))
    (study,) = learn(known, 120.0, at_end(known), [None], np.ones(1)).studies
    assert study is not None
    worse = study._replace(surprise=np.array([study.surprise[1] + 0.1 * study.lessons, study.surprise[1]]))
    (found,) = say(glimpse_of(known), 120.0, at_end(known), [worse], np.ones(1))
    assert isinstance(found, Missing)
    assert '"the same as now" was the better forecast, by 0.10 nats' in found.detail


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
