"""What users write and read: one module per kind, each with fields, defaults and errors with a path.

`read(manifest)` returns the right kind. An Autoscaler compiles to a Policy; every other autoscaler has one function,
`as_autoscaler`, and compiles through its Autoscaler. A kind is its module and its entry in KINDS.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError

from trimtab.errors import InvalidInput
from trimtab.kinds.analytics import Analytics, Recommendation
from trimtab.kinds.autoscaler import Autoscaler
from trimtab.kinds.custom_hpa import CustomHpa, is_custom_hpa
from trimtab.kinds.effective_hpa import EffectiveHpa
from trimtab.kinds.foreign import ForeignKind
from trimtab.kinds.hpa import Hpa, HpaV1, HpaV2beta1
from trimtab.kinds.hvpa import Hvpa
from trimtab.kinds.manifest_part import ABSENT, without_nulls
from trimtab.kinds.meta import Kind, TargetRef
from trimtab.kinds.predictive_hpa import PredictiveHpa
from trimtab.kinds.problems import invalid_object, nearest
from trimtab.kinds.recommendation_rule import RecommendationRule
from trimtab.kinds.scaled_object import ScaledObject
from trimtab.kinds.vertical_pod_autoscaler import VPA_VERSIONS, VerticalPodAutoscaler
from trimtab.kinds.watermark_pod_autoscaler import WatermarkPodAutoscaler

Scaler = Autoscaler | ForeignKind

KINDS: dict[tuple[str, str], type[Kind]] = {
    ("trimtab.dev/v1alpha1", "Autoscaler"): Autoscaler,
    ("autoscaling.crane.io/v1alpha1", "EffectiveHorizontalPodAutoscaler"): EffectiveHpa,
    ("analysis.crane.io/v1alpha1", "Analytics"): Analytics,
    ("analysis.crane.io/v1alpha1", "Recommendation"): Recommendation,
    ("analysis.crane.io/v1alpha1", "RecommendationRule"): RecommendationRule,
    ("autoscaling.k8s.io/v1alpha1", "Hvpa"): Hvpa,
    ("autoscaling/v2", "HorizontalPodAutoscaler"): Hpa,
    ("autoscaling/v2beta2", "HorizontalPodAutoscaler"): Hpa,
    ("autoscaling/v2beta1", "HorizontalPodAutoscaler"): HpaV2beta1,
    ("autoscaling/v1", "HorizontalPodAutoscaler"): HpaV1,
    ("datadoghq.com/v1alpha1", "WatermarkPodAutoscaler"): WatermarkPodAutoscaler,
    ("jamiethompson.me/v1alpha1", "PredictiveHorizontalPodAutoscaler"): PredictiveHpa,
    ("keda.sh/v1alpha1", "ScaledObject"): ScaledObject,
    **{(f"autoscaling.k8s.io/{version}", "VerticalPodAutoscaler"): VerticalPodAutoscaler for version in VPA_VERSIONS},
}


def read(manifest: Mapping[str, Any]) -> Kind:
    """The kind of a manifest, checked; InvalidObject holds everything that is wrong with it."""
    kind = kind_of(manifest)
    metadata = manifest.get("metadata")
    name = metadata.get("name", "?") if isinstance(metadata, Mapping) else "?"
    try:
        checked = kind.model_validate(without_nulls(manifest))
        if isinstance(checked, ForeignKind) and not checked.served_elsewhere:
            assert checked.translation  # what an Autoscaler cannot mean is refused here too
        return checked
    except ValidationError as error:
        raise invalid_object(f"{manifest['kind']}/{name}", kind, error) from None
    except RecursionError:
        raise InvalidInput(f"{manifest['kind']}/{name}", "...", "it is nested too deeply to be read") from None


def kind_of(manifest: Mapping[str, Any]) -> type[Kind]:
    """The class of a manifest by its apiVersion and kind."""
    version, name = manifest.get("apiVersion"), manifest.get("kind")
    if (found := KINDS.get((str(version), str(name)))) is not None:
        return found
    versions = sorted({known for known, kind in KINDS if kind == name})
    if versions:
        raise InvalidInput("apiVersion", version or ABSENT, f"{name} is understood as {', '.join(versions)}")
    near = nearest(str(name), sorted({kind for _, kind in KINDS}))
    raise InvalidInput("kind", name or ABSENT, f"did you mean {near}?" if near else "this kind is not ours to read")


def misspelt(manifest: Mapping[str, Any]) -> bool:
    """A kind nobody has, a letter or two from one of ours, in that one's group; `kind_of` says which was meant."""
    group, name = str(manifest.get("apiVersion")).partition("/")[0], str(manifest.get("kind"))
    known = {kind.lower() for version, kind in KINDS if version.partition("/")[0] == group}
    return not any(kind == name for _, kind in KINDS) and bool(get_close_matches(name.lower(), known, 1, cutoff=0.9))


__all__ = [
    "KINDS",
    "Kind",
    "Scaler",
    "TargetRef",
    "read",
    "kind_of",
    "misspelt",
    "without_nulls",
    "Autoscaler",
    "EffectiveHpa",
    "Hvpa",
    "Hpa",
    "HpaV1",
    "HpaV2beta1",
    "WatermarkPodAutoscaler",
    "PredictiveHpa",
    "CustomHpa",
    "is_custom_hpa",
    "Analytics",
    "Recommendation",
    "RecommendationRule",
]
