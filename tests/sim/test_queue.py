"""A simulated queue: who waits too long, what no schedule can undercut, and policies that follow it."""

from __future__ import annotations

from collections import deque
from math import ceil, pi, sin
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from trimtab import kinds
from trimtab.series import Floats
from trimtab.sim.cluster import Run, run
from trimtab.sim.cluster_spec import ClusterSpec
from trimtab.sim.grid import STEP_S
from trimtab.sim.oracle import optimum
from trimtab.sim.queue import WorkQueue, fewest_pods, late_load
from trimtab.sim.score import ready_pods

START = 1_762_732_800.0


@pytest.mark.parametrize(
    ("load", "pods", "wait_s", "late"),
    [
        pytest.param([1.0, 1.0, 1.0], [1, 1, 1], 1.0, [0.0, 0.0, 0.0], id="as much as the pods serve"),
        pytest.param([2.0, 0.0, 0.0], [1, 1, 1], 15.0, [0.0, 0.0, 0.0], id="a burst that is gone in a step"),
        pytest.param([3.0, 0.0, 0.0], [1, 1, 1], 15.0, [1.2, 0.0, 0.0], id="items of the second half wait longer"),
        pytest.param([1.0, 1.0], [0, 2], 15.0, [0.0, 0.0], id="pods that come in time"),
        pytest.param([1.0, 0.0], [0, 0], 60.0, [1.0, 0.0], id="never served"),
    ],
)
def test_late_is_what_waits_longer_than_the_objective(
    load: list[float], pods: list[int], wait_s: float, late: list[float]
) -> None:
    found = late_load(np.array(load), np.array(pods, dtype=float), wait_s)
    assert found == pytest.approx(late)


def late_items(load: Floats, pods: Floats, wait_s: float, parts: int) -> float:
    """The work that waits too long, item by item, first come first served."""
    queue: deque[list[float]] = deque()
    late, steps = 0.0, len(load) + ceil(wait_s / STEP_S) + 50
    for tick in range(steps * parts):
        step, now_s = tick // parts, tick * STEP_S / parts
        if step < len(load):
            queue.append([now_s, float(load[step]) / parts])
        capacity = float(pods[min(step, len(pods) - 1)]) / parts
        while queue and capacity > 1e-12:
            arrived, amount = queue[0]
            served = min(amount, capacity)
            late += served if now_s - arrived > wait_s + 1e-9 else 0.0
            capacity, queue[0][1] = capacity - served, amount - served
            if queue[0][1] <= 1e-12:
                queue.popleft()
    return late + sum(amount for _, amount in queue)


LOADS = st.lists(st.floats(0.0, 6.0), min_size=1, max_size=20).map(np.array)


@given(LOADS, st.lists(st.integers(0, 6), min_size=20, max_size=20), st.sampled_from([5.0, 15.0, 40.0, 120.0]))
def test_late_work_is_that_of_a_queue_of_items(load: Floats, counts: list[int], wait_s: float) -> None:
    pods = np.array(counts[: len(load)], dtype=float)
    found = float(late_load(load, pods, wait_s).sum())
    assert found == pytest.approx(late_items(load, pods, wait_s, parts=15), abs=0.45 * float(load.max()) + 1e-6)


@given(
    st.lists(st.floats(0.0, 6.0), min_size=1, max_size=60).map(np.array),
    st.lists(st.integers(1, 8), min_size=60, max_size=60),
    st.sampled_from([5.0, 15.0, 40.0, 120.0, 900.0]),
    st.integers(0, 8),
)
@example(np.array([6.0] + [0.0] * 20), [1] * 60, 120.0, 8)  # one pod has time for a burst
def test_no_schedule_that_keeps_the_promise_costs_less_than_the_bound(
    load: Floats, counts: list[int], wait_s: float, delay: int
) -> None:
    replicas = np.array(counts[: len(load)], dtype=np.int32)
    ready = ready_pods(replicas, delay).astype(float)
    assume(not late_load(load, ready, wait_s).any())
    assert replicas.sum() >= fewest_pods(load, wait_s, delay).sum() - 1e-6


@given(LOADS, st.sampled_from([1.0, 15.0, 60.0]), st.integers(0, 8))
def test_the_bound_is_never_above_pods_for_every_moment(load: Floats, wait_s: float, delay: int) -> None:
    plain = optimum(np.maximum(1, np.ceil(load)).astype(np.int32), delay)
    assert fewest_pods(load, wait_s, delay).sum() <= plain.sum() + 1e-6


def test_the_bound_of_a_constant_load_is_what_it_needs() -> None:
    assert fewest_pods(np.full(5760, 5.3), 10.0, 20).mean() == pytest.approx(6.0, abs=0.01)


# --- one model server: 32 requests at once, 20 s each, five minutes until a pod serves -----------------------------

SEATS, SERVICE_S, STARTUP_S, WAIT_S = 32, 20.0, 300.0, 10.0
IN_FLIGHT = "sum(vllm:num_requests_running) + sum(vllm:num_requests_waiting)"
SERVER = ClusterSpec(startup_s=STARTUP_S, pod_capacity=SEATS / SERVICE_S, queue=WorkQueue(SERVICE_S, WAIT_S))


def requests(at: float) -> float:
    """A day of requests per second, with 60 % more from 10:00 to 10:40."""
    hour = (at / 3600) % 24
    rate = 1.0 + 6.0 * max(0.0, sin((hour - 7) / 12 * pi)) if 7 <= hour <= 19 else 1.0
    return rate * 1.6 if 36000 <= at % 86400 < 38400 else rate


LOAD = np.array([requests(step * STEP_S) for step in range(3 * 5760)])


def played(metric: dict[str, Any]) -> Run:
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "llm"},
        "minReplicas": 1,
        "maxReplicas": 60,
        "metrics": [metric],
        "forecast": {"model": "seasonal", "horizon": "startup"},
        "behavior": {
            "scaleUp": {"stabilizationWindowSeconds": 0},
            "scaleDown": {"stabilizationWindowSeconds": 1800, "cooldownSeconds": 600},
        },
    }
    meta = {"name": "llm", "namespace": "models"}
    manifest = {"apiVersion": "trimtab.dev/v1alpha1", "kind": "Autoscaler", "metadata": meta, "spec": spec}
    found = kinds.read(manifest)
    assert isinstance(found, kinds.Scaler)
    return run(found.to_policy(START), LOAD, SERVER, first_pods=2, start=START)


@pytest.fixture(scope="module")
def by_arrivals() -> Run:
    queue = {
        "arrivals": {"query": "arrivals"},
        "waiting": {"query": "waiting"},
        "serviceTime": "20s",
        "concurrency": SEATS,
        "targetUtilization": 70,
        "waitBelow": "10s",
    }
    return played({"type": "Backlog", "backlog": queue})


def test_a_queue_gets_the_pods_it_needs_where_its_length_asks_for_many(by_arrivals: Run) -> None:
    target = {"type": "AverageValue", "averageValue": "24"}
    by_length = played({"type": "Prometheus", "prometheus": {"query": IN_FLIGHT, "target": target}})
    assert ceil(LOAD.max() / SERVER.pod_capacity) == 6
    assert by_arrivals.replicas.max() <= 9
    assert by_length.replicas.max() > 30  # the backlog of five minutes, ordered again and again
    assert by_arrivals.violating.sum() <= by_length.violating.sum()
    assert by_arrivals.billed.sum() <= by_length.billed.sum()


def test_a_forecast_learns_arrivals_and_prevents_what_two_days_have_shown(by_arrivals: Run) -> None:
    late = by_arrivals.violating.reshape(3, -1).sum(axis=1)
    assert late[0] > 0.0
    assert late[2] == 0.0


@given(st.floats(0.2, 30.0), st.integers(1, 64), st.floats(0.5, 60.0), st.sampled_from([0.0, 60.0, 300.0]))
def test_any_steady_queue_is_served_within_its_promise(
    pods: float, seats: int, service_s: float, startup_s: float
) -> None:
    rate = pods * seats / service_s
    queue = {"arrivals": {"query": "a"}, "waiting": {"query": "b"}, "concurrency": seats, "waitBelow": "30s"}
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "w"},
        "maxReplicas": 100,
        "metrics": [{"type": "Backlog", "backlog": queue | {"serviceTime": f"{round(1000 * service_s)}ms"}}],
    }
    manifest = {"apiVersion": "trimtab.dev/v1alpha1", "kind": "Autoscaler", "metadata": {"name": "w"}, "spec": spec}
    found = kinds.read(manifest)
    assert isinstance(found, kinds.Scaler)
    cluster = ClusterSpec(startup_s=startup_s, pod_capacity=seats / service_s, queue=WorkQueue(service_s, 30.0))
    played_steps = run(found.to_policy(START), np.full(400, rate), cluster, first_pods=1, start=START)
    assert not played_steps.violating[-100:].any()
    assert played_steps.replicas[-1] <= ceil(1.11 * pods / 0.8 + 1e-6)
    bound = fewest_pods(played_steps.load, 30.0, ceil(startup_s / STEP_S))
    assert played_steps.billed[-100:].sum() >= bound[-100:].sum() * 0.99
