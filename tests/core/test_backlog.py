"""Backlog metrics: the pods a queue needs, by hand, by properties, and in a loop around a queue."""

from __future__ import annotations

from math import ceil, inf

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from trimtab.core.backlog import drain_s, queue_sample
from trimtab.core.decide import decide
from trimtab.core.model import (
    Forecast,
    Memory,
    Missing,
    Observation,
    Quantile,
    QueueSample,
    Reason,
    Samples,
    TotalSample,
)
from trimtab.core.remember import remember
from trimtab.core.startup import startup
from trimtab.policy import Backlog, Bounds, ForecastChoice, Metric, MetricKind, Policy, Stabilise, Tolerance

ARRIVALS = Metric(kind=MetricKind.PROMETHEUS, name="jobs", query="arrivals")
WAITING = Metric(kind=MetricKind.PROMETHEUS, name="jobs waiting", query="waiting")
SERVICE = Metric(kind=MetricKind.PROMETHEUS, name="jobs service time", query="service")
STARTUP_S = 300.0
EXACTLY = Tolerance(up=0.0, down=0.0)
JOBS = Backlog(metric=ARRIVALS, waiting=WAITING, service_time_s=20.0, concurrency=32, wait_s=10.0, tolerance=EXACTLY)
MEASURED = replace(JOBS, service_time=SERVICE, service_time_s=0.0)
POLICY = Policy(signals=(JOBS,), settle=(Stabilise(down_s=0.0),), bounds=Bounds(min_replicas=0, max_replicas=1000))


def queue(arrivals: float, waiting: float | Missing, service_time_s: float = 20.0) -> QueueSample:
    return QueueSample(value=arrivals, at=0.0, waiting=waiting, service_time_s=service_time_s)


def seen(sample: Samples | Missing, pods: int = 3, startup_s: float | None = STARTUP_S, at: float = 0.0) -> Observation:
    found = Observation(at=at, spec_replicas=pods, status_replicas=pods, samples=(sample,))
    return found if startup_s is None else replace(found, startup=startup([startup_s], at))


def pods_for(sample: Samples | Missing, policy: Policy = POLICY, pods: int = 3) -> int:
    return decide(policy, seen(sample, pods), Memory()).plan.replicas


@pytest.mark.parametrize(
    ("arrivals", "waiting", "expected"),
    [
        pytest.param(0.0, 0.0, 0, id="nothing arrives, nothing waits"),
        pytest.param(1.28, 0.0, 1, id="32 slots / 20 s, 80 % busy: 1.28 a second by one pod"),
        pytest.param(1.29, 0.0, 2, id="a little more"),
        pytest.param(6.4, 0.0, 5, id="five pods' worth"),
        pytest.param(6.4, 768.0, 7, id="768 waiting, drained in the start-up time of 300 s: 2.56 a second more"),
        pytest.param(0.0, 1.0, 1, id="one item wakes a workload without pods"),
    ],
)
def test_pods_are_arrivals_and_backlog_by_what_a_pod_finishes(arrivals: float, waiting: float, expected: int) -> None:
    assert pods_for(queue(arrivals, waiting)) == expected


def test_the_drain_time_is_the_promise_or_the_start_up_time_unless_it_is_written() -> None:
    assert drain_s(JOBS, seen(queue(1.0, 0.0))) == STARTUP_S
    assert drain_s(replace(JOBS, wait_s=600.0), seen(queue(1.0, 0.0))) == 600.0
    assert drain_s(replace(JOBS, drain_s=30.0), seen(queue(1.0, 0.0))) == 30.0


def test_a_forecast_adds_what_will_arrive_to_what_waits() -> None:
    policy = replace(POLICY, forecast=ForecastChoice())
    coming = Forecast(made_at=0.0, expires_at=60.0, demand=(Quantile(0.5, 6.4),), model="linear")
    found = replace(seen(queue(1.28, 768.0)), forecasts=(coming,))
    assert decide(policy, found, Memory()).plan.replicas == 7  # (6.4 + 768 / 300) / 1.28


def test_an_unknown_queue_may_only_add_pods() -> None:
    unknown = Missing(reason=Reason.UNREACHABLE)
    assert pods_for(queue(6.4, unknown)) == 5
    assert pods_for(queue(1.0, unknown)) == 3


def joined(signal: Backlog, *values: float | None) -> QueueSample | Missing:
    gone = Missing(reason=Reason.ABSENT)
    return queue_sample(signal, iter([gone if value is None else TotalSample(value=value, at=0.0) for value in values]))


def test_the_parts_of_a_queue_are_joined_and_name_what_is_missing() -> None:
    assert joined(MEASURED, 2.0, 5.0, 4.0) == queue(2.0, 5.0, 4.0)
    assert joined(JOBS, 2.0, None) == queue(2.0, Missing(reason=Reason.ABSENT, detail="items waiting"))
    assert joined(MEASURED, None, 5.0, 4.0) == Missing(reason=Reason.ABSENT, detail="arrivals")
    assert joined(MEASURED, 2.0, 5.0, None) == Missing(reason=Reason.ABSENT, detail="service time")
    assert joined(MEASURED, 2.0, 5.0, 0.0) == Missing(reason=Reason.ZERO, detail="service time")


def test_the_written_service_time_counts_while_none_is_measured() -> None:
    both = replace(MEASURED, service_time_s=3.0)
    assert joined(both, 2.0, 5.0, None) == queue(2.0, 5.0, 3.0)
    assert joined(both, 2.0, 5.0, 0.0) == queue(2.0, 5.0, 3.0)
    assert joined(both, 2.0, 5.0, 4.0) == queue(2.0, 5.0, 4.0)


RATES = st.floats(0.0, 1e4)


@given(RATES, RATES, st.floats(0.0, 1e6), st.floats(0.0, 1e6))
def test_more_arrivals_or_a_longer_queue_never_mean_fewer_pods(a: float, b: float, c: float, d: float) -> None:
    few, many = (pods_for(queue(f(a, b), g(c, d))) for f, g in ((min, min), (max, max)))
    assert few <= many


def play(rates: list[float], step_s: float = 15.0) -> tuple[list[int], list[float]]:
    """The pods of each step and how long its last item waits, in a loop around a fluid queue."""
    memory, pods, starting, waiting = Memory(), 1, list[float](), 0.0
    counts, waits = [], []
    for step, rate in enumerate(rates):
        at = step * step_s
        ready = pods - sum(1 for due in starting if due > at)
        finished = ready * JOBS.concurrency / JOBS.service_time_s
        waiting = max(0.0, waiting + (rate - finished) * step_s)
        waits.append(waiting / finished if finished else inf)
        found = seen(replace(queue(rate, waiting), at=at), pods, at=at)
        decision = decide(POLICY, found, memory)
        memory = decision.memory
        if (change := decision.change) and change.replicas is not None:
            starting += [at + STARTUP_S] * (change.replicas - pods)
            starting = sorted(starting)[: change.replicas]
            memory, pods = remember(POLICY, memory, change, at), change.replicas
        counts.append(pods)
    return counts, waits


def test_a_step_of_load_is_answered_without_ordering_for_a_backlog_that_will_be_gone() -> None:
    needed = 6 * JOBS.concurrency / JOBS.service_time_s * JOBS.share
    counts, waits = play([1.0] * 40 + [needed] * 400)
    assert max(counts) <= 2 * 6  # what a whole start-up time left behind is worked off within another
    assert set(counts[-100:]) == {6}
    assert max(waits[-200:]) <= JOBS.wait_s


@given(st.floats(0.05, 200.0))
def test_under_constant_arrivals_the_loop_settles_at_what_they_need(rate: float) -> None:
    counts, waits = play([rate] * 400)
    assert set(counts[-40:]) == {ceil(rate / (JOBS.concurrency * JOBS.share / JOBS.service_time_s) - 1e-9)}
    assert max(waits[-40:]) <= JOBS.wait_s
