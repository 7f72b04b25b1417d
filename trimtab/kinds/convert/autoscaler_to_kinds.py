"""An Autoscaler's spec as that of an HPA, an EHPA or an Hvpa; what they cannot say is reported."""

from __future__ import annotations

from typing import Any

from trimtab.errors import InvalidInput
from trimtab.kinds.annotations import BRIDGE, EXACT, PAUSED, PIN, PIN_UNTIL, PREDICTIVE, TUNING
from trimtab.kinds.autoscaler import STARTUP
from trimtab.kinds.behavior import OUR_WORDS
from trimtab.kinds.foreign import annotate, unannotate
from trimtab.kinds.metric import DEFAULT_CPU_PERCENT, HPA_METRICS
from trimtab.kinds.schedule import schedules_alone
from trimtab.kinds.source_fields import SourceFields
from trimtab.quantity import parse_duration

_EHPA_PLACES = {"spec.crons": "spec.schedules", "spec.prediction": "spec.forecast", "spec.scaleStrategy": "spec.mode"}
_HVPA_PLACES = {
    "spec.targetRef": "spec.scaleTargetRef",
    "spec.hpa.template.spec": "spec",
    "spec.hpa": "spec.behavior",
    "spec.vpa.template.spec": "spec.vertical",
    "spec.weightBasedScalingIntervals": "spec.blend.weights.intervals",
    "spec.buckets": "spec.blend.buckets.buckets",
    "spec.baseResourcesPerReplica": "spec.blend.buckets.base",
}
_CPU_TARGET = {"type": "Utilization", "averageUtilization": DEFAULT_CPU_PERCENT}
_CPU = {"type": "Resource", "resource": {"name": "cpu", "target": _CPU_TARGET}}
_EHPA_MODELS = ("dsp", "percentile")
_NO_BEHAVIOR = "Hvpa follows HPA's rules without behavior"


def to_hpa(spec: SourceFields, metadata: dict[str, Any]) -> dict[str, Any]:
    made = _horizontal(spec)
    _without_ours(made.get("behavior", {}), spec)
    _predictive(spec.part("forecast"), metadata)
    if spec.take("mode", str, "Auto") != "Auto":
        spec.note("an HPA always acts", "mode")
    spec.close()
    return made


def to_ehpa(spec: SourceFields, metadata: dict[str, Any]) -> dict[str, Any]:
    spec.places(_EHPA_PLACES)
    alone = spec.has("schedules") and spec.holds("metrics", [schedules_alone()])
    if alone:
        spec.take("metrics", list)  # crons without metrics decide alone there
    made = _horizontal(spec)
    _without_ours(made.get("behavior", {}), spec)
    crons = [cron for schedule in spec.items("schedules") if (cron := _cron(schedule))]
    if crons:
        made["crons"] = crons
    _prediction(spec.part("forecast"), made)
    if crons and not alone:
        made.setdefault("metrics", [_CPU])  # what an Autoscaler follows without a word must be written beside crons
    _annotate_bridge(spec, metadata)
    _annotate_tuning(spec, metadata)
    mode = spec.take("mode", str, "Auto")
    if mode == "Shadow":
        made["scaleStrategy"] = "Preview"
        if PIN_UNTIL not in metadata.get("annotations", {}) and (pin := unannotate(metadata, PIN)):
            made["specificReplicas"] = int(pin)
    elif mode == "Paused":
        annotate(metadata, PAUSED, "true")
    spec.close()
    return made


def to_hvpa(spec: SourceFields, metadata: dict[str, Any]) -> dict[str, Any]:
    spec.places(_HVPA_PLACES)
    if spec.holds("behavior", {}):
        spec.note(_NO_BEHAVIOR, "behavior")
    made = _horizontal(spec)
    sides = _sides(made.pop("behavior", None) or {}, spec)
    target = made.pop("scaleTargetRef")
    sized, vertical = spec.has("vertical"), spec.part("vertical")
    policy = vertical.take("resourcePolicy", dict)
    if vertical.take("apply", str, "InPlace") != "InPlaceOrRecreate" and sized:
        vertical.note("Hvpa resizes in place where it can and else recreates", "apply")
    template = {"template": {"spec": {"resourcePolicy": policy}}} if policy else {}
    vpa = template if sized else {"deploy": False}  # an empty half would be deployed, and size pods
    if sized:
        spec.note("an Hvpa holds changes of a size below 200m and 200M back", "vertical")
    blend = _percent_blend(spec.part("blend"))
    if not blend:
        blend = _all_horizontal(made)
        if sized:
            spec.note("an Hvpa shares every change out: without weights or buckets all of it is horizontal", "vertical")
    _annotate_bridge(spec, metadata)
    spec.lose("tuning", "an Hvpa cannot be tuned")
    mode = spec.take("mode", str, "Auto")
    if mode == "Paused":
        annotate(metadata, PAUSED, "true")
    elif mode != "Auto":
        spec.note("an Hvpa always acts", "mode")
    spec.close()
    return {"targetRef": target, "hpa": {**sides, "template": {"spec": made}}, "vpa": vpa} | blend


def _horizontal(spec: SourceFields) -> dict[str, Any]:
    most = spec.take("maxReplicas", int)
    if most is None:
        raise InvalidInput(spec.at("maxReplicas"), None, "vertical alone has no equivalent here; set maxReplicas first")
    made: dict[str, Any] = {"scaleTargetRef": spec.take("scaleTargetRef", dict), "maxReplicas": most}
    least = spec.take("minReplicas", int)
    if least is not None:
        made["minReplicas"] = least
    written = spec.items("metrics")
    metrics = [metric for item in written if (metric := _metric(item))]
    if metrics:
        made["metrics"] = metrics
    elif written:
        why = "none is left, and without one the workload is scaled by CPU at 80 % of its requests"
        spec.note(why, "metrics", signal=True)
    behavior = spec.take("behavior", dict)
    if behavior is not None:
        made["behavior"] = behavior
    return made


_OUR_METRICS = {
    "Prometheus": "a query needs a metrics adapter and an External metric there",
    "Backlog": "an HPA can only follow the length of a queue, which depends on how it is served",
}


def _metric(metric: SourceFields) -> dict[str, Any] | None:
    made = metric.rest()
    kind = str(made.get("type"))
    if kind in HPA_METRICS:
        return made
    metric.note(_OUR_METRICS.get(kind, "has no equivalent"), signal=True)
    return None


def _without_ours(behavior: dict[str, Any], spec: SourceFields) -> None:
    for way, rules in behavior.items():
        for word in OUR_WORDS:
            if rules.pop(word, None) is not None:
                spec.note("has no equivalent", f"behavior.{way}.{word}")


def _sides(behavior: dict[str, Any], spec: SourceFields) -> dict[str, Any]:
    """A cooldown is a rest and a direction that is off stays off; an Hvpa follows HPA's rules without behavior."""
    sides: dict[str, Any] = {}
    for way, rules in behavior.items():
        if not rules:
            spec.note(_NO_BEHAVIOR, f"behavior.{way}")
        if (rest := rules.pop("cooldownSeconds", None)) is not None:
            sides[way] = {"stabilizationDuration": f"{rest}s"}
        if rules.get("selectPolicy") == "Disabled" and rules.pop("selectPolicy"):
            sides.setdefault(way, {})["updatePolicy"] = {"updateMode": "Off"}
        for word in rules:
            spec.note(_NO_BEHAVIOR, f"behavior.{way}.{word}")
    return sides


def _cron(schedule: SourceFields) -> dict[str, Any] | None:
    floor = schedule.take("minReplicas", int)
    schedule.lose("maxReplicas", "a cron can only raise")
    if floor is None:
        schedule.note("a cron can only raise")
        schedule.rest()
        return None
    return schedule.rest() | {"targetReplicas": floor}


def _predictive(forecast: SourceFields, metadata: dict[str, Any]) -> None:
    model, horizon = forecast.take("model", str), forecast.take("horizon", object, STARTUP)
    exact = forecast.take("exact", bool)
    if model == "linear" and horizon == STARTUP:
        annotate(metadata, PREDICTIVE, "true")
        if exact:
            annotate(metadata, EXACT, "true")
    elif model:
        forecast.note("only a line over the start-up time can be asked of an HPA", "model")


def _prediction(forecast: SourceFields, made: dict[str, Any]) -> None:
    model, horizon = forecast.take("model", str), forecast.take("horizon", object, STARTUP)
    exact = forecast.take("exact", bool)
    if not model:
        return
    if model not in _EHPA_MODELS or horizon == STARTUP:
        forecast.note("an EHPA predicts by dsp or percentile over a window of seconds", "model")
        return
    if exact:
        forecast.note("an EHPA's prediction is ours, not that of the program it comes from", "exact")
    window_s = max(1, round(parse_duration(str(horizon))))
    if window_s != parse_duration(str(horizon)):
        forecast.note(f"is rounded to {window_s} s", "horizon")
    made["prediction"] = {"predictionWindowSeconds": window_s, "predictionAlgorithm": {"algorithmType": model}}


def _percent_blend(blend: SourceFields) -> dict[str, Any]:
    intervals = blend.part("weights").items("intervals")
    if intervals:
        return {"weightBasedScalingIntervals": [_percent(interval) for interval in intervals]}
    buckets = blend.part("buckets")
    said = buckets.rest()
    if "base" in said:
        said["baseResourcesPerReplica"] = said.pop("base")
    blend.lose("capacity", "an Hvpa blends by weights or buckets")
    return said


def _all_horizontal(made: dict[str, Any]) -> dict[str, Any]:
    """An Hvpa needs something to blend by; one stage without a vertical share leaves sizes alone."""
    stage = {"vpaWeight": 0, "startReplicaCount": max(1, made.get("minReplicas", 1))}
    return {"weightBasedScalingIntervals": [stage | {"lastReplicaCount": made["maxReplicas"]}]}


def _percent(interval: SourceFields) -> dict[str, Any]:
    made = interval.rest()
    percent = made["vpaWeight"] * 100
    made["vpaWeight"] = round(percent)
    if abs(percent - made["vpaWeight"]) > 1e-9:
        interval.note(f"is rounded to {made['vpaWeight']} %", "vpaWeight")
    return made


def _annotate_bridge(spec: SourceFields, metadata: dict[str, Any]) -> None:
    """As an annotation, which cannot say where the bridge begins."""
    bridged, bridge = spec.has("bridge"), spec.part("bridge")
    if bridged:
        annotate(metadata, BRIDGE, bridge.take("maxFactor", str, "1.5") or "1.5")
    bridge.close("is 0.75 there, unless tuning moves it")


def _annotate_tuning(spec: SourceFields, metadata: dict[str, Any]) -> None:
    """As an annotation, which cannot say how far tuning may go."""
    tuning = spec.part("tuning")
    if mode := tuning.take("mode", str):
        annotate(metadata, TUNING, mode)
    tuning.close("is left to tuning itself there")
