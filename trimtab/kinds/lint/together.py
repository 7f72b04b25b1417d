"""Checks that look from an autoscaler to its workload, and to others that act on the same one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trimtab.kinds.lint.finding import Found, Severity
from trimtab.kinds.lint.world import WORKLOADS, Entry, World, containers, get, runs_java, startup_s
from trimtab.policy import MetricKind, PodAverage, Stabilise, StabiliseMax, Utilization
from trimtab.quantity import format_duration


def rivals(entry: Entry, world: World) -> Iterator[Found]:
    """Two that move the same pods, or the same requests: each undoes what the other does."""
    for acts, others in (("replicas", world.scaling(entry.target)), ("requests", world.resizing(entry.target))):
        if entry in others and others[0] is not entry and entry.target:
            why = f"{others[0].title} also sets the {acts} of {entry.target.kind}/{entry.target.name}"
            fix = f"keep one of them: {_removal(entry)}"
            yield Found(Severity.ERROR, "two-autoscalers", "spec", why, fix)


def _removal(entry: Entry) -> str:
    if entry.is_custom_hpa:
        return "helm uninstall the release of these values"
    return f"kubectl delete {entry.kind.lower()} {entry.itself.name} -n {entry.namespace}"


def same_resource(entry: Entry, world: World) -> Iterator[Found]:
    """Utilisation is usage / request: who moves the request moves the other's target."""
    if not entry.moves_pods or entry.resizes:
        return  # one object for both axes moves the target with the request
    for other in world.resizing(entry.target):
        for resource in sorted(_utilized(entry) & other.resizes):
            why = f"{other.title} moves {resource} requests while this scales on a share of them: they chase each other"
            fix = f"use one Autoscaler with `vertical`, or averageValue for {resource}"
            yield Found(Severity.WARNING, "same-resource", "spec.metrics", why, fix)


def _utilized(entry: Entry) -> set[str]:
    if entry.policy:
        return {one.metric.name for one in entry.policy.signals if isinstance(one, Utilization)}
    triggers = get(entry.manifest, "spec", "triggers")
    named = [one for one in triggers if isinstance(one, dict)] if isinstance(triggers, list) else []
    return {str(one.get("type")) for one in named if _trigger_type(one) == "Utilization"} & {"cpu", "memory"}


def _trigger_type(trigger: dict[str, Any]) -> str:
    return str(trigger.get("metricType") or get(trigger, "metadata", "type") or "Utilization")


def missing_requests(entry: Entry, world: World) -> Iterator[Found]:
    for signal in entry.policy.signals if entry.policy else ():
        if not isinstance(signal, Utilization):
            continue
        for container in containers(world.workload(entry.target)):
            ours = signal.metric.kind is MetricKind.RESOURCE or container.get("name") == signal.metric.container
            if (
                ours
                and get(container, "resources", "requests", signal.metric.name) is None
                and not _limited(container, signal)
            ):
                name = signal.metric.name
                why = f"container {container.get('name')} has no {name} request, so a percentage of it has no value"
                yield Found(
                    Severity.ERROR,
                    "missing-request",
                    "spec.metrics",
                    why,
                    f"set resources.requests.{name} in the workload",
                )


def _limited(container: dict[str, Any], signal: Utilization) -> bool:
    """A limit without a request is the request too."""
    return get(container, "resources", "limits", signal.metric.name) is not None


def replicas_written(entry: Entry, world: World) -> Iterator[Found]:
    if entry.kind not in WORKLOADS or get(entry.manifest, "spec", "replicas") is None:
        return
    for scaler in world.scaling(entry.itself)[:1]:
        why = f"{scaler.title} decides the number of replicas; every apply of this manifest sets it back"
        yield Found(
            Severity.WARNING, "replicas-in-manifest", "spec.replicas", why, "leave replicas out of the manifest"
        )


def short_window(entry: Entry, world: World) -> Iterator[Found]:
    """Pods are removed and needed again before a new one could have started."""
    slow_s, window_s = startup_s(world.workload(entry.target)), _down_window(entry)
    if window_s is not None and window_s < slow_s:
        slow, window = format_duration(slow_s), format_duration(window_s)
        why = f"pods need at least {slow} to start, but may be removed after {window}"
        fix = f"set stabilizationWindowSeconds of scaleDown to {slow_s:.0f} or more"
        path = "spec.behavior.scaleDown.stabilizationWindowSeconds"
        yield Found(Severity.WARNING, "short-window", path, why, fix)


def _down_window(entry: Entry) -> float | None:
    for rule in entry.policy.settle if entry.policy else ():
        if isinstance(rule, Stabilise | StabiliseMax):
            return rule.down_s if isinstance(rule, Stabilise) else rule.window_s
    return None


def memory_of_java(entry: Entry, world: World) -> Iterator[Found]:
    on_memory = any(
        isinstance(one, Utilization | PodAverage) and one.metric.name == "memory"
        for one in (entry.policy.signals if entry.policy else ())
    )
    if not on_memory:
        return
    for container in containers(world.workload(entry.target)):
        if runs_java(container):
            why = f"container {container.get('name')} runs a JVM, which keeps the memory it once took"
            yield Found(
                Severity.WARNING, "memory-of-java", "spec.metrics", why, "scale on CPU, requests or the heap after GC"
            )


CHECKS = (rivals, same_resource, missing_requests, replicas_written, short_window, memory_of_java)
