"""What the load server says, in the words of others: a kubelet, an application, a metrics adapter."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import Any

from tests.bed.sharing import IDLE_MEMORY_BYTES, Pod, World

CUSTOM = "custom.metrics.k8s.io/v1beta2"
EXTERNAL = "external.metrics.k8s.io/v1beta1"
JUST_UNDER = 1 - 1e-6  # readers round up to millicores: a nanosecond too many must not make one more


def kubelet(world: World, node: str) -> str:
    """/metrics/resource of one node; metrics-server wants the time of each sample."""
    at_ms = round(world.now * 1000)
    for workload in {pod.workload for pod in world.on_node[node].values()}:
        world.bring(workload)
    pods = [pod for pod in world.on_node[node].values() if pod.running]
    lines = [
        f"node_cpu_usage_seconds_total {world.node_cpu_seconds[node]:.9f} {at_ms}",
        f"node_memory_working_set_bytes {sum(pod.memory_bytes for pod in pods) or 1:.0f} {at_ms}",
    ]
    for pod in pods:
        if pod.measured and world.script(pod.workload).fault != "unmeasured":
            lines += [f"{name}{labels} {value} {at_ms}" for name, labels, value in _containers(pod)]
    return "\n".join(lines) + "\n"


def application(world: World) -> str:
    """/metrics of all applications together, with what cAdvisor would add."""
    world.advance(world.now)
    lines = []
    for pod in world.pods.values():
        if pod.running:
            lines += _application_of(world, pod)
    lines += [f"{name}{labels} {value}" for name, labels, value in _queues(world)]
    return "\n".join(lines) + "\n"


def _application_of(world: World, pod: Pod) -> list[str]:
    fault = world.script(pod.workload).fault
    if fault == "silent":
        return []
    requests, rate = ("NaN", "NaN") if fault == "nan" else (f"{pod.requests:.6f}", f"{pod.rate:.6f}")
    labels = f'{{namespace="{pod.namespace}",app="{pod.workload[1]}",pod="{pod.name}"}}'
    own = [f"http_requests_total{labels} {requests}", f"requests_per_second{labels} {rate}"]
    return own + [f"{name}{labels} {value}" for name, labels, value in _containers(pod)]


def _containers(pod: Pod) -> Iterable[tuple[str, str, str]]:
    """The first container does the work; the others idle."""
    for index, container in enumerate(pod.containers):
        labels = f'{{namespace="{pod.namespace}",pod="{pod.name}",container="{container}"}}'
        cpu_seconds = pod.cpu_seconds * JUST_UNDER if index == 0 else 0.001
        memory_bytes = pod.memory_bytes if index == 0 else IDLE_MEMORY_BYTES
        yield "container_cpu_usage_seconds_total", labels, f"{cpu_seconds:.9f}"
        yield "container_memory_working_set_bytes", labels, f"{memory_bytes:.0f}"
        yield "container_start_time_seconds", labels, f"{pod.started_at:.3f}"


def _queues(world: World) -> Iterable[tuple[str, str, float]]:
    for namespace, app in {**world.annotated, **world.posted}:
        script = world.script((namespace, app))
        if script.fault != "silent":
            value = float("nan") if script.fault == "nan" else script.queue.at(world.now - script.since)
            yield "queue_length", f'{{namespace="{namespace}",app="{app}"}}', value


def custom_resources() -> dict[str, Any]:
    names = (
        "pods/requests_per_second",
        "services/requests_per_second",
        "deployments.apps/requests_per_second",
    )
    return _resource_list(CUSTOM, names, "MetricValueList")


def external_resources() -> dict[str, Any]:
    return _resource_list(EXTERNAL, ("queue_length",), "ExternalMetricValueList")


def custom_pods(world: World, namespace: str, metric: str, selector: dict[str, str]) -> dict[str, Any]:
    """One value for each running pod that the selector chooses."""
    for workload in {workload for workload in world.members if workload[0] == namespace}:
        world.bring(workload)
    items = [
        _custom_value(world, "Pod", namespace, pod.name, metric, pod.rate)
        for pod in world.pods.values()
        if pod.namespace == namespace and pod.running and selector.items() <= pod.labels.items()
        if pod.measured and world.script(pod.workload).fault is None
    ]
    return {"kind": "MetricValueList", "apiVersion": CUSTOM, "metadata": {}, "items": items}


def custom_object(world: World, namespace: str, kind: str, name: str, metric: str) -> dict[str, Any]:
    """The whole rate of the workload that has the object's name."""
    script = world.script((namespace, name))
    total = script.rate.at(world.now - script.since)
    items = [_custom_value(world, kind, namespace, name, metric, total)] if script.fault is None else []
    return {"kind": "MetricValueList", "apiVersion": CUSTOM, "metadata": {}, "items": items}


def external(world: World, namespace: str, metric: str, selector: dict[str, str]) -> dict[str, Any]:
    items = []
    for space, app in {**world.annotated, **world.posted}:
        labels, script = {"app": app}, world.script((space, app))
        if space == namespace and selector.items() <= labels.items() and script.fault is None:
            value = _quantity(script.queue.at(world.now - script.since))
            items.append({"metricName": metric, "metricLabels": labels, "timestamp": _when(world), "value": value})
    return {"kind": "ExternalMetricValueList", "apiVersion": EXTERNAL, "metadata": {}, "items": items}


def _custom_value(world: World, kind: str, namespace: str, name: str, metric: str, value: float) -> dict[str, Any]:
    described = {"kind": kind, "namespace": namespace, "name": name, "apiVersion": "/v1"}
    return {
        "describedObject": described,
        "metric": {"name": metric},
        "timestamp": _when(world),
        "value": _quantity(value),
    }


def _resource_list(group_version: str, names: tuple[str, ...], kind: str) -> dict[str, Any]:
    resources = [
        {"name": name, "singularName": "", "namespaced": True, "kind": kind, "verbs": ["get"]} for name in names
    ]
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": group_version,
        "resources": resources,
    }


def _quantity(value: float) -> str:
    return f"{round(value * 1000)}m"


def _when(world: World) -> str:
    return dt.datetime.fromtimestamp(world.now, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
