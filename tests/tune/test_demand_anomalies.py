"""A load that is counted in another unit, or cut off at the top, is told; a night begins where the unit does."""

from __future__ import annotations

import numpy as np
import pytest

from trimtab.series import Floats
from trimtab.sim.grid import DAY_STEPS
from trimtab.tune.demand import Demand
from trimtab.tune.demand_anomalies import in_present_unit, notes_on


def waves(days: int = 6, peak: float = 12.0) -> Floats:
    steps = np.arange(days * DAY_STEPS)
    noise = np.random.default_rng(1).normal(1.0, 0.03, len(steps))
    return peak * (0.6 - 0.4 * np.cos(2 * np.pi * steps / DAY_STEPS)) * noise


def past(values: Floats) -> Demand:
    return Demand("web", values, 0.0)


@pytest.mark.parametrize("factor, said", [(1000.0, "1,000 times"), (1 / 1000, "a 1,000th of")])
def test_another_unit_is_told_and_left_out(factor: float, said: str) -> None:
    values = waves(peak=12_000.0)
    values[4 * DAY_STEPS :] *= factor
    found = in_present_unit(past(values), 0.5)
    assert found.days == pytest.approx(2.0, abs=0.05) and found.start == pytest.approx(4 * 86400.0, abs=3600)
    assert said in found.notes[0] and "another unit: --days 2.0" in notes_on(past(values), 0.5)[0]


def test_a_quiet_weekend_and_one_burst_are_no_unit() -> None:
    values = waves()
    values[2 * DAY_STEPS : 3 * DAY_STEPS] *= 0.05
    values[4 * DAY_STEPS : 4 * DAY_STEPS + 240] *= 50.0
    demand = past(values)
    assert in_present_unit(demand, 0.5) is demand and notes_on(demand, 0.5) == ()


def test_a_load_that_is_cut_off_at_the_top_is_doubted() -> None:
    (note,) = notes_on(past(np.minimum(waves(), 8.0)), 0.5)
    assert "stands still at its highest, 8:" in note
    assert notes_on(past(np.full(2 * DAY_STEPS, 5.0)), 0.5) == (), "a constant load is cut off nowhere"


def test_the_one_highest_of_hourly_samples_stands_not_still() -> None:
    hourly = np.repeat(waves(days=2)[::240], 240)
    assert notes_on(past(hourly), 0.5) == ()
    assert "stands still" in notes_on(past(np.minimum(hourly, 8.0)), 0.5)[0]


def test_a_short_or_empty_past_says_nothing() -> None:
    assert notes_on(past(waves()[:300]), 0.5) == notes_on(past(np.zeros(300)), 0.5) == ()
