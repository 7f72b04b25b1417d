"""Watermarks and predictive HPAs as the spec of an Autoscaler."""

from __future__ import annotations

from math import ceil
from typing import Any

from trimtab.kinds.convert.source_fields import SourceFields, without_none
from trimtab.kinds.hpa_v2beta1 import v2_metric
from trimtab.kinds.predictive_hpa import DAY_S, SYNC_MS
from trimtab.kinds.watermark_pod_autoscaler import (
    DEFAULT_DOWN_PERCENT,
    DEFAULT_DOWN_REST_S,
    DEFAULT_TOLERANCE,
    DEFAULT_UP_PERCENT,
    DEFAULT_UP_REST_S,
)
from trimtab.quantity import parse_quantity

_STEP_S = 15  # both decide every 15 s

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
    zone = max((share for _, share in found), default=tolerance)
    made["behavior"] = _wpa_behavior(spec, tolerance, zone)
    if spec.take("dryRun", bool):
        made["mode"] = "Shadow"
    if not spec.take("tolerateZero", bool):
        spec.note("a value of zero counts", "tolerateZero")
    for name in ("readinessDelay", "readinessDelaySeconds"):
        spec.lose(name, "pods count as in HPA")
    if spec.take("replicaScalingAbsoluteModulo", int, 1) != 1:
        spec.note("has no equivalent", "replicaScalingAbsoluteModulo")
    spec.close()
    return made


def _marked(metric: SourceFields, average: bool, tolerance: float) -> tuple[dict[str, Any], float] | None:
    """The metric, and which share below its target is still quiet."""
    external = metric.take("type", str) == "External"
    marks = metric.part("external" if external else "resource")
    high, low = marks.take("highWatermark", object), marks.take("lowWatermark", object)
    high, low = high if high is not None else low, low if low is not None else high
    if parse_quantity(str(low)) < parse_quantity(str(high)):
        marks.note("below it replicas fall until the high mark is met, not this one", "lowWatermark")
    quiet = 1 - parse_quantity(str(low)) * (1 - tolerance) / parse_quantity(str(high))
    name = marks.take("metricName" if external else "name", str)
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


def _wpa_behavior(spec: SourceFields, tolerance: float, zone: float) -> dict[str, Any]:
    up_s = spec.take("upscaleForbiddenWindowSeconds", int, DEFAULT_UP_REST_S)
    down_s = spec.take("downscaleForbiddenWindowSeconds", int, DEFAULT_DOWN_REST_S) or 0
    delay_s = spec.take("downscaleDelayBelowWatermarkSeconds", int, 0) or 0
    spec.note("a rest counts from the last change of the same direction", "upscaleForbiddenWindowSeconds")
    up = {
        "stabilizationWindowSeconds": spec.take("upscaleDelayAboveWatermarkSeconds", int, 0),
        "tolerance": tolerance,
        "cooldownSeconds": up_s,
    }
    down = {
        "stabilizationWindowSeconds": min(3600, max(delay_s, down_s)),
        "tolerance": round(zone, 4),
        "cooldownSeconds": down_s,
    }
    up |= _step(spec.take("scaleUpLimitFactor", object, DEFAULT_UP_PERCENT))
    down |= _step(spec.take("scaleDownLimitFactor", object, DEFAULT_DOWN_PERCENT))
    return {"scaleUp": up, "scaleDown": down}


def _step(percent: object) -> dict[str, Any]:
    """So many percent in one step, at least one pod; none at all switches the direction off."""
    value = ceil(parse_quantity(str(percent)))
    if value == 0:
        return {"selectPolicy": "Disabled"}
    policies = [("Percent", value), ("Pods", 1)]
    return {"policies": [{"type": kind, "value": size, "periodSeconds": _STEP_S} for kind, size in policies]}


def from_phpa(spec: SourceFields, metadata: dict[str, Any]) -> dict[str, Any]:
    """An HPA with a forecast, which only adds."""
    written = spec.take("metrics", list)
    made = without_none(
        scaleTargetRef=spec.take("scaleTargetRef", dict),
        minReplicas=spec.take("minReplicas", int),
        maxReplicas=spec.take("maxReplicas", int),
        metrics=[v2_metric(metric) for metric in written] if written else None,
        behavior=spec.take("behavior", dict),
    )
    spec.places(
        {"spec.behavior.scaleUp.tolerance": "spec.tolerance", "spec.behavior.scaleDown.tolerance": "spec.tolerance"}
    )
    spec.places({"spec.behavior.scaleDown.stabilizationWindowSeconds": "spec.downscaleStabilization"})
    _phpa_behavior(spec, made)
    decision = spec.take("decisionType", str, "maximum")
    if decision != "maximum":
        spec.note(f"a forecast only adds here: {decision} could also take away", "decisionType")
    sync_s = (spec.take("syncPeriod", int, SYNC_MS) or SYNC_MS) / 1000
    models = spec.items("models")
    made["forecast"] = _forecast(models[0], sync_s)
    spec.ledger.place("spec.forecast", models[0].path)
    for model in models[1:]:
        model.note("one model is asked here, the first")
    for name in ("cpuInitializationPeriod", "initialReadinessDelay"):
        spec.lose(name, "is the operator's setting, not the object's")
    spec.close()
    return made


def _phpa_behavior(spec: SourceFields, made: dict[str, Any]) -> None:
    window_s, tolerance = spec.take("downscaleStabilization", int), spec.take("tolerance", object)
    for way in ("scaleUp", "scaleDown"):
        rules = without_none(tolerance=tolerance)
        if way == "scaleDown" and "behavior" not in spec.written:
            rules |= without_none(stabilizationWindowSeconds=window_s)
        if rules:
            behavior = made.setdefault("behavior", {})
            behavior[way] = (behavior.get(way) or {}) | rules


def _forecast(model: SourceFields, sync_s: float) -> dict[str, Any]:
    linear, season = model.part("linear"), model.part("holtWinters")
    for name in ("type", "name", "calculationTimeout", "perSyncPeriod"):
        model.take(name, object)
    if linear.has("lookAhead"):
        ahead_s = max(1, round((linear.take("lookAhead", int) or 0) / 1000))
        linear.lose("historySize", "the line is drawn through the load of the last minutes")
        model.close("is chosen here")
        return {"model": "linear", "horizon": ahead_s}
    season.take("storedSeasons", int)
    if (season.take("seasonalPeriods", int) or 0) * sync_s != DAY_S:
        season.note("a season is a day here", "seasonalPeriods")
    season.close("is chosen here")
    model.close("is chosen here")
    return {"model": "holtWinters", "horizon": "startup"}
