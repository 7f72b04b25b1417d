"""HPA, EHPA and custom-hpa values as the spec of an Autoscaler."""

from __future__ import annotations

from math import ceil
from typing import Any

from trimtab.kinds.annotations import PIN
from trimtab.kinds.convert.annotated_parts import parts_of_annotations
from trimtab.kinds.convert.source_fields import SourceFields, schedules_alone
from trimtab.kinds.convert.source_metadata import annotate
from trimtab.kinds.hpa_v2beta1 import v2_metric
from trimtab.kinds.ledger import without_none

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


def _scaled(spec: SourceFields) -> dict[str, Any]:
    return without_none(
        scaleTargetRef=spec.take("scaleTargetRef", dict),
        minReplicas=spec.take("minReplicas", int),
        maxReplicas=spec.take("maxReplicas", int),
        metrics=_metrics(spec),
        behavior=spec.take("behavior", dict),
    )


def _metrics(spec: SourceFields) -> list[Any] | None:
    written = spec.take("metrics", list)
    return None if written is None else [v2_metric(metric) for metric in written]


def from_ehpa(spec: SourceFields, metadata: dict[str, Any]) -> dict[str, Any]:
    """Crons are schedules, prediction is a forecast, Preview is Shadow."""
    spec.places({"spec.schedules": "spec.crons", "spec.forecast": "spec.prediction", "spec.mode": "spec.scaleStrategy"})
    made = _scaled(spec) | parts_of_annotations(metadata)
    crons = [_schedule(cron, index) for index, cron in enumerate(spec.items("crons"))]
    if crons:
        made["schedules"] = crons
        if not made.get("metrics") and not spec.has("prediction"):
            made["metrics"] = [schedules_alone()]
            spec.places({"spec.metrics": "spec.crons", "spec.metrics[0]": "spec.crons"})
    preview = spec.take("scaleStrategy", str) == "Preview"
    specific = spec.take("specificReplicas", int)
    if preview:
        made["mode"] = "Shadow"
    if specific is not None and preview:
        annotate(metadata, PIN, str(specific))
    elif specific is not None:
        spec.note("only counts with scaleStrategy: Preview", "specificReplicas")
    prediction = spec.part("prediction")
    algorithm = prediction.part("predictionAlgorithm")
    model = algorithm.take("algorithmType", str)
    window_s = prediction.take("predictionWindowSeconds", int, 3600)
    if model:
        made["forecast"] = {"model": model, "horizon": window_s}
    algorithm.close("is chosen here")
    prediction.close()
    spec.close()
    return made


def _schedule(cron: SourceFields, index: int) -> dict[str, Any]:
    made = without_none(
        name=cron.take("name", str) or f"cron-{index}",
        timezone=cron.take("timezone", str),
        start=cron.take("start", str),
        end=cron.take("end", str),
        minReplicas=cron.take("targetReplicas", int),
    )
    cron.close()
    return made


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
