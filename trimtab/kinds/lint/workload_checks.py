"""Checks that look from an autoscaler to its workload, and to others that act on the same one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trimtab.errors import InvalidInput
from trimtab.kinds import Hvpa
from trimtab.kinds.lint.finding import Diagnostic, LintSeverity
from trimtab.kinds.lint.manifest_set import (
    WORKLOADS,
    LintedManifest,
    ManifestSet,
    containers,
    get,
    runs_java,
    startup_s,
)
from trimtab.policy import (
    MetricKind,
    PodAverage,
    Stabilise,
    StabiliseMax,
    Utilization,
    is_cpu,
    level_of,
    limit_sets_level,
)
from trimtab.quantity import format_duration, parse_quantity

HIGH_TARGET = 0.9  # of a request


def rivals(linted: LintedManifest, among: ManifestSet) -> Iterator[Diagnostic]:
    """Two that move the same pods, or the same requests: each undoes what the other does."""
    for acts, others in (("replicas", among.scaling(linted.target)), ("requests", among.resizing(linted.target))):
        earlier = others[: others.index(linted)] if linted in others else []
        rival = next((other for other in earlier if other.meets(linted)), None)
        if rival and linted.target:
            why = f"{rival.title} also sets the {acts} of {linted.target.kind}/{linted.target.name}"
            fix = f"keep one of them; to remove this one where the other runs: {_removal(linted, rival)}"
            yield Diagnostic(LintSeverity.ERROR, "two-autoscalers", "spec", why, fix)


def _removal(linted: LintedManifest, rival: LintedManifest) -> str:
    """Deletes nothing unless the other one is applied."""
    if linted.is_custom_hpa:
        return "helm uninstall the release of these values"
    if rival.is_custom_hpa:
        return f"kubectl delete {_named(linted)} once the release of those values runs"
    return f"kubectl get {_named(rival)} && kubectl delete {_named(linted)}"


def _named(linted: LintedManifest) -> str:
    return f"{linted.kind.lower()} {linted.itself.name} -n {linted.namespace}"


def same_resource(linted: LintedManifest, among: ManifestSet) -> Iterator[Diagnostic]:
    """Utilisation is usage / request: who moves the request moves the other's target."""
    if not linted.moves_pods or linted.resizes:
        return  # one object for both axes moves the target with the request
    for other in filter(linted.meets, among.resizing(linted.target)):
        for resource in sorted(_utilized(linted) & other.resizes):
            why = f"{other.title} moves {resource} requests while this scales on a share of them: they chase each other"
            fix = f"use one Autoscaler with `vertical`, or averageValue for {resource}"
            yield Diagnostic(LintSeverity.WARNING, "same-resource", linted.path("metrics"), why, fix)


def _utilized(linted: LintedManifest) -> set[str]:
    signals = linted.policy.signals if linted.policy else ()
    return {signal.metric.name for signal in signals if isinstance(signal, Utilization)}


def missing_requests(linted: LintedManifest, among: ManifestSet) -> Iterator[Diagnostic]:
    for signal in linted.policy.signals if linted.policy else ():
        if not isinstance(signal, Utilization):
            continue
        for container in containers(among.workload(linted.target)):
            ours = signal.metric.kind is MetricKind.RESOURCE or container.get("name") == signal.metric.container
            if (
                ours
                and get(container, "resources", "requests", signal.metric.name) is None
                and not _limited(container, signal)
            ):
                name = signal.metric.name
                why = f"container {container.get('name')} has no {name} request, so a percentage of it has no value"
                yield Diagnostic(
                    LintSeverity.ERROR,
                    "missing-request",
                    linted.path("metrics"),
                    why,
                    f"set resources.requests.{name} in the workload",
                )


def _limited(container: dict[str, Any], signal: Utilization) -> bool:
    """A limit without a request is the request too."""
    return get(container, "resources", "limits", signal.metric.name) is not None


def little_headroom(linted: LintedManifest, among: ManifestSet) -> Iterator[Diagnostic]:
    """A target above the level keeps pods overloaded; where limits are not known, one that is nearly the request."""
    if isinstance(linted.obj, Hvpa) or linted.policy is None:
        return  # targets above 100 % are HVPA's own remedy there
    sizes = _cpu_sizes(among.workload(linted.target))
    requested = sum(request for request, _ in sizes)
    cpu_level = sum(level_of(*size) for size in sizes) / requested if requested else HIGH_TARGET
    for index, signal in enumerate(linted.policy.signals):
        level = cpu_level if is_cpu(signal.metric) else HIGH_TARGET
        if isinstance(signal, Utilization) and signal.percent > 100.0 * level + 0.5:
            path = linted.path(f"metrics[{index}]")
            why = f"{signal.percent} % of the request leaves no room while new pods start"
            fix = f"use less than {level:.0%}, above which pods are overloaded" if requested else "use 50 to 80 %"
            yield Diagnostic(LintSeverity.WARNING, "high-target", path, why, fix)


def idle_bridge(linted: LintedManifest, among: ManifestSet) -> Iterator[Diagnostic]:
    """Pods that may use more than they request gain nothing from a larger request."""
    sizes = _cpu_sizes(among.workload(linted.target))
    if linted.policy and linted.policy.bridge and not all(limit_sets_level(*size) for size in sizes):
        why = "pods may use more than they request, so a larger size carries no more: the bridge is not applied"
        fix = "set CPU limits to at most 1.25 times the requests, or remove the bridge"
        yield Diagnostic(LintSeverity.WARNING, "idle-bridge", linted.path("bridge"), why, fix)


def _cpu_sizes(workload: dict[str, Any] | None) -> list[tuple[float, float | None]]:
    """Request and limit of each container that has a request, or a limit, which is the request then."""
    found = []
    for container in containers(workload):
        limit = _cores(get(container, "resources", "limits", "cpu"))
        request = _cores(get(container, "resources", "requests", "cpu")) or limit
        if request:
            found.append((request, limit))
    return found


def _cores(written: Any) -> float | None:
    try:
        return None if written is None else parse_quantity(written)
    except InvalidInput:
        return None  # another check refuses it


def replicas_written(linted: LintedManifest, among: ManifestSet) -> Iterator[Diagnostic]:
    if linted.kind not in WORKLOADS or get(linted.manifest, "spec", "replicas") is None:
        return
    for scaler in among.scaling(linted.itself)[:1]:
        why = f"{scaler.title} decides the number of replicas; every apply of this manifest sets it back"
        yield Diagnostic(
            LintSeverity.WARNING, "replicas-in-manifest", "spec.replicas", why, "leave replicas out of the manifest"
        )


def short_window(linted: LintedManifest, among: ManifestSet) -> Iterator[Diagnostic]:
    """Pods are removed and needed again before a new one could have started."""
    slow_s, window_s = startup_s(among.workload(linted.target)), _down_window(linted)
    if window_s is not None and window_s < slow_s:
        slow, window = format_duration(slow_s), format_duration(window_s)
        why = f"pods need at least {slow} to start, but may be removed after {window}"
        fix = f"set stabilizationWindowSeconds of scaleDown to {slow_s:.0f} or more"
        path = linted.path("behavior.scaleDown.stabilizationWindowSeconds")
        yield Diagnostic(LintSeverity.WARNING, "short-window", path, why, fix)


def _down_window(linted: LintedManifest) -> float | None:
    for rule in linted.policy.settle if linted.policy else ():
        if isinstance(rule, Stabilise | StabiliseMax):
            return rule.down_s if isinstance(rule, Stabilise) else rule.window_s
    return None


def memory_of_java(linted: LintedManifest, among: ManifestSet) -> Iterator[Diagnostic]:
    on_memory = any(
        isinstance(signal, Utilization | PodAverage) and signal.metric.name == "memory"
        for signal in (linted.policy.signals if linted.policy else ())
    )
    if not on_memory:
        return
    for container in containers(among.workload(linted.target)):
        if runs_java(container):
            why = f"container {container.get('name')} runs a JVM, which keeps the memory it once took"
            yield Diagnostic(
                LintSeverity.WARNING,
                "memory-of-java",
                linted.path("metrics"),
                why,
                "scale on CPU, requests or the heap after GC",
            )


CHECKS = (
    rivals,
    same_resource,
    missing_requests,
    little_headroom,
    idle_bridge,
    replicas_written,
    short_window,
    memory_of_java,
)
