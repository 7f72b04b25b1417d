"""The bridge on the grid: the benchmark's rule restated step by step, and both lanes equal to it."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from trimtab.bench.baselines import hpa
from trimtab.policy import Bridge
from trimtab.series import Floats
from trimtab.sim.cluster import run
from trimtab.sim.cluster_spec import ClusterSpec
from trimtab.sim.grid import MEAN_STEPS
from trimtab.sim.numba_engine import run_compiled
from trimtab.sim.program import program
from trimtab.sim.score import Counts, Days, measure
from trimtab.sim.simulate import simulate
from trimtab.sim.sliding_windows import trailing_mean

DAY_STEPS = 240
BRIDGE = Bridge(ceiling=0.7)


def jumpy_load(seed: int, steps: int = 4 * DAY_STEPS) -> Floats:
    draw = np.random.default_rng(seed)
    plateaus = np.repeat(draw.lognormal(2.0, 0.5, steps // 20), 20)
    return np.asarray(plateaus * (1.0 + 0.03 * draw.standard_normal(steps)))


def by_the_rule(load: Floats, replicas: Counts, delay: int, ceiling: float) -> dict[str, float]:
    """Pods due become ready, are billed, serve; then pods are decided, and the size two steps later."""
    signal, steps = trailing_mean(load, MEAN_STEPS), len(load)
    due, factors, levels = np.zeros(steps + delay + 2), np.ones(steps + 2), np.ones(steps)
    ready, backlog = float(replicas[0]), 0.0
    total = {"pods": 0.0, "violating": 0.0, "resized": 0.0}
    for t in range(steps):
        ready += due[t]
        total["pods"] += (replicas[t] - ready) + ready * max(factors[t], factors[t + 1])
        capacity = ready * factors[t]
        work = load[t] + backlog
        backlog = min(work - min(work, capacity), capacity)
        if 0.8 * capacity < load[t] - 1e-6 or backlog > 1e-9:
            total["violating"] += load[t]
        if t + 1 == steps:
            break
        change = int(replicas[t + 1]) - int(replicas[t])
        if change > 0:
            due[t + 1 + delay] += change
        for slot in range(t + 1 + delay, t, -1):
            gone = min(due[slot], max(0, -change))
            due[slot], change = due[slot] - gone, change + gone
        ready += min(0, change)
        after = ready + due[t + 1]
        need = max(load[t], signal[t]) / ceiling / after
        levels[t] = next((level for level in (1.0, 1.25, 1.5) if level >= need - 1e-9), 1.5)
        factors[t + 2] = levels[max(0, t - 19) : t + 1].max()
        if factors[t + 2] != factors[t + 1]:
            total["resized"] += after
    return total


def totals(days: Days) -> dict[str, float]:
    return {name: float(getattr(days, name).sum()) for name in ("pods", "violating", "resized")}


@pytest.mark.parametrize("startup_s", [30.0, 120.0, 600.0])
@pytest.mark.parametrize("seed", [1, 2])
def test_both_lanes_follow_the_rule(seed: int, startup_s: float) -> None:
    load, policy = jumpy_load(seed), replace(hpa(), bridge=BRIDGE)
    cluster = ClusterSpec(startup_s=startup_s, metric_delay_s=0.0)
    replicas = run_compiled(trailing_mean(load, MEAN_STEPS), program(policy, 15.0), 10)
    expected = by_the_rule(load, replicas, int(startup_s / 15), BRIDGE.ceiling)
    assert expected["resized"] > 0
    seen = np.maximum(load, trailing_mean(load, MEAN_STEPS))
    fused = measure(load, replicas, int(startup_s / 15), DAY_STEPS, bridge=BRIDGE, seen=seen)
    assert totals(fused) == pytest.approx(expected)
    compiled = simulate(policy, load, cluster, first_pods=10)
    assert totals(compiled.days(DAY_STEPS)) == pytest.approx(expected)
    stepped = run(policy, load, cluster, first_pods=10)
    assert totals(stepped.days(DAY_STEPS)) == pytest.approx(expected)


def test_the_bridge_never_changes_how_many_pods_there_are() -> None:
    load, cluster = jumpy_load(3), ClusterSpec(startup_s=120.0)
    without = run(hpa(), load, cluster, first_pods=10)
    with_it = run(replace(hpa(), bridge=BRIDGE), load, cluster, first_pods=10)
    assert (without.replicas == with_it.replicas).all()
    assert with_it.violating.sum() < without.violating.sum()


def test_without_a_bridge_nothing_is_resized() -> None:
    assert not run(hpa(), jumpy_load(4), first_pods=10).resized.any()
