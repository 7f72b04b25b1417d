"""The bridge: may ready pods grow in place for a while? A field of the Autoscaler, an annotation of other kinds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from msgspec.structs import replace

from trimtab.errors import InvalidInput
from trimtab.kinds.manifest_part import FieldRule, ManifestPart, shown
from trimtab.kinds.metric import signals_of
from trimtab.policy import Bridge, Signal, Tolerance, is_cpu

FACTORS = ("1.25", "1.5")
NEEDS_CPU = "it looks at the cpu of pods: add a metric on cpu (Resource or ContainerResource), or leave it out"


class BridgeSpec(ManifestPart):
    """Ready pods get more cpu for a while when they carry too much: sooner than new pods are ready."""

    max_factor: Literal["1.25", "1.5"] = "1.5"
    """At most so many times their written cpu."""

    ceiling: Literal["0.65", "0.7", "0.75", "0.78"] | None = None
    """They grow from this share of their written cpu on; left out: 0.75, or 15/16 of an objective's serviceLevel."""

    def bridge(self) -> Bridge:
        bridge = Bridge(max_factor=float(self.max_factor))
        return bridge if self.ceiling is None else replace(bridge, ceiling=float(self.ceiling))


BRIDGE_RULES = (
    FieldRule(
        lambda s: s.bridge is None or s.max_replicas is not None,
        at="bridge",
        fix="it is for workloads whose number of pods trimtab scales: set maxReplicas, or leave it out",
        cel="!has(self.bridge) || has(self.maxReplicas)",
    ),
    FieldRule(
        lambda s: s.bridge is None or sees_cpu(_signals(s.metrics)),
        at="bridge",
        fix=NEEDS_CPU,
        cel="!has(self.bridge) || !has(self.metrics) || self.metrics.size() == 0 || self.metrics.exists(m,"
        " (has(m.resource) && m.resource.name == 'cpu')"
        " || (has(m.containerResource) && m.containerResource.name == 'cpu'))",
    ),
    FieldRule(
        lambda s: s.bridge is None or s.vertical is None or s.vertical.apply != "Recreate",
        at="bridge",
        fix="it resizes pods in place: use vertical.apply InPlace or InPlaceOrRecreate, or leave it out",
        cel="!has(self.bridge) || !has(self.vertical) || !has(self.vertical.apply)"
        " || self.vertical.apply != 'Recreate'",
    ),
)


def _signals(metrics: list[Any] | None) -> tuple[Signal, ...]:
    return signals_of(metrics, Tolerance())


def sees_cpu(signals: Iterable[Signal]) -> bool:
    return any(is_cpu(signal.metric) for signal in signals)


def no_bridge(text: str | None, path: str) -> None:
    """Of an HPA, which scales by itself."""
    if text is not None:
        fix = "a larger request makes the built-in controller remove pods: leave it out, or write an Autoscaler"
        raise InvalidInput(path, shown(text), fix)
