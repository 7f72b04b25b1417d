"""An objective in the simulated cluster: the operator's own code, step by step, and nothing of what comes later."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from trimtab.core.model import Decision, Forecast, Memory, Observation
from trimtab.policy import Bounds, ForecastChoice, Metric, MetricKind, Objective, Policy, TotalAverage, Utilization
from trimtab.series import Floats
from trimtab.sim.cluster import Run, run
from trimtab.sim.cluster_spec import ClusterSpec
from trimtab.sim.simulate import why_slow

MINUTE_S, DAY = 60.0, 1440
SLOW = ClusterSpec(startup_s=240.0)
RATE = TotalAverage(metric=Metric(kind=MetricKind.EXTERNAL, name="load"), target=0.7)
PRICED = Policy(
    signals=(RATE,),
    objective=Objective(price=128.0),
    forecast=ForecastChoice(model="learned"),
    bounds=Bounds(min_replicas=2, max_replicas=60),
)


def days(count: float) -> Floats:
    """Ten pods of load, twenty by noon, with noise."""
    clock = np.arange(round(count * DAY))
    noise = 1.0 + 0.02 * np.random.default_rng(5).standard_normal(len(clock))
    return np.asarray((15.0 - 5.0 * np.cos(2 * np.pi * clock / DAY)) * noise)


class Watched:
    """What a run saw and decided."""

    def __init__(self) -> None:
        self.decisions: list[Decision] = []
        self.priced = 0

    def __call__(self, seen: Observation, memory: Memory, decision: Decision) -> None:
        self.decisions.append(decision)
        self.priced += isinstance(seen.forecasts[0], Forecast)


@pytest.fixture(scope="module")
def watched() -> tuple[Run, Watched]:
    return replayed(days(1.4))


def replayed(load: Floats) -> tuple[Run, Watched]:
    watch = Watched()
    return run(PRICED, load, SLOW, first_pods=16, step_s=MINUTE_S, watch=watch), watch


def test_the_compiled_lane_runs_it_and_says_what_it_does_not() -> None:
    assert why_slow(PRICED, SLOW) == ""
    cpu = Utilization(metric=Metric(kind=MetricKind.RESOURCE, name="cpu"), percent=70)
    other = replace(PRICED, forecast=ForecastChoice(model="seasonal"))
    assert why_slow(other, SLOW) == "its price has another forecast than the learned one"
    assert why_slow(replace(PRICED, signals=(cpu,)), SLOW) == "its metric is measured at each pod"


def test_it_speaks_when_it_knows_enough_and_never_has_too_few(watched: tuple[Run, Watched]) -> None:
    found, watch = watched
    assert watch.priced > 50
    spoken = slice(len(found.load) - watch.priced, None)
    assert found.violating[spoken].sum() < 0.01 * found.load[spoken].sum()
    assert found.replicas[spoken].mean() < 1.6 * found.load[spoken].mean() / 0.8


def test_nothing_that_comes_later_changes_a_decision(watched: tuple[Run, Watched]) -> None:
    load = days(1.4)
    cut = len(load) - 60
    load[cut:] *= np.random.default_rng(1).uniform(0.3, 3.0, 60)
    _, other = replayed(load)
    assert other.decisions[:cut] == watched[1].decisions[:cut]
    assert other.decisions[cut:] != watched[1].decisions[cut:]
