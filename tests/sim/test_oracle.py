"""The optimum against brute force, and its two forms against each other."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

from trimtab.series import Floats
from trimtab.sim.oracle import optimum, pods_needed
from trimtab.sim.score import ready_pods


def brute_force(needed: list[int], delay: int) -> int:
    """The cheapest billed pods of all that serve every step, by trying every one."""
    best = sum(needed) * 10
    for billed in product(range(1, max(needed) + 1), repeat=len(needed)):
        ready = ready_pods(np.array(billed, dtype=np.int32), delay)
        if all(have >= need for have, need in zip(ready, needed, strict=True)):
            best = min(best, sum(billed))
    return best


@pytest.mark.parametrize("seed", range(25))
def test_closed_form_is_the_cheapest_of_all_runs(seed: int) -> None:
    draw = np.random.default_rng(seed)
    needed = draw.integers(1, 4, size=7).astype(np.int32)
    delay = int(draw.integers(0, 4))
    assert optimum(needed, delay).sum() == brute_force(needed.tolist(), delay)


def cheapest(prices: Floats, delay_steps: int) -> float:
    """By dynamic programming: the lowest total of prices[t, n] plus `delay_steps` for every pod started later on.

    f'(n) = g(n) + min(min_{m>=n} f(m), min_{m<n} f(m) + L (n - m)), n pods serving in step t.
    A pod that serves from the first step on has paid for nothing.
    """
    pods = np.arange(prices.shape[1])
    best = prices[0].copy()
    for price in prices[1:]:
        kept = np.minimum.accumulate(best[::-1])[::-1]
        grown = np.minimum.accumulate(best - delay_steps * pods) + delay_steps * pods
        best = price + np.minimum(kept, grown)
    return float(best.min())


def brute_force_prices(prices: np.ndarray, delay: int) -> float:
    steps, most = prices.shape
    return min(
        sum(prices[t, n] for t, n in enumerate(run)) + delay * sum(max(0, b - a) for a, b in pairwise(run))
        for run in product(range(most), repeat=steps)
    )


@pytest.mark.parametrize("seed", range(25))
def test_programme_is_the_cheapest_under_any_prices(seed: int) -> None:
    draw = np.random.default_rng(seed)
    prices = draw.uniform(0, 10, size=(6, 4))
    delay = int(draw.integers(0, 5))
    assert cheapest(prices, delay) == pytest.approx(brute_force_prices(prices, delay))


@pytest.mark.parametrize("delay", [0, 2, 8, 40])
def test_both_forms_agree_where_violating_is_forbidden(delay: int) -> None:
    load = np.abs(np.cumsum(np.random.default_rng(delay).standard_normal(400)))
    load[: delay + 1] = 0  # a run that begins in the middle of a start-up is billed for only a part of it
    needed = pods_needed(load, least=2)
    pods = np.arange(needed.max() + 1)
    prices = np.where(pods >= needed[:, None], pods, np.inf)
    assert cheapest(prices, delay) == optimum(needed, delay).sum()


def test_pods_needed_have_no_rounding_ghosts_and_a_floor() -> None:
    assert pods_needed(np.array([0.0, 1.6, 2.4, 2.4000001, 8.0]), least=2).tolist() == [2, 2, 3, 4, 10]
