"""One call for many policies: each gets the engine that can run it, and all get the same figures from either."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from tests.sim.policies import on_cpu, on_load
from trimtab.policy import Bridge, ForecastChoice, Objective, Policy, Signal
from trimtab.sim.cluster_spec import ClusterSpec
from trimtab.sim.generate import LoadShape, generate
from trimtab.sim.grid import DAY_STEPS
from trimtab.sim.simulate import Simulation, stepped_parts, why_slow

LOAD = generate(LoadShape(days=2, noise=0.1))
TWO_METRICS: tuple[Signal, ...] = (*on_load().signals, *on_load(0.5).signals)

POLICIES = [
    on_load(),
    on_load(0.5),
    replace(on_load(), bridge=Bridge()),
    on_cpu(),
    replace(on_cpu(), bridge=Bridge()),
    replace(on_load(), forecast=ForecastChoice(horizon_s=600.0, options={"history_size": 8})),
    replace(on_load(), signals=TWO_METRICS),
]


@pytest.fixture(scope="module")
def simulation() -> Simulation:
    return Simulation(LOAD, ClusterSpec(), first_pods=20)


def test_the_days_of_many_policies_are_those_of_their_runs(simulation: Simulation) -> None:
    assert [bool(why_slow(policy, simulation.cluster)) for policy in POLICIES] == [False] * 6 + [True]
    for policy, days in zip(POLICIES, simulation.days(POLICIES), strict=True):
        assert days is not None
        for column, other in zip(days, simulation.run(policy).days(DAY_STEPS), strict=True):
            assert column == pytest.approx(other)


def test_every_policy_is_reported_done(simulation: Simulation) -> None:
    done: list[None] = []
    simulation.days(POLICIES[:4], lambda count: done.append(None))
    assert len(done) == 3, "two policies that differ in their bridge are one replay"


def test_prices_share_one_forecast(monkeypatch: pytest.MonkeyPatch) -> None:
    simulation = Simulation(np.tile(LOAD, 2), ClusterSpec(), first_pods=20)  # one day's forecasts are too few to trust

    def priced(price: float) -> Policy:
        return replace(on_load(), objective=Objective(price=price), forecast=ForecastChoice(model="learned"))

    cheap, dear = simulation.days([priced(1.0), priced(128.0)])
    assert cheap is not None and dear is not None
    assert cheap.pods.sum() < dear.pods.sum() and cheap.violating.sum() > dear.violating.sum()
    monkeypatch.setattr("trimtab.sim.simulate.throughout", None)
    (again,) = simulation.days([priced(128.0)])
    assert again is not None and np.array_equal(again.pods, dear.pods)


def test_the_date_of_the_first_step_changes_nothing() -> None:
    later = Simulation(LOAD, ClusterSpec(), first_pods=20, start=1.7e9).run(on_load())
    assert later.replicas.tolist() == Simulation(LOAD, ClusterSpec(), first_pods=20).run(on_load()).replicas.tolist()


def test_candidates_are_compared_without_what_only_decide_simulates() -> None:
    cluster = ClusterSpec(memory_load=np.full(len(LOAD), 1e9), retry_share=0.1)
    assert stepped_parts(cluster) == ("memory that depends on the load", "retries")
    assert why_slow(on_load(), cluster) and not why_slow(on_load(), ClusterSpec())
    (rough,) = Simulation(LOAD, cluster, first_pods=20).days([on_load()])
    (plain,) = Simulation(LOAD, ClusterSpec(), first_pods=20).days([on_load()])
    assert rough is not None and plain is not None and np.array_equal(rough.pods, plain.pods)
