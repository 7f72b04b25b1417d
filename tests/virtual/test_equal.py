"""What was tested is what runs: the operator and the simulator decide the same, tick by tick, on the same load."""

from __future__ import annotations

from contextlib import closing
from typing import Any, NamedTuple

import numpy as np
import pytest
from msgspec.structs import replace

from tests.virtual.cluster import START, Cluster
from tests.virtual.faults import BadMetrics, Killed
from tests.virtual.scenes import BLENDS, CORES, NAME, Scene, annotated, blended, scene
from trimtab.core.model import Decision, Forecast, Memory, Missing, Observation, Reason
from trimtab.core.remember import first_sight
from trimtab.journal_replay import replay
from trimtab.live.object_tick import ObjectTick
from trimtab.live.operator import LOOK_AGAIN_S
from trimtab.quantity import GIB
from trimtab.sim.cluster import run
from trimtab.sim.cluster_spec import ClusterSpec, Fault, FaultKind
from trimtab.sim.demand_forecast import SimulatedForecasts
from trimtab.ticks import ObjectName, Tick, tick_of

QUICK, QUICK_ANNOTATED, QUICK_BLENDED = (1, 2, 3, 7, 22), (0, 1, 5), (1, 2)
MANY = 200
UNKNOWN = Missing(reason=Reason.ABSENT)
OF_PODS = {"ready", "capacity", "cpu_cores", "memory_bytes"}  # where no signal asks for pods the simulator shows none


class Told(NamedTuple):
    """One run: every look, and every decision that changed something."""

    ticks: list[Tick]
    acts: dict[float, tuple[Memory, Decision]]

    def seconds_of_acts(self) -> list[float]:
        return [at - START for at in self.acts]


class Down(NamedTuple):
    """The operator is killed right after one tick, and ticks again at another."""

    killed_s: float
    back_s: float

    def killed(self, step_s: float) -> Killed:
        """It starts a moment before it ticks: see `Cluster`."""
        at_s = self.killed_s + step_s / 2
        return Killed(at_s, back_after_s=self.back_s - LOOK_AGAIN_S - at_s)

    def fault(self, step_s: float) -> Fault:
        """Of the steps at whose ends it is not there."""
        return Fault(FaultKind.OPERATOR_DOWN, self.killed_s - step_s / 2, self.back_s - step_s)


class Silent(NamedTuple):
    """No metrics between these seconds."""

    start_s: float
    end_s: float


def set_up(cluster: Cluster, given: Scene) -> None:
    load, memory = given.load.tolist(), given.memory.tolist()
    at = lambda values: lambda seconds: values[min(int(seconds / given.step_s), len(values) - 1)]  # noqa: E731
    cluster.workloads.set(NAME, memory=at(memory))
    cluster.deploy(
        NAME, replicas=given.first_pods, cpu=f"{CORES:.0f}", memory="1Gi", startup_s=given.startup_s, load=at(load)
    )
    cluster.apply(given.manifest)


def by_the_operator(given: Scene, seed: int, down: Down | None = None, silent: Silent | None = None) -> Told:
    looks: list[ObjectTick] = []
    with Cluster(seed=seed, step_s=given.step_s) as cluster:
        cluster.on_tick.append(looks.extend)
        if down is not None:
            cluster.prometheus = None  # what is remembered is in checkpoints
            cluster.faults(down.killed(given.step_s))
        if silent is not None:
            cluster.faults(BadMetrics(*silent, workload=NAME))
        set_up(cluster, given)
        cluster.run(seconds=len(given.load) * given.step_s)
        with closing(cluster.journal()) as journal:
            acted = [act for act in journal.acts("shop", "web") if act.decision.change]
            recorded = list(journal.ticks("shop", "web"))
    ticks = [tick_of(look.subject.name, look.subject.policy, look.seen, look.decision) for look in looks]
    assert recorded == [tick._replace(policy=None) for tick in ticks[-len(recorded) :]], "the others are minutes now"
    return Told(ticks, {act.seen.at: (act.memory, act.decision) for act in acted})


def by_the_simulator(given: Scene, down: Down | None = None, silent: Silent | None = None) -> Told:
    told = Told([], {})
    name = ObjectName(given.manifest["kind"], "shop", "web")

    def watch(seen: Observation, memory: Memory, decision: Decision) -> None:
        told.ticks.append(tick_of(name, given.policy, seen, decision))
        if decision.change is not None:
            told.acts[seen.at] = memory, decision

    faults: tuple[Fault, ...] = (down.fault(given.step_s),) if down else ()
    if silent is not None:
        faults += (Fault(FaultKind.MISSING, silent.start_s - given.step_s, silent.end_s - given.step_s),)
    spec = ClusterSpec(
        startup_s=given.startup_s,
        pod_capacity=CORES,
        pod_cores=CORES,
        burst=2.0,
        pod_memory_bytes=GIB,
        base_memory_bytes=GIB / 4,
        memory_load=given.memory,
        metric_delay_s=0.0,
        faults=faults,
    )
    first = first_sight(START + given.step_s, given.first_pods)
    settings: dict[str, Any] = {"first_pods": given.first_pods, "start": START, "step_s": given.step_s}
    run(given.policy, given.load, spec, watch=watch, memory=first, **settings)
    return told


def assert_same_ticks(ticks: list[Tick], expected: list[Tick]) -> None:
    """All that a tick records, but the policy, which is stored once; numbers as exact as the wire carries them."""
    assert len(ticks) == len(expected)
    for tick, wanted in zip(ticks, expected, strict=True):
        unseen = {"policy"} | (OF_PODS if wanted.cpu_cores is None else set())
        for field in [field for field in Tick._fields if field not in unseen]:
            found, aim = getattr(tick, field), getattr(wanted, field)
            same = found == (pytest.approx(aim, rel=1e-6) if isinstance(aim, float) else aim)
            assert same, f"the first tick that differs, {wanted.at - START:.0f} s: {field} is {found}, not {aim}"


def check(seed: int) -> None:
    given = scene(seed)
    assert_same(by_the_operator(given, seed), by_the_simulator(given))


def assert_same(found: Told, expected: Told) -> None:
    assert_same_ticks(found.ticks, expected.ticks)
    assert found.acts.keys() == expected.acts.keys()
    for at, (memory, decision) in found.acts.items():
        wanted_memory, wanted = expected.acts[at]
        assert memory == wanted_memory
        assert (decision.change, decision.plan) == (wanted.change, wanted.plan)
        assert [step.rule for step in decision.steps] == [step.rule for step in wanted.steps]


@pytest.mark.parametrize("seed", QUICK)
def test_the_journal_equals_the_simulators_decisions(seed: int) -> None:
    check(seed)


@pytest.mark.many
@pytest.mark.parametrize("seed", range(MANY))
def test_the_journal_equals_the_simulators_decisions_for_many_seeds(seed: int) -> None:
    check(seed)


def check_blend(blend: str, seed: int) -> None:
    """By recent usage, which the operator measures minute by minute."""
    given = blended(seed, blend)
    expected = by_the_simulator(given)
    assert any(decision.change and decision.change.sizes for _, decision in expected.acts.values())
    assert_same(by_the_operator(given, seed), expected)


@pytest.mark.parametrize("seed", QUICK_BLENDED)
@pytest.mark.parametrize("blend", BLENDS)
def test_the_journal_equals_the_simulators_decisions_of_both_axes(blend: str, seed: int) -> None:
    check_blend(blend, seed)


@pytest.mark.many
@pytest.mark.parametrize("seed", range(MANY))
@pytest.mark.parametrize("blend", BLENDS)
def test_the_journal_equals_the_simulators_decisions_of_both_axes_for_many_seeds(blend: str, seed: int) -> None:
    check_blend(blend, seed)


@pytest.mark.parametrize("blend", BLENDS)
def test_neither_axis_moves_while_nothing_is_measured(blend: str) -> None:
    """Pods that were kept, times their size, were taken for demand: 3 pods became 12 in four minutes."""
    given, silent = blended(0, blend), Silent(1200.0, 1500.0)
    found = by_the_operator(given, 0, silent=silent)
    assert_same(found, by_the_simulator(given, silent=silent))
    assert not [second for second in found.seconds_of_acts() if silent.start_s <= second < silent.end_s]


def check_forecasts(seed: int) -> None:
    """Of an annotated HPA, which scales by itself: what is forecast from what the operator saw."""
    given, spoke = annotated(seed), 0
    looks: list[ObjectTick] = []
    with Cluster(seed=seed, step_s=given.step_s) as cluster:
        cluster.on_tick.append(looks.extend)
        set_up(cluster, given)
        cluster.run(seconds=len(given.load) * given.step_s)
        assert not replay(cluster.journal().path).differences
    simulated = SimulatedForecasts(given.policy)
    assert len(looks) == len(given.load)
    for seen in (look.seen for look in looks):
        wanted = simulated.complete(replace(seen, forecasts=(), startup=UNKNOWN), seen.pods)
        assert (seen.startup, seen.forecasts) == (wanted.startup, wanted.forecasts)
        simulated.after_tick(seen.at)
        found = seen.forecasts[0]
        spoke += isinstance(found, Forecast) or found.reason is Reason.NOT_PREDICTABLE
    assert spoke * given.step_s >= 600.0, "a line speaks, or sees no trend, once it has seen as much as it looks ahead"


@pytest.mark.parametrize("seed", QUICK_ANNOTATED)
def test_the_forecasts_of_an_annotated_hpa_equal_the_simulators(seed: int) -> None:
    check_forecasts(seed)


@pytest.mark.many
@pytest.mark.parametrize("seed", range(MANY))
def test_the_forecasts_of_an_annotated_hpa_equal_the_simulators_for_many_seeds(seed: int) -> None:
    check_forecasts(seed)


def test_scenes_have_every_tick_start_up_and_forecast() -> None:
    given = [scene(seed) for seed in range(MANY)]
    models = {each.policy.forecast.model if each.policy.forecast else "none" for each in given}
    assert models == {"none", "linear", "seasonal", "holtWinters", "dsp"}
    assert {each.step_s for each in given} == {1.0, 5.0, 15.0, 30.0, 60.0}
    assert {each.startup_s for each in given} >= {5.0, 1800.0}
    assert len({signal.metric.kind for each in given for signal in each.policy.signals}) == 5
    assert all(np.isfinite(each.load).all() for each in given)
