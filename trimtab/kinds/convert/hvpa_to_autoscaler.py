"""An Hvpa as the spec of an Autoscaler: both halves, their blend, and of its gates what behavior can say."""

from __future__ import annotations

from typing import Any

from trimtab.kinds.annotations import EXACT
from trimtab.kinds.convert.annotated_parts import parts_of_annotations
from trimtab.kinds.convert.source_fields import SourceFields
from trimtab.kinds.foreign import unannotate
from trimtab.kinds.hpa_v2beta1 import v2_metric
from trimtab.kinds.ledger import Lost, without_none
from trimtab.quantity import parse_duration

_WAYS = ("scaleUp", "scaleDown")
_REST = "sizes no longer rest after a change"
_SMALL = "small changes of a size are no longer held back"


def from_hvpa(spec: SourceFields, metadata: dict[str, Any]) -> dict[str, Any]:
    """Rests of replicas are cooldowns, directions that are off stay off; what holds sizes back is named."""
    nested = spec.has("hpa") or spec.has("vpa")
    _places(spec, nested)
    has_vpa = spec.has("vpa") or not nested
    hpa, vpa = spec.part("hpa"), spec.part("vpa")
    templates = hpa.part("template"), vpa.part("template")
    horizontal = templates[0].part("spec") if nested else spec.part("hpaTemplate")
    vertical = templates[1].part("spec") if nested else spec.part("vpaTemplate")
    made = without_none(
        scaleTargetRef=spec.take("targetRef", dict),
        minReplicas=horizontal.take("minReplicas", int),
        maxReplicas=horizontal.take("maxReplicas", int),
        metrics=[v2_metric(metric.rest()) for metric in horizontal.items("metrics")] or None,
    )
    made |= parts_of_annotations(metadata)
    if hpa.take("deploy", bool) is False and "maxReplicas" in made:
        hpa.note("the metrics of an Autoscaler always count", "deploy", signal=True)
    made["vertical"] = _vertical(vertical, deployed=bool(vpa.take("deploy", bool, has_vpa)))
    _exact(spec, metadata)
    _blend(spec, made, 100.0 if nested else 1.0)
    _gates(spec, hpa, vpa, made)
    for part in (horizontal, vertical, *templates):
        part.close("no object is made from a template")
    for part in (hpa, vpa, spec):
        part.lose("selector", "nothing is selected by it")
        part.lose("replicas", "the number of replicas is decided")
        part.close()
    return made


def _places(spec: SourceFields, nested: bool) -> None:
    horizontal, vertical = ("hpa.template.spec", "vpa.template.spec") if nested else ("hpaTemplate", "vpaTemplate")
    spec.places({f"spec.{name}": f"spec.{horizontal}.{name}" for name in ("minReplicas", "maxReplicas", "metrics")})
    blended = "buckets" if spec.has("buckets") else "weightBasedScalingIntervals"
    spec.places(
        {
            "spec.scaleTargetRef": "spec.targetRef",
            "spec.vertical.resourcePolicy": f"spec.{vertical}.resourcePolicy",
            "spec.vertical": "spec.vpa" if nested else "spec.vpaTemplate",
            "spec.blend": f"spec.{blended}",
            "spec.blend.weights.intervals": "spec.weightBasedScalingIntervals",
            "spec.blend.buckets.buckets": "spec.buckets",
            "spec.blend.buckets.base": "spec.baseResourcesPerReplica",
        }
    )
    for way in _WAYS:
        rest = f"spec.hpa.{way}.stabilizationDuration" if nested else f"spec.{way}StabilizationWindow"
        mode = f"spec.hpa.{way}.updatePolicy.updateMode"
        spec.places({f"spec.behavior.{way}.cooldownSeconds": rest, f"spec.behavior.{way}.selectPolicy": mode})


def _vertical(template: SourceFields, deployed: bool) -> dict[str, Any]:
    policy = template.take("resourcePolicy", dict) or {}
    for container in policy.get("containerPolicies", []):
        if "MinAllowed" in container:
            container["minAllowed"] = container.pop("MinAllowed")
    if not deployed:
        return {"apply": "Never", "resourcePolicy": {"containerPolicies": [{"containerName": "*", "mode": "Off"}]}}
    return {"apply": "InPlaceOrRecreate"} | ({"resourcePolicy": policy} if policy else {})


def _exact(spec: SourceFields, metadata: dict[str, Any]) -> None:
    """The released program differs in its weights alone."""
    if unannotate(metadata, EXACT) == "true" and spec.has("weightBasedScalingIntervals"):
        why = "an Autoscaler follows the document where its program differs"
        spec.ledger.lost.append(Lost(f'metadata.annotations["{EXACT}"]', why))


def _blend(spec: SourceFields, made: dict[str, Any], whole: float) -> None:
    buckets, intervals = spec.take("buckets", list), spec.take("weightBasedScalingIntervals", list)
    said = {
        "base": spec.take("baseResourcesPerReplica", dict),
        "sizing": spec.take("sizing", str),
        "overlapPercent": spec.take("overlapPercent", object),
        "growPastLast": spec.take("growPastLast", bool),
    }
    if buckets:
        made["blend"] = {"buckets": {"buckets": buckets} | without_none(**said)}
        _bounds_of(buckets, spec, made)
    elif intervals and "maxReplicas" in made:
        stages = [interval | {"vpaWeight": interval["vpaWeight"] / whole} for interval in intervals]
        made["blend"] = {"weights": {"intervals": stages}}
    elif intervals:
        why = "nothing here asks for replicas, so nothing is weighed: every change of a size is made in full"
        spec.note(why, "weightBasedScalingIntervals")
        spec.places({"spec.maxReplicas": "spec"})


def _bounds_of(buckets: list[dict[str, Any]], spec: SourceFields, made: dict[str, Any]) -> None:
    """Where no HPA bounds the replicas, the buckets do; but an Autoscaler that has bounds always follows a metric."""
    if "maxReplicas" in made:
        return
    made |= {"minReplicas": buckets[0]["replicas"]["min"], "maxReplicas": buckets[-1]["replicas"]["max"]}
    why = "no metric moves these replicas, but those of an Autoscaler without one follow CPU at 80 % of its requests"
    spec.note(why, "buckets", signal=True)


def _gates(spec: SourceFields, hpa: SourceFields, vpa: SourceFields, made: dict[str, Any]) -> None:
    _replica_gates(spec, hpa, made)
    sides = [vpa.part(way) for way in _WAYS]
    modes = [_mode(side) for side in sides]
    if modes == ["Off", "Off"]:
        made["vertical"]["apply"] = "Never"
    for side, mode in zip(sides, modes, strict=True):
        if mode == "Off" and modes != ["Off", "Off"]:
            side.note("an Autoscaler sizes in both directions", "updatePolicy.updateMode")
        elif mode == "MaintenanceWindow":
            side.note("sizes change at any time of the day", "updatePolicy.updateMode")
        side.lose("stabilizationDuration", _REST)
        side.lose("minChange", _SMALL)
        side.close()
    for name in ("minCpuChange", "minMemChange"):
        spec.lose(name, _SMALL)
    if not ("minCpuChange" in spec.written or any("minChange" in side.written for side in sides)):
        spec.note("changes below 200m and 200M are no longer held back", "minCpuChange")
    spec.take("maintenanceTimeWindow", dict)  # means nothing but to the modes, which are named


def _replica_gates(spec: SourceFields, hpa: SourceFields, made: dict[str, Any]) -> None:
    behavior = {way: _flat_rest(spec, way) or _replica_rules(hpa.part(way)) for way in _WAYS}
    behavior = {way: rules for way, rules in behavior.items() if rules}
    if behavior and "maxReplicas" in made:
        made["behavior"] = behavior
    elif behavior:
        for way in behavior:
            spec.note("nothing moves replicas here", f"hpa.{way}" if hpa.written else f"{way}StabilizationWindow")


def _flat_rest(spec: SourceFields, way: str) -> dict[str, Any]:
    """Document 001's one window for both axes."""
    name = f"{way}StabilizationWindow"
    if (rest := spec.take(name, str)) is None:
        return {}
    spec.note(_REST, name)
    return {"cooldownSeconds": round(parse_duration(rest))}


def _replica_rules(side: SourceFields) -> dict[str, Any]:
    rest, mode = side.take("stabilizationDuration", str), _mode(side)
    if mode == "MaintenanceWindow":
        side.note("replicas change at any time of the day", "updatePolicy.updateMode")
    side.lose("minChange", "replicas have no smallest change")
    side.close()
    rules: dict[str, Any] = {"cooldownSeconds": round(parse_duration(rest))} if rest else {}
    return rules | ({"selectPolicy": "Disabled"} if mode == "Off" else {})


def _mode(side: SourceFields) -> str:
    policy = side.part("updatePolicy")
    return policy.take("updateMode", str, "Auto") or "Auto"
