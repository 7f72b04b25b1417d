"""A predictive HPA as the spec of an Autoscaler: an HPA with a forecast, which only adds."""

from __future__ import annotations

from typing import Any

from trimtab.kinds.autoscaler import LONGEST_HORIZON_S
from trimtab.kinds.convert.source_fields import SourceFields, within_window
from trimtab.kinds.hpa_v2beta1 import v2_metric
from trimtab.kinds.ledger import without_none
from trimtab.kinds.predictive_hpa import (
    DAY_S,
    DEFAULT_CPU_INIT_S,
    DEFAULT_READINESS_S,
    DEFAULT_WINDOW_S,
    DOWN,
    PERIOD_S,
    SYNC_MS,
    UP,
)
from trimtab.policy import PodRules

_PLACES = {
    "spec.behavior.scaleUp.tolerance": "spec.tolerance",
    "spec.behavior.scaleDown.tolerance": "spec.tolerance",
    "spec.behavior.scaleDown.stabilizationWindowSeconds": "spec.downscaleStabilization",
    "spec.behavior.scaleUp.policies": "spec.behavior",
    "spec.behavior.scaleDown.policies": "spec.behavior",
}


def from_phpa(spec: SourceFields, metadata: dict[str, Any]) -> dict[str, Any]:
    written = spec.take("metrics", list)
    made = without_none(
        scaleTargetRef=spec.take("scaleTargetRef", dict),
        minReplicas=spec.take("minReplicas", int),
        maxReplicas=spec.take("maxReplicas", int),
        metrics=[v2_metric(metric) for metric in written] if written else None,
        behavior=_behavior(spec),
    )
    spec.places(_PLACES)
    decision = spec.take("decisionType", str, "maximum")
    if decision != "maximum":
        spec.note(f"a forecast only adds here: {decision} could also take away", "decisionType")
    sync_ms = spec.take("syncPeriod", int, SYNC_MS) or SYNC_MS
    if sync_ms != SYNC_MS:
        spec.note("metrics are read on every tick of the operator (--tick)", "syncPeriod")
    models = spec.items("models")
    made["forecast"] = _forecast(models[0], sync_ms)
    for model in models[1:]:
        model.note("one model is asked here, the first")
    _pods(spec)
    spec.close()
    return made


def _behavior(spec: SourceFields) -> dict[str, Any]:
    """What it leaves open is written: the rates of a minute, where HPA's are of 15 s."""
    given, tolerance = spec.take("behavior", dict), spec.take("tolerance", object)
    window_s = DEFAULT_WINDOW_S
    if given is not None:
        spec.lose("downscaleStabilization", "the window of behavior.scaleDown counts")
    else:
        window_s = within_window(spec, "downscaleStabilization", DEFAULT_WINDOW_S)
    made = {}
    for way, policies in (("scaleUp", UP), ("scaleDown", DOWN)):
        usual = [{"type": kind, "value": value, "periodSeconds": PERIOD_S} for kind, value in policies]
        rules = {"policies": usual} | ((given or {}).get(way) or {}) | without_none(tolerance=tolerance)
        made[way] = {"stabilizationWindowSeconds": window_s} | rules if way == "scaleDown" else rules
    return made


def _pods(spec: SourceFields) -> None:
    """When a pod's CPU counts; both have defaults of their own."""
    rules = PodRules()
    usual = (rules.cpu_init_s, DEFAULT_CPU_INIT_S), (rules.readiness_delay_s, DEFAULT_READINESS_S)
    options = ("--cpu-initialization-period", "--initial-readiness-delay")
    names = ("cpuInitializationPeriod", "initialReadinessDelay")
    for name, option, (ours_s, default_s) in zip(names, options, usual, strict=True):
        if spec.take(name, int, default_s) != ours_s:
            spec.note(f"is the operator's setting ({option}, {ours_s:.0f} s)", name)


def _forecast(model: SourceFields, sync_ms: int) -> dict[str, Any]:
    linear, season = model.part("linear"), model.part("holtWinters")
    for name in ("type", "name"):
        model.take(name, object)
    if model.take("perSyncPeriod", int, 1) != 1:
        model.note("it is asked on every tick", "perSyncPeriod")
    model.ledger.place("spec.forecast", model.path)
    if linear.has("lookAhead"):
        ahead_ms = linear.take("lookAhead", int) or 0
        linear.lose("historySize", "the line is drawn through the load of the last minutes")
        made = {"model": "linear", "horizon": _horizon(linear, "lookAhead", ahead_ms)}
    else:
        season.take("storedSeasons", int)
        if (season.take("seasonalPeriods", int) or 0) * sync_ms != DAY_S * 1000:
            season.note("a season is a day here", "seasonalPeriods")
        season.close("is chosen here")
        made = {"model": "holtWinters", "horizon": _horizon(model, "holtWinters", sync_ms)}
    model.close("is chosen here")
    return made


def _horizon(fields: SourceFields, name: str, ahead_ms: int) -> int | str:
    if ahead_ms > LONGEST_HORIZON_S * 1000:
        fields.note("an hour is the furthest that is looked ahead", name)
        return LONGEST_HORIZON_S
    return ahead_ms // 1000 if ahead_ms % 1000 == 0 else f"{ahead_ms}ms"
