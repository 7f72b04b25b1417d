"""The demo's fleet: four simulated services over two weeks, each as its team runs it today and with an Autoscaler."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from trimtab.core.overload import Yardstick, of_recorded
from trimtab.kinds import Scaler, read
from trimtab.policy import Policy
from trimtab.quantity import GIB
from trimtab.series import Floats
from trimtab.sim.cluster_spec import ClusterSpec
from trimtab.sim.generate import LoadShape, generate
from trimtab.sim.grid import DAY_STEPS, STEP_S
from trimtab.tune.demand import Demand
from trimtab.tune.judge import cluster_of, judged_pod
from trimtab.tune.queues import queue_of

Manifest = dict[str, Any]

START = 1_780_272_000.0  # Monday, 1 June 2026, UTC: the same weeks every time
WEEK = 7 * DAY_STEPS
WEEK_S = float(WEEK * STEP_S)
NIGHTLY = {"mode": "Nightly"}


@dataclass(frozen=True)
class DemoWorkload:
    """`today` and `proposed` are manifests of one workload; `proposed` is tuned if it asks for nightly tuning."""

    name: str
    story: str
    today: Manifest
    proposed: Manifest
    load: Floats
    pods: ClusterSpec
    change: str = ""  # what `proposed` does, where tuning does not say it

    @property
    def demand(self) -> Demand:
        return Demand(self.name, self.load, START)


def demo_fleet() -> list[DemoWorkload]:
    return [make() for make in WORKLOADS]


def policy_of(manifest: Manifest) -> Policy:
    kind = read(manifest)
    assert isinstance(kind, Scaler)
    return kind.to_policy(START)


def _web() -> DemoWorkload:
    """Pods are overloaded above their request, because the limit is twice that; the HPA aims at 90 % of it."""
    shape = LoadShape(peak=12.0, valley=0.2, weekend=0.6, noise=0.06, bursts_a_day=2, burst=0.3, seed=11)
    pods = cluster_of(of_recorded(0.5, None, 1.0, in_cores=True), startup_s=60.0)
    return DemoWorkload(
        "web",
        "a target that leaves no headroom",
        _hpa("web", [_cpu(90)]),
        _autoscaler("web", [_cpu(90)], tuning=NIGHTLY),
        generate(shape),
        pods,
    )


def _search() -> DemoWorkload:
    """Pods load an index for ten minutes, longer than the morning's rise takes to outgrow them."""
    shape = LoadShape(peak=24.0, valley=0.15, weekend=0.8, steep=7.0, noise=0.04, seed=13)
    pods = cluster_of(_guaranteed(1.0), startup_s=600.0)
    ahead = {"objective": {"priority": "balanced"}, "bridge": {"maxFactor": "1.5"}, "tuning": NIGHTLY}
    return DemoWorkload(
        "search",
        "pods that take ten minutes to start",
        _hpa("search", [_cpu(70)]),
        _autoscaler("search", [_cpu(70)], **ahead),
        generate(shape),
        pods,
    )


def _mailer() -> DemoWorkload:
    """A worker of a queue: its length says little about how much work there is."""
    shape = LoadShape(peak=40.0, valley=0.3, noise=0.1, bursts_a_day=6, burst=0.6, burst_minutes=20, seed=12)
    backlog = {
        "name": "mail",
        "arrivals": {"query": 'sum(rate(rabbitmq_queue_messages_published_total{queue="mail"}[1m]))'},
        "waiting": {"query": 'sum(rabbitmq_queue_messages_ready{queue="mail"})'},
        "serviceTime": "2s",
        "concurrency": 4,
        "waitBelow": "1m",
    }
    by_length = {"metric": {"name": "rabbitmq_queue_messages"}, "target": {"type": "AverageValue", "averageValue": "5"}}
    proposed = _autoscaler("mailer", [{"type": "Backlog", "backlog": backlog}])
    policy = policy_of(proposed)
    one = judged_pod(policy, None)
    pods = cluster_of(one.judged, startup_s=60.0, queue=queue_of(policy, one.judged.request))
    return DemoWorkload(
        "mailer",
        "a queue, scaled by its length",
        _hpa("mailer", [{"type": "External", "external": by_length}]),
        proposed,
        generate(shape),
        pods,
        "scaled by arrivals and waiting items",
    )


def _cache() -> DemoWorkload:
    """Somebody gave each pod four gibibytes to be safe; it needs less, but not always equally much."""
    content = LoadShape(peak=5.6, valley=0.8, noise=0.01, bursts_a_day=3, burst=0.4, burst_minutes=20, seed=15)
    pods = cluster_of(
        of_recorded(1.0, None, 2.0, in_cores=True),
        startup_s=60.0,
        pod_memory_bytes=4.0 * GIB,
        base_memory_bytes=0.25 * GIB,
        memory_load=generate(content) * GIB,
    )
    memory_only = {"resourcePolicy": {"containerPolicies": [{"containerName": "*", "controlledResources": ["memory"]}]}}
    return DemoWorkload(
        "cache",
        "twice the memory it needs",
        _hpa("cache", [_cpu(70)]),
        _autoscaler("cache", [_cpu(70)], vertical={**memory_only, "apply": "InPlace"}),
        generate(LoadShape(peak=9.0, valley=0.3, noise=0.05, seed=14)),
        pods,
        "memory sized by use",
    )


WORKLOADS: tuple[Callable[[], DemoWorkload], ...] = (_web, _search, _mailer, _cache)


def _guaranteed(cores: float) -> Yardstick:
    return of_recorded(cores, 0.8 * cores, cores, in_cores=True)


def _cpu(percent: int) -> Manifest:
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def _hpa(name: str, metrics: list[Manifest]) -> Manifest:
    return _scaler("autoscaling/v2", "HorizontalPodAutoscaler", name, metrics)


def _autoscaler(name: str, metrics: list[Manifest], **spec: Any) -> Manifest:
    return _scaler("trimtab.dev/v1alpha1", "Autoscaler", name, metrics, **spec)


def _scaler(version: str, kind: str, name: str, metrics: list[Manifest], **spec: Any) -> Manifest:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    bounds = {"minReplicas": 2, "maxReplicas": 100}
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": name, "namespace": "demo"},
        "spec": {"scaleTargetRef": target, **bounds, "metrics": metrics, **spec},
    }
