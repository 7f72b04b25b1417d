"""The learned forecast's parts: what it sees, what it says, and what one workload teaches it."""

from __future__ import annotations

import numpy as np
import pytest

from trimtab.core.forecast.learned.features import (
    BLOCK,
    DAY,
    SAMPLES,
    base_of,
    habits,
    lead_minutes,
    logs,
    seasonal,
    seasonal_throughout,
)
from trimtab.core.forecast.learned.net import (
    BINS,
    EDGES,
    PROBABILITIES,
    Singles,
    bins_of,
    lesson,
    probabilities_of,
    quantiles_of,
)
from trimtab.series import Floats

HIDDEN = 8


def minutes(days: int, seed: int = 0) -> Floats:
    """A day's wave with noise, as logs of pods."""
    draw, clock = np.random.default_rng(seed), np.arange(days * DAY)
    return logs(20.0 + 10.0 * np.sin(2 * np.pi * clock / DAY) + draw.standard_normal(days * DAY))[None]


def test_the_base_is_a_mean_of_what_only_differs_by_noise() -> None:
    calm = np.tile([2.0, 2.01], SAMPLES // 2)
    jump = calm.copy()
    jump[-2:] = 2.5
    base = base_of(np.stack([calm, jump]))
    assert base.level.tolist() == pytest.approx([2.005, 2.5])


@pytest.mark.parametrize("lead", [1, 2, 10])
def test_nothing_is_read_at_or_after_its_end(lead: int) -> None:
    known = minutes(9)
    changed = known.copy()
    end = 8 * DAY + 7 * BLOCK
    changed[:, end:] += np.random.default_rng(1).uniform(0.5, 2.0, known.shape[1] - end)
    ends = np.array([end - 100, end - 1, end])
    for before, after in zip(seasonal(known, ends, lead), seasonal(changed, ends, lead), strict=True):
        assert np.array_equal(before, after)
    halves = np.array([end // BLOCK - 1, end // BLOCK])
    for before, after in zip(habits(known, halves, lead), habits(changed, halves, lead), strict=True):
        assert np.array_equal(before, after)


def test_many_moments_of_one_workload_are_one_moment_of_many() -> None:
    known, ends = minutes(9), np.array([8 * DAY, 8 * DAY + 300])
    together = seasonal(known, ends, 2)
    for index, end in enumerate(ends.tolist()):
        alone = seasonal(known[:, :end], np.array([end]), 2)
        assert np.array_equal(alone.growth[:, 0], together.growth[:, index])


@pytest.mark.parametrize("lead", [1, 2, 10])
def test_throughout_is_the_same_as_at_each_moment(lead: int) -> None:
    known = minutes(9)
    for whole, single in zip(
        seasonal_throughout(known, lead), seasonal(known, np.arange(known.shape[1] + 1), lead), strict=True
    ):
        assert np.array_equal(whole, single)


def test_yesterdays_growth_is_seen_at_its_minute() -> None:
    flat = np.full((1, 3 * DAY), 2.0)
    flat[0, DAY + 600 : DAY + 660] = 3.0
    growth = seasonal(flat, np.array([2 * DAY + 590]), lead=10).growth[0, 0]
    assert growth[0] == pytest.approx(1.0)
    assert seasonal(flat, np.array([2 * DAY + 500]), lead=10).growth[0, 0, 0] == 0.0


def test_lead_times_are_whole_minutes_and_at_least_one() -> None:
    assert [lead_minutes(seconds) for seconds in (5.0, 30.0, 120.0, 600.0)] == [1, 1, 2, 10]


def test_growth_falls_into_the_bin_between_its_edges() -> None:
    assert bins_of(np.array([-5.0, EDGES[0], 0.0, 5.0])).tolist() == [0, 1, int(np.searchsorted(EDGES, 0.0)), BINS - 1]


def test_quantiles_ascend_and_hit_the_edges_of_certain_bins() -> None:
    shares = np.zeros((1, BINS), dtype=np.float32)
    shares[0, bins_of(np.array([0.02]))] = 1.0
    demand = quantiles_of(shares, logs(np.array([10.0])))
    assert (np.diff(demand) >= 0).all()
    assert demand[0, -1] == pytest.approx(11.5 * np.exp(0.03) - 1.5, rel=1e-3)


def test_quantiles_are_calibrated_for_the_shares_they_come_from() -> None:
    draw = np.random.default_rng(3)
    shares = draw.dirichlet(np.ones(BINS)).astype(np.float32)
    bins = draw.choice(BINS, size=20000, p=shares.astype(np.float64) / shares.sum(dtype=np.float64))
    lower, upper = np.concatenate([[-2.0], EDGES])[bins], np.concatenate([EDGES, [EDGES[-1] + 0.5]])[bins]
    happened = np.exp(2.5 + draw.uniform(lower, upper)) - 1.5
    demand = quantiles_of(shares[None], np.array([2.5]))[0]
    covered = (happened[:, None] <= demand).mean(axis=0)
    assert np.abs(covered - PROBABILITIES).max() < 0.015


def layer(seed: int) -> Singles:
    return np.random.default_rng(seed).standard_normal((1 + HIDDEN, 2 * BINS)).astype(np.float32)


def test_a_lesson_makes_what_happened_likelier_for_that_workload_alone() -> None:
    common, draw = layer(0), np.random.default_rng(1)
    hidden = draw.standard_normal((2, 1 + HIDDEN)).astype(np.float32)
    hidden[:, 0] = 1.0
    own, outcome = np.stack([common, common]), np.array([[3, 7], [20, 25]])
    taught = lesson(own, common, hidden, outcome)
    before, after = probabilities_of(own, hidden), probabilities_of(taught, hidden)
    for row, question in np.ndindex(2, 2):
        assert after[row, question, outcome[row, question]] > before[row, question, outcome[row, question]]
    assert np.allclose(before, probabilities_of(common, hidden))


def test_lessons_end_at_what_a_workload_does() -> None:
    common = np.zeros((1 + HIDDEN, 2 * BINS), dtype=np.float32)
    own, hidden = common[None].copy(), np.zeros((1, 1 + HIDDEN), dtype=np.float32)
    hidden[0, 0] = 1.0
    draw = np.random.default_rng(5)
    for _ in range(3000):
        own = lesson(own, common, hidden, np.array([[draw.choice([4, 9], p=[0.8, 0.2]), 12]]))
    shares = probabilities_of(own, hidden)[0]
    assert shares[0, 4] == pytest.approx(0.8, abs=0.12)
    assert shares[1, 12] > 0.9
