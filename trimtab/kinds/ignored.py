"""Fields that upstream has and that mean nothing here: accepted, so that old manifests apply, answered with a warning.

Paths may have `[]` for every item of a list. What is not in this table and not in a kind is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from trimtab.kinds.analytics import Analytics
from trimtab.kinds.annotations import (
    BRIDGE,
    CRANE_QUERY,
    EXACT,
    ORIGINAL_FLOOR,
    OURS,
    PAUSED,
    PAUSED_UNTIL,
    PIN,
    PIN_UNTIL,
    RAISED_FLOOR,
    RAISED_FLOOR_UNTIL,
    TUNING,
)
from trimtab.kinds.config_keys import ignored
from trimtab.kinds.effective_hpa import EffectiveHpa
from trimtab.kinds.hpa import AnyHpa
from trimtab.kinds.meta import Kind
from trimtab.kinds.predictive_hpa import DAY_S, PredictiveHpa, PredictiveHpaSpec
from trimtab.kinds.problems import nearest
from trimtab.policy import Advice

_STEERING = (PAUSED, PAUSED_UNTIL, PIN, PIN_UNTIL)
_FLOOR = (ORIGINAL_FLOOR, RAISED_FLOOR, RAISED_FLOOR_UNTIL)
_COMPUTED = "both recommendations are computed here; no HPA or VPA object is made"
_BY_NAME = "a workload is found by its kind and name"
_WHOLE_HISTORY = "all history that there is counts"
_CHOSEN = "the model chooses where it begins, and damps nothing"
_NO_REPLICA_CHANGE = "upstream never reads it either"

IGNORED: dict[str, dict[str, str]] = {
    "Hvpa": {
        "spec.replicas": "the number of replicas is decided, not written here",
        "spec.hpa.selector": _COMPUTED,
        "spec.hpa.template.metadata": _COMPUTED,
        "spec.vpa.selector": _COMPUTED,
        "spec.vpa.template.metadata": _COMPUTED,
        "spec.vpaTemplate.updatePolicy": "Hvpa applies the recommendation itself",
        "spec.vpa.template.spec.updatePolicy": "Hvpa applies the recommendation itself",
        "spec.hpa.scaleUp.minChange": _NO_REPLICA_CHANGE,
        "spec.hpa.scaleDown.minChange": _NO_REPLICA_CHANGE,
        "spec.vpa.scaleUp.minChange.replicas": _NO_REPLICA_CHANGE,
        "spec.vpa.scaleDown.minChange.replicas": _NO_REPLICA_CHANGE,
        "spec.vpa.limitsRequestsGapScaleParams.replicas": _NO_REPLICA_CHANGE,
    },
    "WatermarkPodAutoscaler": {"spec.metrics[].resource.metricSelector": "all pods of the workload are asked"},
    "PredictiveHorizontalPodAutoscaler": {
        "spec.models[].calculationTimeout": "models are asked in this program",
        "spec.models[].startInterval": _WHOLE_HISTORY,
        "spec.models[].resetDuration": _WHOLE_HISTORY,
        "spec.models[].holtWinters.storedSeasons": _WHOLE_HISTORY,
        "spec.models[].holtWinters.runtimeTuningFetchHook": "nobody is asked for coefficients",
        "spec.models[].holtWinters.dampedTrend": _CHOSEN,
        "spec.models[].holtWinters.initializationMethod": _CHOSEN,
        "spec.models[].holtWinters.initialLevel": _CHOSEN,
        "spec.models[].holtWinters.initialTrend": _CHOSEN,
        "spec.models[].holtWinters.initialSeasonal": _CHOSEN,
    },
    "Recommendation": {f"spec.targetRef.{name}": _BY_NAME for name in ("uid", "resourceVersion", "fieldPath")},
    "EffectiveHorizontalPodAutoscaler": {
        "spec.prediction.predictionAlgorithm.dsp.sampleInterval": "the source of the history decides",
        "spec.prediction.predictionAlgorithm.percentile.sampleInterval": "the source of the history decides",
        "spec.prediction.predictionAlgorithm.percentile.historyLength": "all history that is kept counts, decayed",
        "spec.prediction.predictionAlgorithm.percentile.aggregated": "demand is always that of the whole workload",
    },
}


class Warned(NamedTuple):
    path: str
    why: str


def _known_annotations(obj: Kind) -> tuple[str, ...]:
    may_be_exact = obj.kind == "Hvpa" or (isinstance(obj, AnyHpa) and obj.predictive)
    own = {"Hvpa": (BRIDGE,), "EffectiveHorizontalPodAutoscaler": (BRIDGE, TUNING)}.get(obj.kind, ())
    return (*_STEERING, *((EXACT,) if may_be_exact else ()), *own, *_FLOOR)


def warnings(obj: Kind) -> list[Warned]:
    """What the user wrote that changes nothing."""
    table = IGNORED.get(obj.kind, {})
    manifest = obj.manifest()
    found = [Warned(path, why) for pattern, why in table.items() for path in _paths(manifest, pattern.split("."))]
    if isinstance(obj, EffectiveHpa):
        found += _of_ehpa(obj)
    if isinstance(obj, PredictiveHpa):
        found += _of_phpa(obj.spec)
    found += _of_annotations(obj)
    if isinstance(obj, Analytics):
        advice = Advice(obj.spec.type)
        keys = [name for name in obj.spec.config if ignored(name, advice)]
        found += [Warned(f'spec.config["{name}"]', "upstream's key; nothing here depends on it") for name in keys]
    return found


def _of_annotations(obj: Kind) -> Iterator[Warned]:
    known = _known_annotations(obj)
    for key in obj.metadata.annotations:
        if key.startswith(OURS) and key not in known:
            near = nearest(key, list(known), 0.9)
            meant = f"did you mean {near}?" if near else f"known: {', '.join(_STEERING)}"
            yield Warned(f'metadata.annotations["{key}"]', f"not read here; {meant}")


def _of_ehpa(obj: EffectiveHpa) -> Iterator[Warned]:
    if obj.spec.specific_replicas is not None and not obj.preview:
        yield Warned("spec.specificReplicas", "only counts with scaleStrategy: Preview")
    for key in obj.metadata.annotations:
        if key.startswith(CRANE_QUERY):
            yield Warned(f'metadata.annotations["{key}"]', "the history is asked for here")
    percentile = obj.spec.prediction and obj.spec.prediction.prediction_algorithm.percentile
    histogram = percentile.histogram if percentile else None
    if histogram and histogram.bucket_size and not histogram.equal_size:
        path = "spec.prediction.predictionAlgorithm.percentile.histogram.bucketSize"
        yield Warned(path, "the sizes that grow win, as they do upstream")


def _of_phpa(spec: PredictiveHpaSpec) -> Iterator[Warned]:
    """What is replayed is its first model, as a forecast that only adds."""
    if spec.decision_type != "maximum":
        yield Warned("spec.decisionType", f"a forecast only adds here: {spec.decision_type} could also take away")
    for index in range(1, len(spec.models)):
        yield Warned(f"spec.models[{index}]", "one model is asked here, the first")
    if spec.models[0].per_sync_period != 1:
        yield Warned("spec.models[0].perSyncPeriod", "it is asked on every tick")
    season = spec.models[0].holt_winters
    if season and season.seasonal_periods * spec.sync_period != DAY_S * 1000:
        yield Warned("spec.models[0].holtWinters.seasonalPeriods", "a season is a day here")
    if spec.behavior and "downscale_stabilization" in spec.model_fields_set:
        yield Warned("spec.downscaleStabilization", "the window of behavior.scaleDown counts")


def _paths(value: Any, steps: list[str], path: str = "") -> Iterator[str]:
    """Where a pattern of the table matches what was written."""
    if not steps:
        yield path.removeprefix(".")
        return
    name, many = steps[0].removesuffix("[]"), steps[0].endswith("[]")
    if not isinstance(value, dict) or name not in value:
        return
    if not many:
        yield from _paths(value[name], steps[1:], f"{path}.{name}")
        return
    for index, item in enumerate(value[name]):
        yield from _paths(item, steps[1:], f"{path}.{name}[{index}]")
