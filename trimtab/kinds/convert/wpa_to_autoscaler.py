"""Watermarks as the spec of an Autoscaler."""

from __future__ import annotations

from math import ceil
from typing import Any

from trimtab.kinds.annotations import WPA_SETTINGS
from trimtab.kinds.behavior import LONGEST_WINDOW_S
from trimtab.kinds.convert.source_fields import SourceFields, within_window
from trimtab.kinds.convert.source_metadata import lose_annotations
from trimtab.kinds.ledger import without_none
from trimtab.kinds.watermark_pod_autoscaler import (
    DEFAULT_DOWN_PERCENT,
    DEFAULT_DOWN_REST_S,
    DEFAULT_TOLERANCE,
    DEFAULT_UP_PERCENT,
    DEFAULT_UP_REST_S,
)
from trimtab.quantity import parse_quantity

_STEP_S = 15  # it decides every 15 s

_WPA_PLACES = {
    "spec.behavior.scaleUp.cooldownSeconds": "spec.upscaleForbiddenWindowSeconds",
    "spec.behavior.scaleDown.cooldownSeconds": "spec.downscaleForbiddenWindowSeconds",
    "spec.behavior.scaleUp.stabilizationWindowSeconds": "spec.upscaleDelayAboveWatermarkSeconds",
    "spec.behavior.scaleDown.stabilizationWindowSeconds": "spec.downscaleDelayBelowWatermarkSeconds",
    "spec.behavior.scaleUp.tolerance": "spec.tolerance",
    "spec.behavior.scaleDown.tolerance": "spec.tolerance",
    "spec.behavior.scaleUp": "spec.scaleUpLimitFactor",
    "spec.behavior.scaleDown": "spec.scaleDownLimitFactor",
    "spec.behavior.scaleUp.policies": "spec.scaleUpLimitFactor",
    "spec.behavior.scaleDown.policies": "spec.scaleDownLimitFactor",
    "spec.behavior.scaleUp.selectPolicy": "spec.scaleUpLimitFactor",
    "spec.behavior.scaleDown.selectPolicy": "spec.scaleDownLimitFactor",
    "spec.mode": "spec.dryRun",
}


def from_wpa(spec: SourceFields, metadata: dict[str, Any]) -> dict[str, Any]:
    """The high mark is the target, the zone below it down to the low mark is tolerated."""
    spec.places(_WPA_PLACES)
    average = spec.take("algorithm", str) == "average"
    tolerance = parse_quantity(str(spec.take("tolerance", object, DEFAULT_TOLERANCE)))
    made = without_none(
        scaleTargetRef=spec.take("scaleTargetRef", dict),
        minReplicas=spec.take("minReplicas", int),
        maxReplicas=spec.take("maxReplicas", int),
    )
    found = [marked for metric in spec.items("metrics") if (marked := _marked(metric, average, tolerance))]
    if found:
        made["metrics"] = [metric for metric, _ in found]
    zones = {round(share, 4) for _, share in found}
    if len(zones) > 1:
        spec.note("the widest zone between two marks counts for all metrics: the others shrink later", "metrics")
    made["behavior"] = _behavior(spec, tolerance, max(zones, default=tolerance))
    if spec.take("dryRun", bool):
        made["mode"] = "Shadow"
    if not spec.take("tolerateZero", bool):
        spec.note("a value of zero counts", "tolerateZero")
    for name in ("readinessDelay", "readinessDelaySeconds"):
        spec.lose(name, "pods count as in HPA")
    if spec.take("replicaScalingAbsoluteModulo", int, 1) != 1:
        spec.note("has no equivalent", "replicaScalingAbsoluteModulo")
    spec.close()
    lose_annotations(spec.ledger, metadata, WPA_SETTINGS)
    return made


def _marked(metric: SourceFields, average: bool, tolerance: float) -> tuple[dict[str, Any], float] | None:
    """The metric, and which share below its target is still quiet."""
    external = metric.take("type", str) == "External"
    marks = metric.part("external" if external else "resource")
    high, low = marks.take("highWatermark", object), marks.take("lowWatermark", object)
    high, low = high if high is not None else low, low if low is not None else high
    apart = parse_quantity(str(low)) < parse_quantity(str(high))
    ends = "until the high mark is met, not this one" if apart else "to the next whole number above, not below"
    marks.note(f"below it replicas fall {ends}", "lowWatermark")
    quiet = 1 - parse_quantity(str(low)) * (1 - tolerance) / parse_quantity(str(high))
    name = marks.take("metricName" if external else "name", str)
    if not external:
        marks.lose("metricSelector", "all pods of the workload are asked")
    selector = marks.take("metricSelector", dict)
    field = "averageValue" if average else "value"
    target = {"type": "AverageValue" if average else "Value", field: high}
    if external:
        inner = {"metric": without_none(name=name, selector=selector), "target": target}
        return {"type": "External", "external": inner}, quiet
    if not average:
        metric.note("a mark for the sum over all pods has no equivalent; use algorithm: average", signal=True)
        return None
    return {"type": "Resource", "resource": {"name": name, "target": target}}, quiet


def _behavior(spec: SourceFields, tolerance: float, zone: float) -> dict[str, Any]:
    up_s = spec.take("upscaleForbiddenWindowSeconds", int, DEFAULT_UP_REST_S)
    down_s = spec.take("downscaleForbiddenWindowSeconds", int, DEFAULT_DOWN_REST_S) or 0
    delay_s = within_window(spec, "downscaleDelayBelowWatermarkSeconds")
    spec.note("a rest counts from the last change of the same direction", "upscaleForbiddenWindowSeconds")
    up = {
        "stabilizationWindowSeconds": within_window(spec, "upscaleDelayAboveWatermarkSeconds"),
        "tolerance": tolerance,
        "cooldownSeconds": up_s,
    }
    down = {
        "stabilizationWindowSeconds": max(delay_s, min(LONGEST_WINDOW_S, down_s)),
        "tolerance": zone,
        "cooldownSeconds": down_s,
    }
    up |= _step(spec, "scaleUpLimitFactor", DEFAULT_UP_PERCENT)
    down |= _step(spec, "scaleDownLimitFactor", DEFAULT_DOWN_PERCENT)
    return {"scaleUp": up, "scaleDown": down}


def _step(spec: SourceFields, name: str, default: int) -> dict[str, Any]:
    """So many percent in one step, at least one pod; none at all switches the direction off."""
    percent = parse_quantity(str(spec.take(name, object, default)))
    value = ceil(percent)
    if value != percent:
        spec.note(f"whole percents: {value}", name)
    if value == 0:
        return {"selectPolicy": "Disabled"}
    policies = [("Percent", value), ("Pods", 1)]
    return {"policies": [{"type": kind, "value": size, "periodSeconds": _STEP_S} for kind, size in policies]}
