"""A namespace in a MemoryApi: Deployments with two pods each, at the CPU that is given, and an Autoscaler for each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.live.build import AT, AUTOSCALERS, spec
from tests.live.memory_api import MemoryApi
from trimtab.core.usage.settings import HistogramSettings
from trimtab.journal import Journal
from trimtab.live.act.breaker import Breaker
from trimtab.live.look.cluster import WatchedCluster
from trimtab.live.look.subject import Compiler
from trimtab.live.measure.checkpoint import Checkpoints
from trimtab.live.measure.forecasts import Forecasts
from trimtab.live.measure.gather import Gather
from trimtab.live.measure.usage import UsageWatch
from trimtab.live.tell.telemetry import Telemetry
from trimtab.live.tick import Ticker
from trimtab.wire.from_kubernetes import rfc3339

APPS, CORE = "/apis/apps/v1/namespaces/shop", "/api/v1/namespaces/shop"
METRICS = "/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods"
OURS = f"{AUTOSCALERS.root}/namespaces/shop/autoscalers"
CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
CONTAINER = {"name": "app", "resources": {"requests": {"cpu": "250m", "memory": "64Mi"}}}


def stock(api: MemoryApi, name: str = "web", cores: float = 0.25, kind: str = "Deployment", **more: Any) -> None:
    """Two ready pods of one Deployment at so many cores each, half of it is the target."""
    start = rfc3339(AT - 3600)
    template = {"spec": {"containers": [CONTAINER]}}
    owned = {"metadata": {"uid": f"d-{name}"}, "spec": {"replicas": 2, "template": template}, "status": {"replicas": 2}}
    api.put(f"{APPS}/{kind.lower()}s/{name}", owned)
    for pod in (f"{name}-a", f"{name}-b"):
        owner = {"kind": kind, "name": name, "uid": f"d-{name}", "controller": True}
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": start}
        status = {"phase": "Running", "startTime": start, "conditions": [ready]}
        meta = {"uid": f"p-{pod}", "ownerReferences": [owner], "creationTimestamp": start}
        api.put(f"{CORE}/pods/{pod}", {"metadata": meta, "spec": {"containers": [CONTAINER]}, "status": status})
        measure(api, pod, cores)
    scaler = {"metadata": {"uid": f"uid-{name}", "generation": 1}, "spec": spec(name, metrics=[CPU]) | more}
    api.put(f"{OURS}/{name}", {"apiVersion": AUTOSCALERS.api_version, "kind": "Autoscaler"} | scaler)


def measure(api: MemoryApi, pod: str, cores: float, at: float = AT) -> None:
    used = [{"name": "app", "usage": {"cpu": f"{round(cores * 1000)}m", "memory": "32Mi"}}]
    api.put(f"{METRICS}/{pod}", {"timestamp": rfc3339(at), "window": "15s", "containers": used})


def watched(api: MemoryApi) -> WatchedCluster:
    cluster = WatchedCluster(api.kube())
    cluster.ours["Autoscaler"].resource = AUTOSCALERS
    api.follow(cluster)
    return cluster


def ticker(api: MemoryApi, cluster: WatchedCluster, telemetry: Telemetry, journal: Path | None = None) -> Ticker:
    writer, usage = cluster.kube, UsageWatch(cluster, HistogramSettings())
    return Ticker(
        cluster,
        Gather(cluster.kube, None),
        writer,
        Compiler(),
        Breaker(),
        telemetry,
        usage,
        Checkpoints(writer, usage, 600.0, "trimtab"),
        Forecasts(),
        Journal(journal) if journal else None,
    )
