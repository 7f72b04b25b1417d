"""metric_status: what signals measured, as HPA shows it."""

from __future__ import annotations

from typing import Any

from trimtab.core.model import Decision, Missing, Observation, PodSamples, Proposal, Samples
from trimtab.policy import MetricKind, PodAverage, Policy, Signal, Utilization
from trimtab.quantity import format_cpu, format_memory, format_number


def current_metrics(policy: Policy, seen: Observation, decision: Decision) -> list[dict[str, Any]]:
    """autoscaling/v2 MetricStatus of each signal that has a value."""
    found = []
    for signal, sample, proposal in zip(policy.signals, seen.samples, decision.proposals, strict=False):
        if not isinstance(sample, Missing) and proposal.value is not None:
            found.append(_metric_status(signal, sample, proposal))
    return found


def _metric_status(signal: Signal, sample: Samples, proposal: Proposal) -> dict[str, Any]:
    metric, value = signal.metric, proposal.value or 0.0
    current = {"averageValue" if isinstance(sample, PodSamples) else "value": format_number(value)}
    if isinstance(signal, Utilization) and isinstance(sample, PodSamples):
        mean = sum(sample.values.values()) / len(sample.values)
        written_mean = format_cpu(mean) if metric.name == "cpu" else format_memory(mean)
        current = {"averageUtilization": int(value), "averageValue": written_mean}  # type: ignore[dict-item]
    if metric.kind is MetricKind.RESOURCE:
        return {"type": "Resource", "resource": {"name": metric.name, "current": current}}
    if metric.kind is MetricKind.CONTAINER:
        named = {"name": metric.name, "container": metric.container, "current": current}
        return {"type": "ContainerResource", "containerResource": named}
    if metric.kind is MetricKind.OBJECT:
        api_version, kind, name = metric.object.rsplit("/", 2)
        described = {"apiVersion": api_version, "kind": kind, "name": name}
        named_object = {"metric": {"name": metric.name}, "describedObject": described, "current": current}
        return {"type": "Object", "object": named_object}
    if metric.kind is MetricKind.PROMETHEUS:
        return {"type": "Prometheus", "prometheus": {"name": metric.label, "current": current}}
    key = metric.kind.lower()
    return {"type": str(metric.kind), key: {"metric": {"name": metric.name}, "current": current}}


def targets(policy: Policy, decision: Decision) -> str:
    """ "cpu: 62%/80%, 12/50", as `kubectl get hpa` prints it."""
    parts = []
    for signal, proposal in zip(policy.signals, decision.proposals, strict=False):
        percent = "%" if isinstance(signal, Utilization) else ""
        now = "<unknown>" if proposal.value is None else f"{format_number(proposal.value)}{percent}"
        wanted = signal.percent if isinstance(signal, Utilization) else getattr(signal, "target", 0.0)
        average = " (avg)" if isinstance(signal, PodAverage) else ""
        parts.append(f"{signal.metric.label}: {now}/{format_number(wanted)}{percent}{average}")
    return ", ".join(parts)
