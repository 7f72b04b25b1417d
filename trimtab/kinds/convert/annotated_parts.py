"""The bridge and tuning: fields of an Autoscaler, annotations of an EHPA and an Hvpa."""

from __future__ import annotations

from typing import Any

from trimtab.kinds.annotations import BRIDGE, TUNING
from trimtab.kinds.convert.source_fields import SourceFields, annotate, unannotate, without_none


def parts_of_annotations(metadata: dict[str, Any]) -> dict[str, Any]:
    """As fields; the annotations are taken away."""
    factor, mode = unannotate(metadata, BRIDGE), unannotate(metadata, TUNING)
    return without_none(
        bridge={"maxFactor": factor} if factor is not None else None,
        tuning={"mode": mode} if mode is not None else None,
    )


def annotate_parts(spec: SourceFields, metadata: dict[str, Any]) -> None:
    """As annotations; where the bridge begins and how far tuning may go cannot be said there."""
    bridged, bridge, tuning = spec.has("bridge"), spec.part("bridge"), spec.part("tuning")
    if bridged:
        annotate(metadata, BRIDGE, bridge.take("maxFactor", str, "1.5") or "1.5")
    bridge.close("is 0.75 there, unless tuning moves it")
    if mode := tuning.take("mode", str):
        annotate(metadata, TUNING, mode)
    tuning.close("is left to tuning itself there")
