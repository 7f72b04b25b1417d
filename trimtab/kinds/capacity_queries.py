"""What to ask Prometheus about a workload whose capacity is learned: its usage and its ready pods."""

from __future__ import annotations

from typing import NamedTuple

from trimtab.errors import InvalidInput
from trimtab.policy import MetricKind, Policy, TotalAverage, is_cpu
from trimtab.promql import Matcher, escape, selector

_READY = {
    "Deployment": ("kube_deployment_status_replicas_ready", "deployment"),
    "StatefulSet": ("kube_statefulset_status_replicas_ready", "statefulset"),
    "ReplicaSet": ("kube_replicaset_status_ready_replicas", "replicaset"),
}


class CapacityQueries(NamedTuple):
    usage: str  # of all pods
    pods: str
    target: float | None  # for each pod, where it is written in the unit of the usage


def capacity_queries(policy: Policy, namespace: str, kind: str, name: str) -> CapacityQueries:
    """Return the queries for the metric of a policy; kube-state-metrics counts ready pods."""
    signal = policy.signals[0]
    own = Matcher("namespace", "=", namespace)
    if kind not in _READY:
        raise InvalidInput("spec.scaleTargetRef.kind", kind, f"ready pods are known of {', '.join(_READY)}")
    metric, label = _READY[kind]
    pods = f"sum({selector(metric, [own, Matcher(label, '=', name)])})"
    if signal.metric.kind is MetricKind.PROMETHEUS:
        return CapacityQueries(signal.metric.query, pods, signal.target if isinstance(signal, TotalAverage) else None)
    if not is_cpu(signal.metric):
        fix = "write a Prometheus metric or cpu: usage of the past is read from Prometheus"
        raise InvalidInput("spec.metrics", signal.metric.label, fix)
    parts = {"ReplicaSet": "-[a-z0-9]{5}", "StatefulSet": "-[0-9]+"}
    named = Matcher("pod", "=~", escape(name) + parts.get(kind, "-[a-z0-9]+-[a-z0-9]{5}"))
    container = signal.metric.container
    which = Matcher("container", "=" if container else "!=", container)
    return CapacityQueries(
        f"sum(rate({selector('container_cpu_usage_seconds_total', [own, named, which])}[2m]))", pods, None
    )
