"""The virtual cluster: the same seed is the same run, faults never lower a workload, pods behave as real ones."""

from __future__ import annotations

from dataclasses import replace as with_

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.sim.policies import on_cpu, on_load
from trimtab.core.model import Decision, Memory, Observation
from trimtab.policy import Absence, Bridge, Policy, Rate, Stabilise, Vertical
from trimtab.quantity import GIB
from trimtab.series import Floats
from trimtab.sim.cluster import Run, run
from trimtab.sim.cluster_spec import ClusterSpec, Fault, FaultKind
from trimtab.sim.simulate import simulate

HOUR = 240  # steps


def wave(steps: int = 4 * HOUR, seed: int = 0) -> Floats:
    noise = np.random.default_rng(seed).standard_normal(steps)
    return np.maximum(0.1, (8 + 6 * np.sin(np.arange(steps) / 60)) * (1 + 0.1 * noise))


def same(one: Run, other: Run) -> bool:
    arrays = ("load", "replicas", "ready", "billed", "violating")
    return all((getattr(one, name) == getattr(other, name)).all() for name in arrays)


def test_a_seed_and_a_policy_are_one_run_bit_for_bit() -> None:
    fault = Fault(FaultKind.REFUSED, 600, 9000, amount=0.5)
    cluster = ClusterSpec(startup_jitter=(0.7, 1.6), retry_share=0.3, faults=(fault,))
    first, second = (run(on_cpu(), wave(), cluster, first_pods=10, seed=7) for _ in range(2))
    other = run(on_cpu(), wave(), cluster, first_pods=10, seed=8)
    assert same(first, second)
    assert not same(first, other)


ZERO_IS_NO_ANSWER = Absence(zero_is_missing=True)


ABSENCES = [FaultKind.MISSING, FaultKind.NAN, FaultKind.NEGATIVE, FaultKind.STALE]
ON_LOAD = on_load(absence=ZERO_IS_NO_ANSWER)


@pytest.mark.parametrize(
    "kind, policy",
    [
        *(pytest.param(kind, ON_LOAD, id=f"{kind} total") for kind in [*ABSENCES, FaultKind.ZERO]),
        *(pytest.param(kind, on_cpu(), id=f"{kind} cpu") for kind in ABSENCES),  # a pod at zero is idle, not absent
    ],
)
def test_bad_metrics_never_lower_a_workload(kind: FaultKind, policy: Policy) -> None:
    falling = np.concatenate((np.full(HOUR, 12.0), np.full(2 * HOUR, 0.2)))
    begins, ends = HOUR, 2 * HOUR
    cluster = ClusterSpec(faults=(Fault(kind, begins * 15, ends * 15),))
    found = run(policy, falling, cluster, first_pods=18).replicas
    assert (found[begins : ends + 1] >= found[begins]).all()
    assert found[-1] < found[begins], "once the metrics are back it shrinks"


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([FaultKind.MISSING, FaultKind.NAN, FaultKind.NEGATIVE]),
            st.integers(0, 300),
            st.integers(1, 100),
        ),
        min_size=1,
        max_size=4,
    ),
    st.integers(0, 5),
)
def test_no_mixture_of_faults_lowers_a_workload(drawn: list[tuple[FaultKind, int, int]], seed: int) -> None:
    faults = tuple(Fault(kind, start * 15, (start + long) * 15) for kind, start, long in drawn)
    cluster = ClusterSpec(startup_jitter=(0.5, 2.0), faults=faults)
    found = run(on_load(settle=(Rate(),)), wave(400, seed), cluster, first_pods=10, seed=seed).replicas
    for step in range(len(found) - 1):
        if any(fault.holds(step * 15) for fault in faults):
            assert found[step + 1] >= found[step]


def test_a_zero_is_believed_unless_the_policy_says_otherwise() -> None:
    cluster = ClusterSpec(faults=(Fault(FaultKind.ZERO, 0, 3600),))
    busy = np.full(HOUR, 12.0)
    assert run(on_load(), busy, cluster, first_pods=18).replicas[-1] == 2
    assert run(on_load(absence=ZERO_IS_NO_ANSWER), busy, cluster, first_pods=18).replicas[-1] == 18


def test_fresh_values_that_come_late_only_delay() -> None:
    load = np.concatenate((np.full(40, 2.0), np.full(80, 12.0)))
    prompt = run(on_load(), load, first_pods=3)
    late = run(on_load(), load, ClusterSpec(faults=(Fault(FaultKind.LATE, 0, 1e9, amount=60),)), first_pods=3)
    assert (late.replicas[4:] == prompt.replicas[:-4]).all()


def test_values_older_than_two_scrapes_are_no_values() -> None:
    load = np.concatenate((np.full(40, 2.0), np.full(80, 12.0)))
    late = run(on_load(), load, ClusterSpec(faults=(Fault(FaultKind.LATE, 0, 1e9, amount=135),)), first_pods=3)
    assert (late.replicas == 3).all()


def test_a_refused_write_changes_nothing_and_is_not_remembered() -> None:
    seen: list[Memory] = []

    def watch(observation: Observation, memory: Memory, decision: Decision) -> None:
        seen.append(memory)

    cluster = ClusterSpec(faults=(Fault(FaultKind.REFUSED, 0, 600, amount=1.0),))
    found = run(on_load(), np.full(60, 12.0), cluster, first_pods=2, watch=watch)
    assert found.refusals == 40
    assert (found.replicas[:41] == 2).all() and found.replicas[-1] == 18
    assert all(memory.up_at is None for memory in seen[:41])


def test_an_operator_that_was_down_never_scales_down_sooner() -> None:
    load = np.concatenate((np.full(40, 12.0), np.full(80, 3.0)))
    down = ClusterSpec(faults=(Fault(FaultKind.OPERATOR_DOWN, 45 * 15, 46 * 15),))
    assert (
        run(on_load(), load, first_pods=18).replicas[50:] <= run(on_load(), load, down, first_pods=18).replicas[50:]
    ).all()


def test_lost_pods_come_back_after_their_start_up() -> None:
    cluster = ClusterSpec(startup_s=120, faults=(Fault(FaultKind.NODE_LOSS, 300, 315, amount=0.5),))
    found = run(on_load(), np.full(60, 7.0), cluster, first_pods=10)
    assert found.ready[19:21].tolist() == [10, 5]
    assert found.ready[28] == 10, "eight steps later all are ready again"
    assert found.starts == 5
    assert found.violating[20] > 0 and found.violating[19] == 0


def test_cpu_is_censored_at_the_limit() -> None:
    """Overload reads as 100 % of what is there, so a CPU signal needs several rounds where a rate needs one."""
    load = np.concatenate((np.full(20, 2.8), np.full(100, 16.0)))
    by_cpu = run(on_cpu(), load, ClusterSpec(startup_s=60), first_pods=4)
    by_rate = run(on_load(), load, ClusterSpec(startup_s=60), first_pods=4)
    enough = 16 / 0.8
    assert np.argmax(by_rate.ready >= enough) < np.argmax(by_cpu.ready >= enough)
    assert by_cpu.ready[-1] >= enough


def test_retries_make_an_overload_longer() -> None:
    load = np.concatenate((np.full(20, 3.0), np.full(10, 14.0), np.full(60, 3.0)))
    calm = run(on_load(), load, first_pods=5)
    angry = run(on_load(), load, ClusterSpec(retry_share=0.5), first_pods=5)
    assert angry.load.sum() > calm.load.sum()
    assert angry.violating.sum() > calm.violating.sum()


def test_start_up_is_drawn_from_its_range() -> None:
    load = np.concatenate((np.full(20, 1.4), np.full(60, 14.0)))
    found = run(on_load(), load, ClusterSpec(startup_s=150, startup_jitter=(0.5, 2.0)), first_pods=2, seed=1)
    assert len(set(np.diff(found.ready)[20:].tolist())) > 2, "they become ready one after another"
    assert found.ready[-1] == found.replicas[-1]


def test_memory_above_the_limit_kills_and_vertical_learns() -> None:
    memory = np.full(3 * HOUR, 6.0 * GIB)
    cluster = ClusterSpec(pod_memory_bytes=2.0 * GIB, memory_load=memory, startup_s=30)
    fixed = run(on_load(settle=(Stabilise(),)), np.full(3 * HOUR, 1.0), cluster, first_pods=2)
    policy = with_vertical(on_load(settle=(Stabilise(),)))
    sized = run(policy, np.full(3 * HOUR, 1.0), cluster, first_pods=2)
    assert fixed.kills > 20, "3.25 GiB do not fit into 2 GiB, again and again"
    assert 0 < sized.kills < fixed.kills / 2


def test_a_refused_resize_leaves_the_pod_as_it_was() -> None:
    memory = np.full(HOUR, 6.0 * GIB)
    cluster = ClusterSpec(pod_memory_bytes=2.0 * GIB, memory_load=memory, startup_s=30)
    policy = with_vertical(on_load(settle=(Stabilise(),)))
    taken = run(policy, np.full(HOUR, 1.0), cluster, first_pods=2)
    refused = run(policy, np.full(HOUR, 1.0), with_(cluster, resize_refusal=1.0), first_pods=2)
    assert refused.kills > taken.kills


def with_vertical(policy: Policy) -> Policy:
    return replace(policy, vertical=Vertical())


def test_pods_serve_up_to_their_limit_and_are_overloaded_above_their_level() -> None:
    policy = on_load(target=1000.0, least=1, most=1)
    load = np.array([1.0, 1.9, 2.4, 1.0])
    found = run(policy, load, ClusterSpec(level=1.0, limit=2.0), first_pods=1)
    assert found.violating.tolist() == [0.0, 1.9, 2.4, 0.0]  # 0.4 waits for the last step, which serves it
    strict = run(policy, load, ClusterSpec(), first_pods=1)
    assert strict.violating.tolist() == load.tolist()  # the request is the limit, the level 80 % of it


@pytest.mark.parametrize(
    "cluster, counts",
    [
        pytest.param(ClusterSpec(), True, id="as the protocol has them"),
        pytest.param(ClusterSpec(limit=1.0, level=0.8), True, id="Guaranteed"),
        pytest.param(ClusterSpec(limit=1.25, level=1.0), True, id="the limit just sets the level"),
        pytest.param(ClusterSpec(limit=2.0, level=1.0), False, id="Burstable"),
        pytest.param(ClusterSpec(level=1.0, burst=2.0), False, id="no limit"),
    ],
)
def test_a_bridge_adds_capacity_only_where_the_limit_sets_the_level(cluster: ClusterSpec, counts: bool) -> None:
    load = np.concatenate((np.full(20, 7.0), np.full(60, 9.9)))
    policy = replace(on_load(most=10, least=10), bridge=Bridge(ceiling=0.7))
    found = run(policy, load, cluster, first_pods=10)
    assert found.resized.any() == counts
    assert simulate(policy, load, cluster, first_pods=10).resized.tolist() == found.resized.tolist()


def test_throttled_work_is_served_later() -> None:
    policy = on_load(target=1000.0, least=1, most=1)
    found = run(policy, np.array([2.5, 0.2, 0.2, 0.2]), ClusterSpec(level=1.0, limit=1.0), first_pods=1)
    assert found.violating.tolist() == [2.5, 0.2, 0.0, 0.0]
