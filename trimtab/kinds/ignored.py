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
from trimtab.policy import Advice

_STEERING = (PAUSED, PAUSED_UNTIL, PIN, PIN_UNTIL)
_FLOOR = (ORIGINAL_FLOOR, RAISED_FLOOR, RAISED_FLOOR_UNTIL)
_COMPUTED = "both recommendations are computed here; no HPA or VPA object is made"
_BY_NAME = "a workload is found by its kind and name"
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
    if isinstance(obj, EffectiveHpa) and obj.spec.specific_replicas is not None and not obj.preview:
        found.append(Warned("spec.specificReplicas", "only counts with scaleStrategy: Preview"))
    if isinstance(obj, EffectiveHpa):
        queries = [key for key in obj.metadata.annotations if key.startswith(CRANE_QUERY)]
        found += [Warned(f'metadata.annotations["{key}"]', "the history is asked for here") for key in queries]
    known = _known_annotations(obj)
    for key in obj.metadata.annotations:
        if key.startswith(OURS) and key not in known:
            found.append(Warned(f'metadata.annotations["{key}"]', f"not read here; known: {', '.join(_STEERING)}"))
    if isinstance(obj, Analytics):
        advice = Advice(obj.spec.type)
        keys = [name for name in obj.spec.config if ignored(name, advice)]
        found += [Warned(f'spec.config["{name}"]', "upstream's key; nothing here depends on it") for name in keys]
    return found


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
