"""ScaledObject (keda.sh/v1alpha1): linted, replayed and converted; KEDA serves it."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from trimtab.errors import InvalidInput
from trimtab.kinds.annotations import (
    KEDA_PAUSED,
    KEDA_PAUSED_IN,
    KEDA_PAUSED_OUT,
    KEDA_PAUSED_REPLICAS,
    KEDA_SETTINGS,
    PAUSED,
    PIN,
)
from trimtab.kinds.foreign import ForeignKind, Manifest, Translation, annotate, unannotate
from trimtab.kinds.keda_triggers import TriggerSetting, triggers
from trimtab.kinds.ledger import Ledger, loses_signal
from trimtab.kinds.schedule import schedules_alone
from trimtab.kinds.source_fields import SourceFields

_NO = frozenset({"0", "f", "F", "false", "False", "FALSE"})  # everything else in a pause means yes to KEDA
_POLL_S, _COOLDOWN_S, _WINDOW_S = 30, 300, 300
_PLACES = {
    "spec.minReplicas": "spec.minReplicaCount",
    "spec.maxReplicas": "spec.maxReplicaCount",
    "spec.metrics": "spec.triggers",
    "spec.schedules": "spec.triggers",
    "spec.onMetricFailure": "spec.fallback",
    "spec.behavior": "spec.advanced.horizontalPodAutoscalerConfig.behavior",
    f'metadata.annotations["{PIN}"]': f'metadata.annotations["{KEDA_PAUSED_REPLICAS}"]',
}


class ScaledObject(ForeignKind):
    """KEDA's object without KEDA (`translation`), or with KEDA still fetching its metrics (`beside_keda`)."""

    api_version: Literal["keda.sh/v1alpha1"]
    kind: Literal["ScaledObject"]
    spec: dict[str, Any]

    crd: ClassVar[bool] = False
    served_elsewhere: ClassVar[bool] = True

    def as_autoscaler(self, metadata: Manifest, ledger: Ledger) -> Manifest:
        return self._spec(metadata, ledger, None)

    @property
    def beside_keda(self) -> Translation:
        served = _served_names(self.status)
        return self.translated(lambda metadata, ledger: self._spec(metadata, ledger, served))

    def _spec(self, metadata: Manifest, ledger: Ledger, served: tuple[str, ...] | None) -> Manifest:
        """Triggers become metrics and schedules, the fallback a floor, the pause annotations ours."""
        spec = SourceFields(self.spec, "spec", ledger)
        ledger.places(_PLACES)
        made: Manifest = {"scaleTargetRef": _target(spec.part("scaleTargetRef"))}
        least = spec.take("minReplicaCount", int, 0) or 0
        several = spec.length("triggers") > 1
        setting = TriggerSetting(self.name, self.metadata.namespace, least == 0, several, served)
        advanced = spec.part("advanced")
        parts = triggers(spec, advanced.part("scalingModifiers"), setting)
        if parts.schedules and not parts.metrics and not loses_signal(ledger.lost):
            parts.metrics.append(schedules_alone())
        made.update({name: part for name, part in parts._asdict().items() if part})
        if not parts.metrics:
            spec.note("no metric is left: CPU at 80 % of the request would be used, as in Kubernetes", "triggers", True)
        _bounds(spec, made, least)
        _fallback(spec, made)
        _advanced(advanced, made)
        _directions(metadata, made)
        _cooldown(spec, made)
        spec.close()
        _pauses(metadata, served is not None)
        self.lose_annotations(metadata, KEDA_SETTINGS, "has no equivalent", ledger)
        return made


def _target(target: SourceFields) -> dict[str, Any]:
    reference = {
        "apiVersion": target.take("apiVersion", str, "apps/v1"),
        "kind": target.take("kind", str, "Deployment"),
        "name": target.take("name", str),
    }
    target.take("envSourceContainerName", str)  # where triggers read variables; none is read here
    target.close()
    return {name: value for name, value in reference.items() if value is not None}


def _bounds(spec: SourceFields, made: dict[str, Any], least: int) -> None:
    sees = any(metric["type"] in ("Prometheus", "External") for metric in made.get("metrics", []))
    if least == 0 and not sees:
        if "minReplicaCount" in spec.written:
            spec.note("zero needs a metric that has a value without pods; 1 is used", "minReplicaCount")
        least = 1
    idle = spec.take("idleReplicaCount", int)
    if idle is not None and idle != least:
        spec.note(f"an idle workload stays at minReplicas ({least}), not at {idle}", "idleReplicaCount")
    spec.lose("initialCooldownPeriod", "a new object acts at once")
    made |= {"minReplicas": least, "maxReplicas": spec.take("maxReplicaCount", int, 100)}


def _cooldown(spec: SourceFields, made: dict[str, Any]) -> None:
    """KEDA waits so long before zero; here it is the window of scaleDown that is waited for."""
    cooldown_s = spec.take("cooldownPeriod", int, _COOLDOWN_S)
    down = made.get("behavior", {}).get("scaleDown")
    window_s = down.get("stabilizationWindowSeconds", _WINDOW_S) if isinstance(down, dict) else _WINDOW_S
    if made["minReplicas"] == 0 and cooldown_s != window_s:
        why = f"zero is reached after the window of behavior.scaleDown ({window_s} s), not after {cooldown_s} s"
        spec.note(why, "cooldownPeriod")


def _fallback(spec: SourceFields, made: dict[str, Any]) -> None:
    fallback = spec.part("fallback")
    threshold, replicas = fallback.take("failureThreshold", int), fallback.take("replicas", int)
    how = fallback.take("behavior", str, "static")
    poll_s = spec.take("pollingInterval", int)
    if poll_s is not None:
        spec.note("metrics are read on every tick of the operator (--tick)", "pollingInterval")
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


def _advanced(advanced: SourceFields, made: dict[str, Any]) -> None:
    config = advanced.part("horizontalPodAutoscalerConfig")
    behavior = config.take("behavior", dict)
    if behavior is not None:
        made["behavior"] = behavior
    config.lose("name", "no HPA object is made")
    config.close()
    if advanced.take("restoreToOriginalReplicaCount", bool):
        advanced.note("deleting the object leaves the workload as it is", "restoreToOriginalReplicaCount")
    advanced.close()


def _directions(metadata: dict[str, Any], made: dict[str, Any]) -> None:
    """A pause of one direction switches that direction off."""
    for key, way in ((KEDA_PAUSED_IN, "scaleDown"), (KEDA_PAUSED_OUT, "scaleUp")):
        if _says_yes(unannotate(metadata, key)):
            behavior = made.setdefault("behavior", {})
            rules = behavior.get(way)
            behavior[way] = (rules if isinstance(rules, dict) else {}) | {"selectPolicy": "Disabled"}


def _pauses(metadata: dict[str, Any], beside: bool) -> None:
    """Beside KEDA the pause is what lets us scale, and means nothing more."""
    replicas, paused = unannotate(metadata, KEDA_PAUSED_REPLICAS), unannotate(metadata, KEDA_PAUSED)
    if beside:
        return
    if replicas is not None:
        annotate(metadata, PIN, replicas)
    elif _says_yes(paused):
        annotate(metadata, PAUSED, "true")


def _says_yes(annotation: str | None) -> bool:
    return annotation is not None and annotation not in _NO


def _served_names(status: object) -> tuple[str, ...]:
    """What KEDA calls the external metrics of an object: only the cluster knows."""
    names = status.get("externalMetricNames") if isinstance(status, dict) else None
    if not isinstance(names, list) or not names:
        fix = "KEDA writes it: kubectl get scaledobject NAME -o yaml | trimtab convert - --to autoscaler --beside-keda"
        raise InvalidInput("status.externalMetricNames", names, fix)
    return tuple(str(name) for name in names)
