"""convert: one autoscaler's manifest as another's, through an Autoscaler, which can say almost everything they can.

What has no equivalent comes back beside the result with its path; nothing is dropped in silence.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

from trimtab.errors import InvalidInput, InvalidObject
from trimtab.kinds import KINDS, CustomHpa, Scaler, is_custom_hpa, misspelt, read, without_nulls
from trimtab.kinds.annotations import BRIDGE, EXACT, PREDICTIVE, TUNING
from trimtab.kinds.convert import autoscaler_to_kinds, kinds_to_autoscaler
from trimtab.kinds.convert.keda_to_autoscaler import from_keda, served_names
from trimtab.kinds.convert.source_fields import SourceFields
from trimtab.kinds.convert.source_metadata import metadata_of
from trimtab.kinds.convert.vpa_to_autoscaler import from_vpa
from trimtab.kinds.foreign import Translated, unannotate
from trimtab.kinds.ledger import Ledger, Lost

Manifest = dict[str, Any]
Step = Callable[[SourceFields, Manifest], Manifest]

_HPA, _EHPA, _HVPA = "HorizontalPodAutoscaler", "EffectiveHorizontalPodAutoscaler", "Hvpa"
_FROM: dict[str, Step] = {
    "VerticalPodAutoscaler": from_vpa,
    "ScaledObject": from_keda,
}
_SCALERS = {name for (_, name), kind in KINDS.items() if issubclass(kind, Scaler)}
_FOREIGN = ("VerticalPodAutoscaler", "ScaledObject", "ScaledJob")


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

    @property
    def loses_signal(self) -> bool:
        """What it was scaled by is gone: the result would follow something else."""
        return any(loss.signal for loss in self.lost)


def convertible(manifest: Manifest) -> bool:
    return manifest.get("kind") in (*_SCALERS, *_FROM, *_FOREIGN) or is_custom_hpa(manifest) or misspelt(manifest)


def convert(manifest: Manifest, to: str, beside_keda: bool = False) -> Converted:
    """The manifest in the form of another kind; raises where there can be none. Paths are those of the source."""
    target, ledger = TARGETS[to], Ledger()
    manifest = without_nulls(manifest)
    kind = None
    if not is_custom_hpa(manifest) and manifest.get("kind") not in _FOREIGN:
        kind = read(manifest)
    if (manifest.get("apiVersion"), manifest.get("kind")) == target[:2]:
        return Converted(copy.deepcopy(manifest), [])
    if isinstance(kind, Translated):
        made, ledger = copy.deepcopy(kind.translation.applicable), kind.translation.ledger
    else:
        made = _autoscaler(manifest, ledger, beside_keda)
    onward = Ledger()
    for key in (PREDICTIVE, EXACT, BRIDGE, TUNING):  # who reads one has taken it; on another kind it would begin to act
        unannotate(made["metadata"], key)
    try:
        autoscaler = _checked(made)
        if target.step is None:
            return Converted(autoscaler, ledger.lost)
        metadata = copy.deepcopy(autoscaler["metadata"])
        spec = target.step(SourceFields(autoscaler["spec"], "spec", onward), metadata)
        lost = [loss._replace(path=ledger.source_of(loss.path)) for loss in onward.lost]
        return Converted(_checked(_whole(target, metadata, spec)), ledger.lost + lost)
    except InvalidObject as error:
        problems = tuple(_at_source(problem, onward, ledger) for problem in error.problems)
        raise InvalidObject(title(manifest), problems) from None
    except InvalidInput as error:
        raise _at_source(error, onward, ledger) from None


def title(manifest: Manifest) -> str:
    """KIND/NAME, as far as they are written."""
    metadata = manifest.get("metadata")
    named = metadata if isinstance(metadata, dict) else {}
    return f"{manifest.get('kind', 'custom-hpa')}/{named.get('name') or named.get('generateName') or '?'}"


def _at_source(problem: InvalidInput, onward: Ledger, ledger: Ledger) -> InvalidInput:
    return InvalidInput(ledger.source_of(onward.source_of(problem.path)), problem.value, problem.fix)


def _autoscaler(manifest: Manifest, ledger: Ledger, beside_keda: bool) -> Manifest:
    if is_custom_hpa(manifest):
        CustomHpa.from_values(manifest)
        metadata: Manifest = {}
        made = kinds_to_autoscaler.from_custom(SourceFields(manifest, "", ledger), metadata)
        return _whole(TARGETS["autoscaler"], metadata, made)
    kind, metadata, spec = manifest["kind"], metadata_of(manifest), manifest.get("spec")
    if kind == "ScaledJob":
        raise InvalidInput("kind", kind, "it starts Jobs, which nothing here does: keep it with KEDA")
    if not isinstance(spec, dict):
        raise InvalidInput("spec", spec, "write a mapping")
    if kind == "Autoscaler":
        return {**manifest, "metadata": metadata}
    fields = SourceFields(spec, "spec", ledger)
    if kind == "ScaledObject" and beside_keda:
        made = from_keda(fields, metadata, served_names(manifest.get("status")))
    else:
        made = _FROM[kind](fields, metadata)
    return _whole(TARGETS["autoscaler"], metadata, made)


def _whole(target: TargetKind, metadata: Manifest, spec: Manifest) -> Manifest:
    return {"apiVersion": target.version, "kind": target.kind, "metadata": metadata, "spec": spec}


def _checked(manifest: Manifest) -> Manifest:
    """What comes out is held to what goes in."""
    read(manifest)
    return manifest


__all__ = ["TARGETS", "Converted", "Lost", "convert", "convertible", "title"]
