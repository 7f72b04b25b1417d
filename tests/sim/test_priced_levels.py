"""The compiled lane of the priced policy equals the core's functions, and never looks ahead."""

from __future__ import annotations

import numpy as np
import pytest

from trimtab.core.forecast.learned.net import BINS, PROBABILITIES, NetWeights, lesson, probabilities_of, quantiles_of
from trimtab.core.priced import into_band, levels
from trimtab.policy import SLO, Bounds
from trimtab.series import Floats
from trimtab.sim.demand_features import DemandFeatures
from trimtab.sim.grid import DAY_STEPS
from trimtab.sim.priced_levels import (
    FIRST_LESSON,
    LESSON_STEPS,
    band_path,
    learn_into,
    levels_into,
    priced_levels,
)

HIDDEN = 6


def load_of(days: int) -> Floats:
    draw, clock = np.random.default_rng(0), np.arange(days * DAY_STEPS)
    return np.asarray(15 + 10 * np.sin(2 * np.pi * clock / DAY_STEPS) + draw.standard_normal(len(clock)))


def weights(features: int, seed: int = 0) -> NetWeights:
    draw = np.random.default_rng(seed)
    shapes = [
        (features,),
        (features,),
        (features, HIDDEN),
        (HIDDEN,),
        (HIDDEN, HIDDEN),
        (HIDDEN,),
        (1 + HIDDEN, 2 * BINS),
    ]
    made = [(0.3 * draw.standard_normal(shape)).astype(np.float32) for shape in shapes]
    made[1] = np.ones(features, dtype=np.float32)
    return NetWeights(*made)


def test_levels_step_by_step_are_the_cores() -> None:
    draw, prices = np.random.default_rng(5), np.array([1.0, 32.0, 2048.0])
    shares = draw.dirichlet(np.full(BINS, 0.3), 500).astype(np.float32)
    level, found = draw.uniform(0.4, 4.0, 500), np.empty((3, 500), dtype=np.int32)
    levels_into(shares, level, PROBABILITIES, prices, SLO, found)
    demand = quantiles_of(shares, level)
    for row, price in zip(found, prices.tolist(), strict=True):
        assert row.tolist() == levels(PROBABILITIES, demand, price).tolist()


def test_learning_step_by_step_is_the_cores_lesson() -> None:
    draw, steps, delay = np.random.default_rng(2), FIRST_LESSON + 60, 7
    hidden = draw.standard_normal((steps, 1 + HIDDEN)).astype(np.float32)
    common = draw.standard_normal((1 + HIDDEN, 2 * BINS)).astype(np.float32)
    bins = draw.integers(0, BINS, (steps, 2))
    shares = np.empty((steps, 2, BINS), dtype=np.float32)
    known, half = np.concatenate([np.zeros((delay, 1 + HIDDEN), dtype=np.float32), hidden]), steps // 2
    last = common.copy()
    learn_into(known[: delay + half], last, common, bins, 0, shares[:half])
    learn_into(known[half:], last, common, bins, half, shares[half:])
    own = common[None].copy()
    for t in range(steps):
        assert shares[t] == pytest.approx(probabilities_of(own, hidden[t : t + 1])[0], rel=1e-3, abs=1e-6)
        moment = t - delay
        if moment >= FIRST_LESSON and moment % LESSON_STEPS == 0:
            own = lesson(own, common, hidden[moment : moment + 1], bins[moment : moment + 1])
    assert not np.array_equal(own[0], common)


@pytest.mark.parametrize("startup_s", [30.0, 600.0])
def test_no_decision_changes_with_what_comes_after_it(startup_s: float) -> None:
    load = load_of(3)
    features, _ = DemandFeatures(load, startup_s).at(np.array([DAY_STEPS]))
    model, cut = weights(features.shape[1]), 2 * DAY_STEPS + 1234
    changed = load.copy()
    changed[cut:] *= np.random.default_rng(1).uniform(0.2, 3.0, len(load) - cut)
    for before, after in zip(
        priced_levels(load, startup_s, model, [2.0, 32.0]),
        priced_levels(changed, startup_s, model, [2.0, 32.0]),
        strict=True,
    ):
        assert np.array_equal(before[:, :cut], after[:, :cut])
        assert not np.array_equal(before[:, cut:], after[:, cut:])


def test_pods_stay_within_the_band_and_the_bounds() -> None:
    draw = np.random.default_rng(3)
    start, keep = draw.integers(1, 30, (2, 200)).astype(np.int32)
    replicas, pods = band_path(start, keep, 5, Bounds(min_replicas=2, max_replicas=20)), 5
    for t in range(200):
        assert replicas[t] == pods
        pods = min(max(into_band(pods, int(start[t]), int(keep[t])), 2), 20)
