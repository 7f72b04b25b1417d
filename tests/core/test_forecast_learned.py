"""The learned forecast's parts: what it sees, what it says, and what one workload teaches it."""

from __future__ import annotations

import numpy as np
import pytest

from trimtab.core.forecast.learned.features import (
    BLOCK,
    DAY,
    HOUR,
    LEAST_NOISE,
    SAMPLES,
    base_of,
    blocks_of,
    habits,
    lead_minutes,
    logs,
    noise_of,
    seasonal,
    summary_of,
)
from trimtab.core.forecast.learned.net import (
    BINS,
    EDGES,
    PROBABILITIES,
    bins_of,
    hidden_of,
    lessons,
    powers_of,
    probabilities_of,
    quantiles_of,
    shipped_weights,
)
from trimtab.series import Floats

HIDDEN = 8


def minutes(days: int, seed: int = 0) -> Floats:
    """A day's wave with noise, as logs of pods."""
    draw, clock = np.random.default_rng(seed), np.arange(days * DAY)
    return logs(20.0 + 10.0 * np.sin(2 * np.pi * clock / DAY) + draw.standard_normal(days * DAY))


def measured(values: Floats) -> np.ndarray:
    return np.ones(len(values), dtype=bool)


def test_the_base_is_a_mean_of_what_only_differs_by_noise() -> None:
    calm = np.tile([2.0, 2.01], SAMPLES // 2)
    jump = calm.copy()
    jump[-2:] = 2.5
    base = base_of(np.stack([calm, jump]), np.full(2, 0.01))
    assert base.level.tolist() == pytest.approx([2.005, 2.5])


def test_noise_is_what_neighboring_minutes_differ_by() -> None:
    hour = np.tile([2.0, 2.02], HOUR // 2)[None]
    assert noise_of(hour)[0] == pytest.approx(1.05 * 0.02 + LEAST_NOISE)
    assert summary_of(hour)[0, -1] == pytest.approx(np.log(noise_of(hour)[0]))


@pytest.mark.parametrize("lead", [1, 2, 10])
def test_nothing_is_read_at_or_after_its_end(lead: int) -> None:
    known = minutes(9)
    changed, end = known.copy(), 8 * DAY + 7 * BLOCK
    changed[end:] += np.random.default_rng(1).uniform(0.5, 2.0, len(known) - end)
    ends = np.array([end - 100, end - 1, end, end + 29])
    before, after = (seasonal(values, measured(values), ends, lead) for values in (known, changed))
    assert all(np.array_equal(one, other) for one, other in zip(before, after, strict=True))
    blocks = end // BLOCK
    assert np.array_equal(blocks_of(known, lead)[:blocks], blocks_of(changed, lead)[:blocks])


@pytest.mark.parametrize("lead", [1, 2, 10])
def test_many_moments_at_once_are_each_alone_bit_for_bit(lead: int) -> None:
    known, ends = minutes(9), np.array([3 * DAY, 8 * DAY, 8 * DAY + 300])
    together = seasonal(known, measured(known), ends, lead)
    blocks = blocks_of(known, lead)
    usual = habits(blocks, ends // BLOCK)
    for index, end in enumerate(ends.tolist()):
        alone = seasonal(known[:end], measured(known)[:end], np.array([end]), lead)
        by_itself = habits(blocks_of(known[:end], lead), np.array([end // BLOCK]))
        for one, all_of_them in zip((*alone, *by_itself), (*together, *usual), strict=True):
            assert np.array_equal(one[0], all_of_them[index])


def test_half_hours_can_be_summed_up_one_by_one() -> None:
    known = minutes(2)
    whole, part = blocks_of(known, 10), blocks_of(known[-2 * BLOCK :], 10)
    assert np.array_equal(whole[-1], part[-1])


def test_yesterdays_growth_is_seen_at_its_minute() -> None:
    flat = np.full(3 * DAY, 2.0)
    flat[DAY + 600 : DAY + 660] = 3.0
    growth = seasonal(flat, measured(flat), np.array([2 * DAY + 590, 2 * DAY + 500]), lead=10).growth
    assert growth[0, 0] == pytest.approx(1.0) and growth[1, 0] == 0.0


def test_a_day_that_was_hardly_measured_does_not_count() -> None:
    flat, known = np.full(3 * DAY, 2.0), np.ones(3 * DAY, dtype=bool)
    known[DAY + 580 : DAY + 620] = False
    assert seasonal(flat, known, np.array([2 * DAY + 600, 2 * DAY + 700]), lead=2).days.tolist() == [1.0, 2.0]


def test_lead_times_are_whole_minutes_and_at_least_one() -> None:
    assert [lead_minutes(seconds) for seconds in (5.0, 30.0, 120.0, 600.0)] == [1, 1, 2, 10]


def test_growth_falls_into_the_bin_between_its_edges() -> None:
    assert bins_of(np.array([-5.0, EDGES[0], 0.0, 5.0])).tolist() == [0, 1, int(np.searchsorted(EDGES, 0.0)), BINS - 1]


def test_quantiles_ascend_and_hit_the_edges_of_certain_bins() -> None:
    shares = np.zeros((1, BINS))
    shares[0, bins_of(np.array([0.02]))] = 1.0
    demand = quantiles_of(np.cumsum(shares, axis=1), logs(np.array([10.0])))
    assert (np.diff(demand) >= 0).all()
    assert demand[0, -1] == pytest.approx(11.5 * np.exp(0.03) - 1.5, rel=1e-3)


def test_quantiles_are_calibrated_for_the_shares_they_come_from() -> None:
    draw = np.random.default_rng(3)
    shares = draw.dirichlet(np.ones(BINS))
    bins = draw.choice(BINS, size=20000, p=shares)
    lower, upper = np.concatenate([[-2.0], EDGES])[bins], np.concatenate([EDGES, [EDGES[-1] + 0.5]])[bins]
    happened = np.exp(2.5 + draw.uniform(lower, upper)) - 1.5
    demand = quantiles_of(np.cumsum(7.0 * shares)[None], np.array([2.5]))[0]
    covered = (happened[:, None] <= demand).mean(axis=0)
    assert np.abs(covered - PROBABILITIES).max() < 0.015


def test_sums_of_products_are_exact_whatever_adds_them_up() -> None:
    """The reason for grids: one row, many rows, and rows in another order of inputs give the same bits."""
    weights, draw = shipped_weights(), np.random.default_rng(1)
    features = draw.uniform(-4.0, 4.0, (500, len(weights.mean)))
    together = hidden_of(weights, features)
    order = draw.permutation(len(weights.mean))
    mixed = weights._replace(mean=weights.mean[order], spread=weights.spread[order], first=weights.first[order])
    assert np.array_equal(hidden_of(mixed, features[:, order]), together)
    for row in range(20):
        assert np.array_equal(hidden_of(weights, features[row : row + 1])[0], together[row])
        scores = np.matmul(together[row][None, None, :], weights.last[None])[0]
        assert np.array_equal(powers_of(scores)[0], powers_of(together @ weights.last)[row])


def layer(seed: int) -> Floats:
    return np.rint(np.random.default_rng(seed).standard_normal((1 + HIDDEN, 2 * BINS)) * 1024.0) / 1024.0


def hidden(rows: int, seed: int) -> Floats:
    found = np.rint(np.random.default_rng(seed).standard_normal((rows, 1 + HIDDEN)) * 1024.0) / 1024.0
    found[:, 0] = 1.0
    return found


def test_a_lesson_makes_what_happened_likelier() -> None:
    common, moments, outcome = layer(0), hidden(1, 1), np.array([[3, 25]])
    taught, likely = lessons(common, common, moments, outcome)
    before, after = probabilities_of(common, moments)[0], probabilities_of(taught, moments)[0]
    for question in (0, 1):
        assert after[question, outcome[0, question]] > before[question, outcome[0, question]] == likely[0, question]


def test_lessons_end_at_what_a_workload_does() -> None:
    common = np.zeros((1 + HIDDEN, 2 * BINS))
    own, moments = common, np.zeros((5, 1 + HIDDEN))
    moments[:, 0] = 1.0
    draw = np.random.default_rng(5)
    for _ in range(600):
        outcomes = np.stack([draw.choice([4, 9], p=[0.8, 0.2], size=5), np.full(5, 12)], axis=1)
        own, _ = lessons(own, common, moments, outcomes)
    shares = probabilities_of(own, moments[:1])[0]
    assert shares[0, 4] == pytest.approx(0.8, abs=0.2)
    assert shares[1, 12] > 0.9
