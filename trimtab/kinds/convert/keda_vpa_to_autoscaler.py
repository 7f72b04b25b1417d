"""KEDA's ScaledObject and the VerticalPodAutoscaler as the spec of an Autoscaler."""

from __future__ import annotations

from typing import Any

from trimtab.errors import InvalidInput
from trimtab.kinds.annotations import KEDA_PAUSED, KEDA_PAUSED_REPLICAS, PAUSED, PIN, VPA_INTEGER_CPU
from trimtab.kinds.convert.source_fields import SourceFields, annotate, unannotate

_OPERATOR = "is the operator's setting, not the object's"
_POLL_S = 30
_APPLY = {"Auto": "InPlaceOrRecreate", "InPlaceOrRecreate": "InPlaceOrRecreate", "Recreate": "Recreate", "Off": "Never"}


def from_vpa(spec: SourceFields, metadata: dict[str, Any]) -> dict[str, Any]:
    """Vertical only: the number of pods stays with whoever sets it now."""
    update = spec.part("updatePolicy")
    mode = update.take("updateMode", str, "Auto") or "Auto"
    if mode not in _APPLY:
        update.note(f"{mode} has no equivalent; pods are resized in place instead", "updateMode")
    update.lose("minReplicas", "disruption budgets are respected instead")
    update.close()
    policy = spec.part("resourcePolicy")
    policies = _whole_cores([_container_policy(container) for container in policy.items("containerPolicies")], metadata)
    policy.close()
    vertical: dict[str, Any] = {"apply": _APPLY.get(mode, "InPlace")}
    if policies:
        vertical["resourcePolicy"] = {"containerPolicies": policies}
    made = {"scaleTargetRef": spec.take("targetRef", dict) or {}, "vertical": vertical}
    spec.lose("recommenders", "the recommendation is computed here")
    spec.close()
    return made


def _container_policy(policy: SourceFields) -> dict[str, Any]:
    names = ("containerName", "mode", "minAllowed", "maxAllowed", "controlledResources", "controlledValues")
    taken = {name: policy.take(name, object) for name in names}
    policy.close()
    return {name: value for name, value in taken.items() if value is not None}


def _whole_cores(policies: list[dict[str, Any]], metadata: dict[str, Any]) -> list[dict[str, Any]]:
    """VPA says it in an annotation for each container."""
    named = {str(policy.get("containerName", "*")): policy for policy in policies}
    before, after = VPA_INTEGER_CPU
    for key in list(metadata.get("annotations", {})):
        container = key.removeprefix(before).removesuffix(after)
        if key == f"{before}{container}{after}" and unannotate(metadata, key) == "true":
            named.setdefault(container, {"containerName": container})["wholeCores"] = True
    return list(named.values())


def from_keda(spec: SourceFields, metadata: dict[str, Any]) -> dict[str, Any]:
    """Triggers become metrics and schedules, the fallback a floor, the pause annotations ours."""
    target = spec.part("scaleTargetRef")
    reference = {
        "apiVersion": target.take("apiVersion", str, "apps/v1"),
        "kind": target.take("kind", str, "Deployment"),
        "name": target.take("name", str),
    }
    target.close()
    made: dict[str, Any] = {"scaleTargetRef": {name: value for name, value in reference.items() if value is not None}}
    _triggers(spec, made)
    _keda_bounds(spec, made)
    _fallback(spec, made)
    _advanced(spec, made)
    spec.lose("cooldownPeriod", "only delays KEDA's step to zero; use behavior.scaleDown")
    spec.close()
    _keda_pauses(metadata)
    return made


def _triggers(spec: SourceFields, made: dict[str, Any]) -> None:
    metrics: list[dict[str, Any]] = []
    schedules: list[dict[str, Any]] = []
    for index, trigger in enumerate(spec.items("triggers")):
        kind, settings = trigger.take("type", str, ""), trigger.part("metadata")
        metric_type = trigger.take("metricType", str) or settings.take("type", str)
        name = trigger.take("name", str)
        if kind in ("cpu", "memory"):
            metrics.append(_resource(kind, settings, metric_type))
        elif kind == "prometheus":
            metrics.append(_prometheus(settings, metric_type, name))
        elif kind == "cron":
            schedules.append(_cron(settings, name or f"cron-{index}"))
        else:
            trigger.note(f"trigger type {kind!r} has no equivalent; query it through Prometheus")
            settings.rest()
        settings.close()
        trigger.close()
    made.update({name: found for name, found in (("metrics", metrics), ("schedules", schedules)) if found})
    if not metrics:
        spec.note("no metric is left: CPU at 80 % of the request is used, as in Kubernetes", "triggers")


def _resource(name: str, settings: SourceFields, metric_type: str | None) -> dict[str, Any]:
    value = str(settings.take("value", object) or "")
    if metric_type == "AverageValue":
        target: dict[str, Any] = {"type": "AverageValue", "averageValue": value}
    elif value.isdecimal():
        target = {"type": "Utilization", "averageUtilization": int(value)}
    else:
        raise InvalidInput(settings.at("value"), value, "write a whole percentage")
    container = settings.take("containerName", str)
    if container:
        inner = {"name": name, "container": container, "target": target}
        return {"type": "ContainerResource", "containerResource": inner}
    return {"type": "Resource", "resource": {"name": name, "target": target}}


def _prometheus(settings: SourceFields, metric_type: str | None, name: str | None) -> dict[str, Any]:
    query, threshold = settings.take("query", str, ""), str(settings.take("threshold", object) or "")
    field = "value" if metric_type == "Value" else "averageValue"
    target = {"type": metric_type or "AverageValue", field: threshold}
    settings.lose("serverAddress", _OPERATOR)
    inner = {"query": query, "target": target} | ({"name": name} if name else {})
    return {"type": "Prometheus", "prometheus": inner}


def _cron(settings: SourceFields, name: str) -> dict[str, Any]:
    replicas = str(settings.take("desiredReplicas", object) or "")
    if not replicas.isdecimal():
        raise InvalidInput(settings.at("desiredReplicas"), replicas, "write a whole number")
    return {
        "name": name,
        "timezone": settings.take("timezone", str, "UTC"),
        "start": settings.take("start", str, ""),
        "end": settings.take("end", str, ""),
        "minReplicas": int(replicas),
    }


def _keda_bounds(spec: SourceFields, made: dict[str, Any]) -> None:
    least = spec.take("minReplicaCount", int, 0) or 0
    eyes = any(metric["type"] == "Prometheus" for metric in made.get("metrics", []))
    if least == 0 and not eyes:
        spec.note("zero needs a metric that has a value without pods; 1 is used", "minReplicaCount")
        least = 1
    made |= {"minReplicas": least, "maxReplicas": spec.take("maxReplicaCount", int, 100)}


def _fallback(spec: SourceFields, made: dict[str, Any]) -> None:
    fallback = spec.part("fallback")
    threshold, replicas = fallback.take("failureThreshold", int), fallback.take("replicas", int)
    how = fallback.take("behavior", str, "static")
    poll_s = spec.take("pollingInterval", int)
    if poll_s is not None:
        spec.note(_OPERATOR, "pollingInterval")
    if threshold is None or replicas is None:
        if (threshold, replicas) != (None, None):
            fallback.note("needs both failureThreshold and replicas")
        return
    failure: dict[str, Any] = {"holdSeconds": threshold * (poll_s or _POLL_S)}
    if how in ("static", "currentReplicasIfHigher"):
        failure["then"] = {"replicas": replicas} | ({"allowDecrease": True} if how == "static" else {})
    elif how != "currentReplicas":
        fallback.note(f"{how} has no equivalent; the size is held instead", "behavior")
    fallback.close()
    made["onMetricFailure"] = failure


def _advanced(spec: SourceFields, made: dict[str, Any]) -> None:
    advanced = spec.part("advanced")
    config = advanced.part("horizontalPodAutoscalerConfig")
    behavior = config.take("behavior", dict)
    if behavior is not None:
        made["behavior"] = behavior
    config.lose("name", "no HPA object is made")
    config.close()
    advanced.lose("restoreToOriginalReplicaCount", "deleting the object leaves the workload as it is")
    advanced.close()


def _keda_pauses(metadata: dict[str, Any]) -> None:
    replicas = unannotate(metadata, KEDA_PAUSED_REPLICAS)
    paused = unannotate(metadata, KEDA_PAUSED)
    if replicas is not None:
        annotate(metadata, PIN, replicas)
    elif paused == "true":
        annotate(metadata, PAUSED, "true")
