"""A journal of a small shop, recorded from the simulated cluster: the same every time."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from trimtab.journal import Journal, ObjectName
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
from trimtab.sim.cluster_spec import ClusterSpec, Fault, FaultKind
from trimtab.sim.generate import LoadShape, generate
from trimtab.sim.grid import DAY_STEPS
from trimtab.ticks import Tick
from trimtab.tune.recording import record

START = 1_760_000_400.0 // 86400 * 86400  # midnight in UTC
HOSTILE = "<img src=x onerror=alert(1)>"
REQUESTS = Metric(kind=MetricKind.EXTERNAL, name="requests")
PLAIN = Policy(
    signals=(TotalAverage(metric=REQUESTS, target=70.0),),
    settle=(Stabilise(), Rate()),
    bounds=Bounds(min_replicas=2, max_replicas=60),
)
CPU = Utilization(metric=Metric(kind=MetricKind.RESOURCE, name="cpu"), percent=70)


def record_shop(path: Path, days: int = 1) -> dict[ObjectName, list[Tick]]:
    """Four workloads: plain, with a forecast, in shadow and short of capacity, and one whose metric fell silent."""
    journal, found = Journal(path), {}
    daily = generate(LoadShape(peak=1400, valley=0.3, noise=0.05, days=days, seed=4))
    rough = generate(LoadShape(peak=1100, valley=0.4, bursts_a_day=10, burst=0.9, days=days, seed=5))
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
        found[name] = record(journal, name, policy, load[:steps], case_cluster, first_pods=6, start=START, seed=3)
    journal.prune(START + (days - 0.4) * 86400 - 900)
    journal.close()
    return found
