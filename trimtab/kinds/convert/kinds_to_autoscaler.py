"""HPA, EHPA, Hvpa and custom-hpa values as the spec of an Autoscaler."""

from __future__ import annotations

from typing import Any

from trimtab.kinds.annotations import EXACT, PIN, PREDICTIVE
from trimtab.kinds.convert.source_fields import SourceFields, annotate, unannotate

_NO_GATES = "has no equivalent: an Autoscaler settles by behavior"


def from_hpa(spec: SourceFields, metadata: dict[str, Any]) -> dict[str, Any]:
    """The same spec; document 003's annotation becomes a forecast."""
    made = _without_none(
        scaleTargetRef=spec.take("scaleTargetRef", dict),
        minReplicas=spec.take("minReplicas", int),
        maxReplicas=spec.take("maxReplicas", int),
        metrics=spec.take("metrics", list),
        behavior=spec.take("behavior", dict),
    )
    percent = spec.take("targetCPUUtilizationPercentage", int)
    if percent is not None:
        made["metrics"] = [_cpu({"type": "Utilization", "averageUtilization": percent})]
    if unannotate(metadata, PREDICTIVE) == "true":
        made["forecast"] = {"model": "linear"}
    return made


def from_ehpa(spec: SourceFields, metadata: dict[str, Any]) -> dict[str, Any]:
    """Crons are schedules, prediction is a forecast, Preview is Shadow."""
    made = from_hpa(spec, metadata)
    crons = [_schedule(cron, index) for index, cron in enumerate(spec.items("crons"))]
    if crons:
        made["schedules"] = crons
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
    made = _without_none(
        name=cron.take("name", str) or f"cron-{index}",
        timezone=cron.take("timezone", str),
        start=cron.take("start", str),
        end=cron.take("end", str),
        minReplicas=cron.take("targetReplicas", int),
    )
    cron.close()
    return made


def from_hvpa(spec: SourceFields, metadata: dict[str, Any]) -> dict[str, Any]:
    """Both halves and their blend; what gates an Hvpa has no place in an Autoscaler."""
    nested = spec.has("hpa") or spec.has("vpa")
    has_vpa = spec.has("vpa") or not nested
    hpa, vpa = spec.part("hpa"), spec.part("vpa")
    templates = hpa.part("template"), vpa.part("template")
    horizontal = templates[0].part("spec") if nested else spec.part("hpaTemplate")
    vertical = templates[1].part("spec") if nested else spec.part("vpaTemplate")
    made = _without_none(
        scaleTargetRef=spec.take("targetRef", dict),
        minReplicas=horizontal.take("minReplicas", int),
        maxReplicas=horizontal.take("maxReplicas", int),
        metrics=[_metric(metric) for metric in horizontal.items("metrics")] or None,
    )
    if hpa.take("deploy", bool) is False:
        hpa.note("the metrics of an Autoscaler always count", "deploy")
    made["vertical"] = _vertical(vertical, deployed=bool(vpa.take("deploy", bool, has_vpa)))
    _blend(spec, metadata, made, 100.0 if nested else 1.0)
    for part in (horizontal, vertical, *templates):
        part.close("no object is made from a template")
    for part in (hpa, vpa, spec):
        part.lose("selector", "nothing is selected by it")
        part.lose("replicas", "the number of replicas is decided")
        part.close(_NO_GATES)
    spec.note("changes below 200m and 200M are no longer held back", "minCpuChange")
    return made


def _metric(metric: SourceFields) -> dict[str, Any]:
    """v2beta1's two fields are a target in v2."""
    made = metric.rest()
    for member in ("resource", "containerResource"):
        inner = made.get(member, {})
        if (percent := inner.pop("targetAverageUtilization", None)) is not None:
            inner["target"] = {"type": "Utilization", "averageUtilization": percent}
        if (value := inner.pop("targetAverageValue", None)) is not None:
            inner["target"] = {"type": "AverageValue", "averageValue": value}
    return made


def _vertical(template: SourceFields, deployed: bool) -> dict[str, Any]:
    policy = template.take("resourcePolicy", dict) or {}
    for container in policy.get("containerPolicies", []):
        if "MinAllowed" in container:
            container["minAllowed"] = container.pop("MinAllowed")
    if not deployed:
        return {"apply": "Never", "resourcePolicy": {"containerPolicies": [{"containerName": "*", "mode": "Off"}]}}
    return {"apply": "InPlaceOrRecreate"} | ({"resourcePolicy": policy} if policy else {})


def _blend(spec: SourceFields, metadata: dict[str, Any], made: dict[str, Any], whole: float) -> None:
    buckets = spec.take("buckets", list)
    if unannotate(metadata, EXACT) == "true":
        spec.note("an Autoscaler follows the document where its program differs", EXACT)
    intervals = spec.take("weightBasedScalingIntervals", list)
    base = spec.take("baseResourcesPerReplica", dict)
    if buckets:
        made["blend"] = {"buckets": {"buckets": buckets} | ({"base": base} if base else {})}
    elif intervals:
        stages = [interval | {"vpaWeight": interval["vpaWeight"] / whole} for interval in intervals]
        made["blend"] = {"weights": {"intervals": stages}}
    if "blend" in made and "maxReplicas" not in made:
        last = buckets[-1]["replicas"]["max"] if buckets else 1
        made["maxReplicas"] = last


def from_custom(spec: SourceFields, metadata: dict[str, Any]) -> dict[str, Any]:
    """Document 002's program with HPA's rules around it; its own rhythm is the operator's."""
    target, prometheus, behavior = spec.part("target"), spec.part("prometheus"), spec.part("behavior")
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
    return {
        "stabilizationWindowSeconds": 0,
        "tolerance": 0,
        "cooldownSeconds": round(15 if cooldown is None else float(str(cooldown))),
        "minFactor": 0.1 if least is None else least,
        "maxFactor": 1.0 if most is None else most,
    }


def _cpu(target: dict[str, Any]) -> dict[str, Any]:
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def _without_none(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
