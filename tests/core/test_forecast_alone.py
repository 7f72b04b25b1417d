"""Every forecaster: what is said of a row depends on its own samples alone, and old samples say nothing of now."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.core.demand.log import DemandLog
from trimtab.core.forecast import FORECASTERS, batches
from trimtab.core.forecast.forecaster import FINE_S
from trimtab.core.forecast.holt_winters import HoltWintersOptions
from trimtab.core.model import Forecast, Missing, Reason
from trimtab.series import Frame, Series

HOUR, DAY = 3600.0, 86400.0
MIDNIGHT = 20_000 * DAY
STEP_S = {name: FINE_S if model.in_tick else model.bin_s for name, model in FORECASTERS.items()}
EVERY = pytest.mark.parametrize("name", sorted(FORECASTERS))


def past(days: float, until: float, seed: int = 1) -> Series:
    """A daily load, a little noise on it."""
    t = 60.0 * np.arange(round((until - days * DAY) / 60.0) + 1, round(until / 60.0) + 1, dtype=np.float64)
    rng = np.random.default_rng(seed)
    return Series(t, 50 + 20 * np.sin(2 * np.pi * t / DAY) + rng.normal(0, 0.3, len(t)))


def frame_of(name: str, at: float, **pasts: Series) -> Frame:
    """As the operator lays it out: from the midnight on before which nobody in the batch was seen."""
    log = DemandLog()
    for key, each in pasts.items():
        log.restore(key, each, 60.0)
    return log.frame(list(pasts), at, STEP_S[name], FORECASTERS[name].keep_s)


def without_leading_holes(frame: Frame) -> Frame:
    return frame.tail(frame.values.shape[1] - int(np.isfinite(frame.values[0]).argmax()))


def numbers(answer: Forecast | Missing) -> object:
    """Many rows are added up in another order than one: the last digits differ, most where they have 32 bits."""
    if isinstance(answer, Missing):
        return answer
    return pytest.approx([quantile.value for quantile in (*answer.demand, *answer.keep)], rel=1e-4)


def plain(answer: Forecast | Missing) -> object:
    return answer if isinstance(answer, Missing) else [each.value for each in (*answer.demand, *answer.keep)]


@EVERY
@settings(max_examples=6, deadline=None)
@given(
    minutes=st.integers(20 * 60, 4 * 24 * 60),
    older_minutes=st.integers(0, 6 * 24 * 60),
    minute_of_day=st.integers(0, 24 * 60 - 1),
)
def test_a_forecast_depends_neither_on_neighbours_nor_on_leading_holes(
    name: str, minutes: int, older_minutes: int, minute_of_day: int
) -> None:
    model, at = FORECASTERS[name].forecast, MIDNIGHT + minute_of_day * 60.0
    row, older = past(minutes / 1440, at), past((minutes + older_minutes) / 1440, at, seed=2)
    young = frame_of(name, at, young=row)
    alone = model(young, HOUR, at)[0]
    assert plain(model(without_leading_holes(young), HOUR, at)[0]) == numbers(alone)
    assert plain(model(frame_of(name, at, older=older, young=row), HOUR, at)[1]) == numbers(alone)


@EVERY
def test_samples_that_ended_an_hour_ago_say_nothing_of_now(name: str) -> None:
    at = MIDNIGHT + 20 * HOUR
    fresh, stale = (
        FORECASTERS[name].forecast(frame_of(name, at, x=past(3.5, until)), HOUR, at)[0] for until in (at, at - HOUR)
    )
    assert isinstance(fresh, Forecast)
    assert isinstance(stale, Missing) and stale.reason is Reason.STALE


@pytest.mark.parametrize("hours, is_enough", [(34.0, False), (47.9, False), (48.5, True), (50.0, True), (55.0, True)])
def test_holt_winters_counts_two_seasons_from_the_first_sample(hours: float, is_enough: bool) -> None:
    at = MIDNIGHT + 20 * HOUR
    for older in ({}, {"older": past(6, at, seed=2)}):
        answer = FORECASTERS["holtWinters"].forecast(
            frame_of("holtWinters", at, x=past(hours / 24, at), **older), HOUR, at
        )[0]
        if is_enough:
            assert isinstance(answer, Forecast)
        else:
            assert isinstance(answer, Missing)
            assert (answer.reason, answer.detail) == (
                Reason.NOT_ENOUGH_HISTORY,
                f"{hours // 1:g} h of history, 2 d needed",
            )


def test_exact_holt_winters_sees_every_sample_there_is() -> None:
    """Its program knows of no whole hours: a sample less is another number."""
    values = np.concatenate([np.full(9, np.nan), np.tile([1.0, 3.0, 7.0], 5), [2.0]])[None, :]
    options = HoltWintersOptions(season=3, exact=True)
    holed, bare = (Frame(("x",), -300.0 * v.shape[1], 300.0, v) for v in (values, values[:, 9:]))
    shorter = Frame(("x",), -300.0 * 15, 300.0, values[:, 10:])
    found = [FORECASTERS["holtWinters"].forecast(frame, 300.0, 0.0, options)[0] for frame in (holed, bare, shorter)]
    assert found[0] == found[1] != found[2]


def test_rows_of_as_many_whole_hours_are_one_batch() -> None:
    """Else every object that is some minutes younger than another would be smoothed for itself."""
    values = np.ones((4, 100))
    for row, lead in enumerate((0, 1, 4, 5)):
        values[row, :lead] = np.nan
    found = list(batches.batches(Frame(("a", "b", "c", "d"), 0.0, 300.0, values), {}, HOUR))
    assert [(batch.rows.tolist(), batch.values.shape[1]) for batch in found] == [([3], 84), ([0, 1, 2], 96)]


def test_the_first_part_of_a_bin_counts_whoever_else_is_in_the_frame() -> None:
    """Bins count back from now, days from midnight: the first bin of a day is a part of one."""
    at = MIDNIGHT + 2 * HOUR + 60.0
    row = past(121 / 1440, at)
    alone, together = frame_of("dsp", at, x=row), frame_of("dsp", at, x=row, older=past(3.0, at, seed=2))
    assert np.isfinite(alone.values[0]).sum() == np.isfinite(together.values[0]).sum()
