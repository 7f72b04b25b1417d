"""convert: one autoscaler's manifest as another's, through an Autoscaler, which can express almost all of them.

What has no equivalent is returned beside the result with its path; nothing is dropped without a word.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import NamedTuple

from trimtab.errors import InvalidInput, InvalidObject
from trimtab.kinds import (
    KINDS,
    Analytics,
    Autoscaler,
    CustomHpa,
    RecommendationRule,
    Scaler,
    is_custom_hpa,
    misspelt,
    read,
    without_nulls,
)
from trimtab.kinds.analytics import ANALYSIS_API
from trimtab.kinds.convert import autoscaler_to_kinds
from trimtab.kinds.convert.queue_lengths import follow_arrivals
from trimtab.kinds.foreign import READ_HERE, Manifest, Translated
from trimtab.kinds.ledger import Ledger, Lost, loses_signal
from trimtab.kinds.scaled_object import ScaledObject
from trimtab.kinds.source_fields import SourceFields

_REFUSED = {
    "ScaledJob": "it starts Jobs, which nothing here does: keep it with KEDA",
    "HTTPScaledObject": "KEDA's interceptor holds requests while pods start, which nothing here does: keep it for "
    "scaling to zero, or write an Autoscaler on the rate of requests with minReplicas: 1",
}
_RULE = "RecommendationRule"
_SCALERS = {name for (_, name), kind in KINDS.items() if issubclass(kind, Scaler)}


class TargetKind(NamedTuple):
    version: str
    kind: str
    step: Callable[[SourceFields, Manifest], Manifest] | None


TARGETS = {
    "autoscaler": TargetKind("trimtab.dev/v1alpha1", "Autoscaler", None),
    "hpa": TargetKind("autoscaling/v2", "HorizontalPodAutoscaler", autoscaler_to_kinds.to_hpa),
    "ehpa": TargetKind(
        "autoscaling.crane.io/v1alpha1", "EffectiveHorizontalPodAutoscaler", autoscaler_to_kinds.to_ehpa
    ),
    "hvpa": TargetKind("autoscaling.k8s.io/v1alpha1", "Hvpa", autoscaler_to_kinds.to_hvpa),
    "analytics": TargetKind(ANALYSIS_API, "Analytics", None),
}


class Converted(NamedTuple):
    manifest: Manifest
    lost: list[Lost]

    @property
    def loses_signal(self) -> bool:
        return loses_signal(self.lost)


def convertible(manifest: Manifest) -> bool:
    return str(manifest.get("kind")) in {*_SCALERS, *_REFUSED, _RULE} or is_custom_hpa(manifest) or misspelt(manifest)


def convert(manifest: Manifest, to: str, beside_keda: bool = False) -> Converted:
    """The manifest in the form of another kind; raises where there can be none. Paths are those of the source."""
    target, manifest = TARGETS[to], without_nulls(manifest)
    if why := _REFUSED.get(str(manifest.get("kind"))):
        raise InvalidInput("kind", manifest["kind"], why)
    if to == "analytics" or manifest.get("kind") == _RULE:
        return _as_analytics(manifest, to)
    made, ledger = _as_autoscaler(manifest, beside_keda)
    if (manifest.get("apiVersion"), manifest.get("kind")) == target[:2]:
        return Converted(copy.deepcopy(manifest), [])
    if target.step is None:
        if manifest.get("kind") == "ScaledObject" and not beside_keda:
            follow_arrivals(made["spec"], ledger)
            read(made)
        return Converted(made, ledger.lost)
    onward = Ledger()
    try:
        metadata = made["metadata"]
        spec = target.step(SourceFields(made["spec"], "spec", onward), metadata)
        whole = {"apiVersion": target.version, "kind": target.kind, "metadata": metadata, "spec": spec}
        read(whole)  # what comes out is held to what goes in
    except InvalidInput as error:
        raise _at_source(error, manifest, onward, ledger) from None
    lost = [loss._replace(path=ledger.source_of(loss.path)) for loss in onward.lost]
    return Converted(whole, ledger.lost + lost)


def _as_analytics(manifest: Manifest, to: str) -> Converted:
    """One Analytics, or a List of them."""
    rule = read(manifest)
    if to == "analytics" and isinstance(rule, Analytics):
        return Converted(copy.deepcopy(manifest), [])
    if to != "analytics" or not isinstance(rule, RecommendationRule):
        raise InvalidInput("kind", manifest.get("kind"), f"a {_RULE} becomes --to analytics, and nothing else does")
    ledger = Ledger()
    made = rule.as_analytics(ledger)
    for analytics in made:
        read(analytics)
    if not made:
        raise InvalidInput("spec.recommenders", ledger.lost[0].path, ledger.lost[0].why)
    whole = made[0] if len(made) == 1 else {"apiVersion": "v1", "kind": "List", "items": made}
    return Converted(whole, ledger.lost)


def _as_autoscaler(manifest: Manifest, beside_keda: bool) -> tuple[Manifest, Ledger]:
    kind = CustomHpa.from_values(manifest) if is_custom_hpa(manifest) else read(manifest)
    if isinstance(kind, Autoscaler):
        return {**copy.deepcopy(manifest), "metadata": kind.metadata.written(without=READ_HERE)}, Ledger()
    if beside_keda and isinstance(kind, ScaledObject):
        translation = kind.beside_keda
    elif isinstance(kind, Translated):
        translation = kind.translation
    else:
        raise InvalidInput("kind", manifest.get("kind"), "it scales nothing, so there is nothing to convert")
    return copy.deepcopy(translation.applicable), translation.ledger


def title(manifest: Manifest) -> str:
    """KIND/NAME, as far as they are written."""
    metadata = manifest.get("metadata")
    named = metadata if isinstance(metadata, dict) else {}
    return f"{manifest.get('kind', 'custom-hpa')}/{named.get('name') or named.get('generateName') or '?'}"


def _at_source(error: InvalidInput, manifest: Manifest, onward: Ledger, ledger: Ledger) -> InvalidInput:
    """The problem where its writer knows it: back through both translations."""
    if isinstance(error, InvalidObject):
        return ledger.at_source(onward.at_source(error, ""), title(manifest))
    return InvalidInput(ledger.source_of(onward.source_of(error.path)), error.value, error.fix)


__all__ = ["TARGETS", "Converted", "Lost", "convert", "convertible", "title"]
