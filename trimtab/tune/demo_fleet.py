"""The demo's fleet, a small simulated shop: four workloads over two weeks."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import structs

from trimtab.core.requests import USUAL_TARGET
from trimtab.policy import (
    Bounds,
    ContainerRule,
    Metric,
    MetricKind,
    Policy,
    Rate,
    Stabilise,
    TotalAverage,
    Utilization,
    Vertical,
)
from trimtab.quantity import GIB
from trimtab.sim.cluster_spec import ClusterSpec
from trimtab.sim.generate import LoadShape, generate
from trimtab.sim.grid import DAY_STEPS
from trimtab.tune.demand import Demand

WEEK = 7 * DAY_STEPS
BOUNDS = Bounds(min_replicas=2, max_replicas=100)
RULES = (Stabilise(), Rate())


@dataclass(frozen=True)
class DemoWorkload:
    name: str
    about: str
    demand: Demand
    cluster: ClusterSpec
    default: Policy
    better: Policy  # what trimtab starts from before it tunes

    @property
    def on_cpu(self) -> bool:
        return isinstance(self.better.signals[0], Utilization)


def demo_fleet() -> list[DemoWorkload]:
    """The same four workloads every time."""
    return [_web(), _worker(), _search(), _cache()]


def _on_rate() -> Policy:
    metric = Metric(kind=MetricKind.EXTERNAL, name="requests")
    return Policy(signals=(TotalAverage(metric=metric, target=USUAL_TARGET),), settle=RULES, bounds=BOUNDS)


def _web() -> DemoWorkload:
    shape = LoadShape(peak=30, valley=0.2, weekend=0.6, noise=0.06, bursts_a_day=1, burst=0.3, seed=11)
    cluster = ClusterSpec(startup_s=60, startup_jitter=(0.7, 1.6))
    demand = Demand("web", generate(shape), 0.0)
    return DemoWorkload("web", "a shop front: days and weekends", demand, cluster, _on_rate(), _on_rate())


def _worker() -> DemoWorkload:
    shape = LoadShape(peak=20, valley=0.5, noise=0.15, bursts_a_day=12, burst=0.8, burst_minutes=15, seed=12)
    cluster = ClusterSpec(startup_s=30, startup_jitter=(0.7, 1.6))
    demand = Demand("worker", generate(shape), 0.0)
    return DemoWorkload("worker", "a queue worker: bursts at any time", demand, cluster, _on_rate(), _on_rate())


def _search() -> DemoWorkload:
    shape = LoadShape(peak=24, valley=0.15, weekend=0.8, steep=3.5, noise=0.05, seed=13)
    cluster = ClusterSpec(startup_s=600, startup_jitter=(0.8, 1.3))
    demand = Demand("search", generate(shape), 0.0)
    return DemoWorkload("search", "ten minutes to load its index", demand, cluster, _on_rate(), _on_rate())


def _cache() -> DemoWorkload:
    """Somebody gave it four gibibytes per pod to be safe; it needs less, but not always equally much."""
    load = generate(LoadShape(peak=9, valley=0.3, noise=0.05, seed=14))
    content = generate(
        LoadShape(peak=5.6, valley=0.8, noise=0.01, bursts_a_day=3, burst=0.4, burst_minutes=20, seed=15)
    )
    cluster = ClusterSpec(
        startup_s=60,
        startup_jitter=(0.7, 1.6),
        pod_memory_bytes=4.0 * GIB,
        base_memory_bytes=0.25 * GIB,
        memory_load=content * GIB,
    )
    cpu = Utilization(metric=Metric(kind=MetricKind.RESOURCE, name="cpu"), percent=70)
    policy = Policy(signals=(cpu,), settle=RULES, bounds=BOUNDS)
    memory_only = Vertical(containers=(ContainerRule(cpu=False),))
    better = structs.replace(policy, vertical=memory_only)
    return DemoWorkload(
        "cache", "more memory than it needs, to be safe", Demand("cache", load, 0.0), cluster, policy, better
    )
