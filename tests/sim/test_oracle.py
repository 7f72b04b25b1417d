"""The optimum against brute force, and its two forms against each other."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

from trimtab.sim.oracle import cheapest, demand, optimum
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
    needed = demand(load, least=2)
    pods = np.arange(needed.max() + 1)
    prices = np.where(pods >= needed[:, None], pods, np.inf)
    assert cheapest(prices, delay) == optimum(needed, delay).sum()


def test_demand_has_no_rounding_ghosts_and_a_floor() -> None:
    assert demand(np.array([0.0, 1.6, 2.4, 2.4000001, 8.0]), least=2).tolist() == [2, 2, 3, 4, 10]
