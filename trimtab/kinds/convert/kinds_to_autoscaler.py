"""Custom-hpa values as the spec of an Autoscaler."""

from __future__ import annotations

from math import ceil
from typing import Any

from trimtab.kinds.convert.source_fields import SourceFields

_CUSTOM_PLACES = {
    "spec.minReplicas": "minReplicas",
    "spec.maxReplicas": "maxReplicas",
    "spec.metrics": "prometheus.query",
    "spec.metrics[0]": "prometheus.query",
    "spec.scaleTargetRef": "target",
    "spec.mode": "dryRun",
    "spec.behavior": "behavior",
} | {
    f"spec.behavior.scale{way}.{ours}": f"behavior.scale{way}{theirs}"
    for way in ("Up", "Down")
    for ours, theirs in (
        ("cooldownSeconds", "Cooldown"),
        ("minFactor", "MinFactor"),
        ("maxFactor", "MaxFactor"),
        ("tolerance", "MinFactor"),  # the program has neither tolerance nor window
        ("stabilizationWindowSeconds", "Cooldown"),
    )
}


def from_custom(spec: SourceFields, metadata: dict[str, Any]) -> dict[str, Any]:
    """Document 002's program with HPA's rules around it; its own rhythm is the operator's."""
    target, prometheus, behavior = spec.part("target"), spec.part("prometheus"), spec.part("behavior")
    spec.places(_CUSTOM_PLACES)
    name = target.take("deployment", str)
    metadata |= {"name": f"{name}-custom-hpa", "namespace": target.take("namespace", str)}
    value = {"type": "Value", "value": str(target.take("value", object))}
    query = {"query": prometheus.take("query", str), "target": value}
    prometheus.close("is the operator's setting, not the object's")
    sides = {f"scale{way}": _side(behavior, way) for way in ("Up", "Down")}
    made: dict[str, Any] = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
        "minReplicas": spec.take("minReplicas", int),
        "maxReplicas": spec.take("maxReplicas", int),
        "metrics": [{"type": "Prometheus", "prometheus": query}],
        "behavior": sides,
    }
    if spec.take("dryRun", bool):
        made["mode"] = "Shadow"
    spec.close("belongs to the program, not to the object")
    return made


def _side(behavior: SourceFields, way: str) -> dict[str, Any]:
    """The program's defaults, spelled out, with HPA's own damping switched off."""
    cooldown = behavior.take(f"scale{way}Cooldown", object)
    least, most = behavior.take(f"scale{way}MinFactor", object), behavior.take(f"scale{way}MaxFactor", object)
    rest_s, farthest = 15.0 if cooldown is None else float(str(cooldown)), 1.0 if most is None else most
    made = {
        "stabilizationWindowSeconds": 0,
        "tolerance": 0,
        "cooldownSeconds": round(rest_s),
        "minFactor": 0.1 if least is None else least,
        "maxFactor": farthest,
    }
    percent = ceil(100 * float(str(farthest)))
    if way == "Up" and (rest_s < 15 or percent > 100):  # more than HPA's doubling within 15 seconds
        made["policies"] = [{"type": "Percent", "value": max(100, percent), "periodSeconds": 1}]
    return made
