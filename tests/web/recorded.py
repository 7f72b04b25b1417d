"""A journal of a small shop, recorded from the simulated cluster: the same every time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from msgspec.structs import replace

from trimtab.core.model import Decision, Memory, Observation
from trimtab.journal import Act, AxisOutcome, Fate, Journal, ObjectName, changed_axes
from trimtab.policy import (
    Admit,
    Bounds,
    ForecastChoice,
    Metric,
    MetricKind,
    Mode,
    Policy,
    Rate,
    Stabilise,
    TotalAverage,
    Utilization,
)
from trimtab.series import Floats
from trimtab.sim.cluster import run
from trimtab.sim.cluster_spec import ClusterSpec, Fault, FaultKind
from trimtab.sim.generate import DAY_STEPS, Shape, generate
from trimtab.ticks import Tick, tick_of

START = 1_760_000_400.0 // 86400 * 86400  # midnight in UTC
HOSTILE = "<img src=x onerror=alert(1)>"
REQUESTS = Metric(kind=MetricKind.EXTERNAL, name="requests")
PLAIN = Policy(
    signals=(TotalAverage(metric=REQUESTS, target=70.0),),
    settle=(Stabilise(), Rate()),
    bounds=Bounds(min_replicas=2, max_replicas=60),
)
CPU = Utilization(metric=Metric(kind=MetricKind.RESOURCE, name="cpu"), percent=70)


def record(journal: Journal, name: ObjectName, policy: Policy, load: Floats, cluster: ClusterSpec) -> list[Tick]:
    """Run one workload and write down what an operator would: each tick, and each act with its inputs."""
    acts: list[Act] = []
    looks: list[tuple[Observation, Decision]] = []

    def watch(seen: Observation, memory: Memory, decision: Decision) -> None:
        looks.append((seen, decision))
        shadow = policy.admit.mode is Mode.SHADOW
        known = acts[-1].decision.change if acts else None
        if decision.change is not None and not (shadow and decision.change == known):
            fate = Fate.SHADOW if shadow else Fate.WRITTEN
            outcome = tuple(AxisOutcome(axis=axis, fate=fate) for axis in changed_axes(decision.change))
            acts.append(Act(name, policy, seen, memory, decision, outcome))

    found = run(policy, load, cluster, first_pods=6, start=START, watch=watch, seed=3)
    ticks = [
        tick_of(name, policy, seen, decision, int(ready))
        for (seen, decision), ready in zip(looks, found.ready, strict=True)
    ]
    journal.write(acts, ticks, [(name, policy)])
    return ticks


def record_shop(path: Path, days: int = 1) -> dict[ObjectName, list[Tick]]:
    """Four workloads: plain, with a forecast, in shadow and short of capacity, and one whose metric fell silent."""
    journal, found = Journal(path), {}
    daily = generate(Shape(peak=1400, valley=0.3, noise=0.05, days=days, seed=4))
    rough = generate(Shape(peak=1100, valley=0.4, bursts_a_day=10, burst=0.9, days=days, seed=5))
    cluster = ClusterSpec(startup_s=120, pod_capacity=100.0)
    ahead = replace(PLAIN, forecast=ForecastChoice(model="linear", horizon_s=300.0, quantile=0.9))
    shadow = replace(PLAIN, admit=Admit(mode=Mode.SHADOW))
    silent = ClusterSpec(
        startup_s=120, pod_capacity=100.0, faults=(Fault(FaultKind.MISSING, (days - 0.45) * 86400, 9e9),)
    )
    cases = (
        (ObjectName("Autoscaler", "shop", "web"), PLAIN, daily, cluster),
        (ObjectName("Autoscaler", "shop", "search"), ahead, daily * 0.7, cluster),
        (ObjectName("Autoscaler", "batch", "worker"), shadow, rough, cluster),
        (ObjectName("Autoscaler", "batch", HOSTILE), PLAIN, rough[::-1].copy(), silent),
        (
            ObjectName("HorizontalPodAutoscaler", "shop", "cache"),
            replace(PLAIN, signals=(CPU,)),
            daily / 180,
            ClusterSpec(),
        ),
    )
    steps = round((days - 0.4) * DAY_STEPS)  # it ends in the middle of a day
    for name, policy, load, case_cluster in cases:
        found[name] = record(journal, name, policy, np.asarray(load, dtype=np.float64)[:steps], case_cluster)
    journal.prune(START + (days - 0.4) * 86400 - 900)
    journal.close()
    return found
