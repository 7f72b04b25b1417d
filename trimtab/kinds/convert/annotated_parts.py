"""The bridge and tuning: fields of an Autoscaler, annotations of an EHPA; an Hvpa has the first alone."""

from __future__ import annotations

from typing import Any

from trimtab.kinds.annotations import BRIDGE, TUNING
from trimtab.kinds.convert.source_fields import SourceFields
from trimtab.kinds.foreign import annotate


def annotate_bridge(spec: SourceFields, metadata: dict[str, Any]) -> None:
    """As an annotation, which cannot say where the bridge begins."""
    bridged, bridge = spec.has("bridge"), spec.part("bridge")
    if bridged:
        annotate(metadata, BRIDGE, bridge.take("maxFactor", str, "1.5") or "1.5")
    bridge.close("is 0.75 there, unless tuning moves it")


def annotate_tuning(spec: SourceFields, metadata: dict[str, Any]) -> None:
    """As an annotation, which cannot say how far tuning may go."""
    tuning = spec.part("tuning")
    if mode := tuning.take("mode", str):
        annotate(metadata, TUNING, mode)
    tuning.close("is left to tuning itself there")
