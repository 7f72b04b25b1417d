"""convert: one autoscaler's manifest as another's, through an Autoscaler, which can say almost everything they can.

What has no equivalent comes back beside the result with its path; nothing is dropped in silence.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

from trimtab.errors import InvalidInput
from trimtab.kinds import CustomHpa, misspelt, read, without_nulls
from trimtab.kinds.convert import autoscaler_to_kinds, keda_vpa_to_autoscaler, kinds_to_autoscaler
from trimtab.kinds.convert.source_fields import Lost, SourceFields, metadata_of

Manifest = dict[str, Any]
Step = Callable[[SourceFields, Manifest], Manifest]

_HPA, _EHPA, _HVPA = "HorizontalPodAutoscaler", "EffectiveHorizontalPodAutoscaler", "Hvpa"
_FROM: dict[str, Step] = {
    _HPA: kinds_to_autoscaler.from_hpa,
    _EHPA: kinds_to_autoscaler.from_ehpa,
    _HVPA: kinds_to_autoscaler.from_hvpa,
    "VerticalPodAutoscaler": keda_vpa_to_autoscaler.from_vpa,
    "ScaledObject": keda_vpa_to_autoscaler.from_keda,
}
_FOREIGN = ("VerticalPodAutoscaler", "ScaledObject")


class TargetKind(NamedTuple):
    version: str
    kind: str
    step: Step | None


TARGETS = {
    "autoscaler": TargetKind("trimtab.dev/v1alpha1", "Autoscaler", None),
    "hpa": TargetKind("autoscaling/v2", _HPA, autoscaler_to_kinds.to_hpa),
    "ehpa": TargetKind("autoscaling.crane.io/v1alpha1", _EHPA, autoscaler_to_kinds.to_ehpa),
    "hvpa": TargetKind("autoscaling.k8s.io/v1alpha1", _HVPA, autoscaler_to_kinds.to_hvpa),
}


class Converted(NamedTuple):
    manifest: Manifest
    lost: list[Lost]


def convertible(manifest: Manifest) -> bool:
    return manifest.get("kind") in (*_FROM, "Autoscaler") or _is_custom(manifest) or misspelt(manifest)


def convert(manifest: Manifest, to: str) -> Converted:
    """The manifest in the form of another kind; raises where there can be none."""
    target, lost = TARGETS[to], list[Lost]()
    manifest = without_nulls(manifest)
    if not _is_custom(manifest) and manifest.get("kind") not in _FOREIGN:
        read(manifest)
    if (manifest.get("apiVersion"), manifest.get("kind")) == target[:2]:
        return Converted(copy.deepcopy(manifest), lost)
    autoscaler = _checked(_autoscaler(manifest, lost))
    if target.step is None:
        return Converted(autoscaler, lost)
    metadata = copy.deepcopy(autoscaler["metadata"])
    spec = target.step(SourceFields(autoscaler["spec"], "spec", lost), metadata)
    return Converted(_checked(_whole(target, metadata, spec)), lost)


def _autoscaler(manifest: Manifest, lost: list[Lost]) -> Manifest:
    if _is_custom(manifest):
        CustomHpa.from_values(manifest)
        metadata: Manifest = {}
        return _whole(
            TARGETS["autoscaler"], metadata, kinds_to_autoscaler.from_custom(SourceFields(manifest, "", lost), metadata)
        )
    metadata = metadata_of(manifest)
    spec = manifest.get("spec")
    if not isinstance(spec, dict):
        raise InvalidInput("spec", spec, "write a mapping")
    if manifest["kind"] == "Autoscaler":
        return {**manifest, "metadata": metadata}
    made = _FROM[manifest["kind"]](SourceFields(spec, "spec", lost), metadata)
    return _whole(TARGETS["autoscaler"], metadata, made)


def _whole(target: TargetKind, metadata: Manifest, spec: Manifest) -> Manifest:
    return {"apiVersion": target.version, "kind": target.kind, "metadata": metadata, "spec": spec}


def _checked(manifest: Manifest) -> Manifest:
    """What comes out is held to what goes in."""
    read(manifest)
    return manifest


def _is_custom(manifest: Manifest) -> bool:
    target = manifest.get("target")
    return "kind" not in manifest and isinstance(target, dict) and "deployment" in target


__all__ = ["TARGETS", "Converted", "Lost", "convert", "convertible"]
