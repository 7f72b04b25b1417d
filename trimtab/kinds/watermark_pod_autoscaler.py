"""WatermarkPodAutoscaler (datadoghq.com/v1alpha1): two marks per metric, with a quiet zone between them.

Linted, replayed and converted, never served: its own controller goes on.
"""

from __future__ import annotations

from math import ceil
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from trimtab.kinds.amounts import BareQuantity, Count, CountOrZero, Target, Text
from trimtab.kinds.annotations import WPA_SETTINGS
from trimtab.kinds.behavior import LONGEST_REST_S, LONGEST_WINDOW_S
from trimtab.kinds.foreign import SCALING, ForeignKind, Manifest, exact_parts
from trimtab.kinds.horizontal import MIN_AT_MOST_MAX
from trimtab.kinds.ledger import Ledger, without_none
from trimtab.kinds.manifest_part import FieldRule, ManifestPart
from trimtab.kinds.meta import TargetRef
from trimtab.kinds.names import MetricName
from trimtab.kinds.selector import Selector
from trimtab.policy import Converge, Cooldown, Delay, Metric, MetricKind, Rule, Velocity, Watermark
from trimtab.quantity import parse_quantity

_STEP_S = 15  # its controller decides every 15 s
_PLACES = {"spec.mode": "spec.dryRun"} | {
    f"spec.behavior.scale{way}{part}": f"spec.{source}"
    for way, forbidden, delay in (("Up", "upscale", "upscaleDelayAbove"), ("Down", "downscale", "downscaleDelayBelow"))
    for part, source in (
        ("", f"scale{way}LimitFactor"),
        (".policies", f"scale{way}LimitFactor"),
        (".selectPolicy", f"scale{way}LimitFactor"),
        (".tolerance", "tolerance"),
        (".cooldownSeconds", f"{forbidden}ForbiddenWindowSeconds"),
        (".stabilizationWindowSeconds", f"{delay}WatermarkSeconds"),
    )
}


class Marks(ManifestPart):
    """One mark alone is both."""

    high_watermark: Target | None = None
    low_watermark: Target | None = None

    rules: ClassVar[tuple[FieldRule, ...]] = (
        FieldRule(
            lambda m: m.high_watermark is not None or m.low_watermark is not None,
            at="highWatermark",
            fix="set highWatermark, lowWatermark or both",
        ),
        FieldRule(lambda m: m.low <= m.high, at="lowWatermark", fix="must not be above highWatermark"),
    )

    @property
    def high(self) -> float:
        return _amount(self.high_watermark, self.low_watermark)

    @property
    def low(self) -> float:
        return _amount(self.low_watermark, self.high_watermark)


def _amount(mark: str | int | float | None, other: str | int | float | None) -> float:
    written = mark if mark is not None else other
    return 0.0 if written is None else parse_quantity(written)


class ExternalMarks(Marks):
    metric_name: MetricName
    metric_selector: Selector | None = None

    def metric(self) -> Metric:
        selector = self.metric_selector.text if self.metric_selector else ""
        return Metric(kind=MetricKind.EXTERNAL, name=self.metric_name, selector=selector)


class ResourceMarks(Marks):
    name: Text
    metric_selector: Selector | None = None

    def metric(self) -> Metric:
        return Metric(kind=MetricKind.RESOURCE, name=self.name)


class WatermarkMetric(ManifestPart):
    type: Literal["External", "Resource"]
    external: ExternalMarks | None = None
    resource: ResourceMarks | None = None

    rules: ClassVar[tuple[FieldRule, ...]] = (
        FieldRule(
            lambda m: (
                (m.external is not None) == (m.type == "External")
                and (m.resource is not None) == (m.type == "Resource")
            ),
            at="type",
            fix="fill in the member that type names, and no other",
        ),
    )

    @property
    def marks(self) -> ExternalMarks | ResourceMarks:
        marks = self.external or self.resource
        assert marks is not None
        return marks


class WatermarkSpec(ManifestPart):
    scale_target_ref: TargetRef
    min_replicas: Count = 1
    max_replicas: Count
    metrics: Annotated[list[WatermarkMetric], Field(max_length=50)] = []
    algorithm: Literal["absolute", "average"] = "absolute"
    tolerance: BareQuantity = 0.1
    converge_towards_watermark: Literal["highwatermark", "lowwatermark"] | None = None
    replica_scaling_absolute_modulo: Count = 1
    min_available_replica_percentage: Annotated[int, Field(ge=0, le=100)] = 0
    scale_up_limit_factor: BareQuantity = 50
    scale_down_limit_factor: BareQuantity = 20
    upscale_forbidden_window_seconds: CountOrZero = 60
    downscale_forbidden_window_seconds: CountOrZero = 300
    upscale_delay_above_watermark_seconds: CountOrZero = 0
    downscale_delay_below_watermark_seconds: CountOrZero = 0
    readiness_delay_seconds: CountOrZero | None = None
    readiness_delay: CountOrZero | None = None
    """The same, as the first releases spelled it."""
    tolerate_zero: bool = False
    dry_run: bool = False
    recommender: dict[str, Any] | None = None

    rules: ClassVar[tuple[FieldRule, ...]] = (
        MIN_AT_MOST_MAX,
        FieldRule(
            lambda s: bool(s.metrics) and s.recommender is None,
            at="metrics",
            fix="give at least one metric with its marks; a recommender is not asked here",
        ),
    )


class WatermarkPodAutoscaler(ForeignKind):
    api_version: Literal["datadoghq.com/v1alpha1"]
    kind: Literal["WatermarkPodAutoscaler"]
    spec: WatermarkSpec

    crd: ClassVar[bool] = False
    ignored: ClassVar = {"spec.metrics[].resource.metricSelector": "all pods of the workload count"}

    def as_autoscaler(self, metadata: Manifest, ledger: Ledger) -> Manifest:
        """The high mark becomes the target, and the zone from it down to the low mark the tolerance."""
        spec, written = self.spec, self.spec.manifest()
        ledger.places(_PLACES)
        made = {name: part for name, part in written.items() if name in SCALING}
        targets = [self._target(index, written, ledger) for index in range(len(spec.metrics))]
        made["metrics"] = [target for target in targets if target]
        zones = {round(_zone(metric.marks, spec), 4) for metric in spec.metrics}
        if len(zones) > 1:
            ledger.approximate("spec.metrics", "the widest zone between two marks counts: other metrics shrink later")
        made["behavior"] = _behavior(spec, max(zones), ledger)
        if spec.dry_run:
            made["mode"] = "Shadow"
        _lose(spec, written, ledger)
        self.lose_annotations(metadata, WPA_SETTINGS, "has no equivalent", ledger)
        grace_s = spec.readiness_delay_seconds if spec.readiness_delay_seconds is not None else spec.readiness_delay
        return made | exact_parts(
            signals=[_signal(metric, spec) for metric in spec.metrics],
            absence={"zero_is_missing": not spec.tolerate_zero},
            pods=None if grace_s is None else {"pending_grace_s": float(grace_s)},
            settle=_settle(spec),
        )

    def _target(self, index: int, written: Manifest, ledger: Ledger) -> Manifest | None:
        """Return the metric with its high mark as the target."""
        metric, path, spec = self.spec.metrics[index], f"spec.metrics[{index}]", self.spec
        member, marks, average = metric.type.lower(), metric.marks, spec.algorithm == "average"
        ends = "until the high mark is met, not this one" if marks.low < marks.high else "to the next whole number up"
        ledger.approximate(f"{path}.{member}.lowWatermark", f"below it replicas fall {ends}")
        source = written["metrics"][index][member]
        high = source.get("highWatermark", source.get("lowWatermark"))
        target = {"type": "AverageValue", "averageValue": high} if average else {"type": "Value", "value": high}
        if isinstance(marks, ExternalMarks):
            named = without_none(name=marks.metric_name, selector=source.get("metricSelector"))
            return {"type": "External", "external": {"metric": named, "target": target}}
        if not average:
            why = "a mark for the sum over all pods has no equivalent; use algorithm: average"
            ledger.approximate(path, why, signal=True)
            return None
        return {"type": "Resource", "resource": {"name": marks.name, "target": target}}


def _zone(marks: Marks, spec: WatermarkSpec) -> float:
    """Return the share below the target in which nothing changes."""
    return 1 - marks.low * (1 - parse_quantity(spec.tolerance)) / marks.high


def _signal(metric: WatermarkMetric, spec: WatermarkSpec) -> Watermark:
    converge = spec.converge_towards_watermark
    return Watermark(
        metric=metric.marks.metric(),
        low=metric.marks.low,
        high=metric.marks.high,
        tolerance=parse_quantity(spec.tolerance),
        average=spec.algorithm == "average",
        modulo=spec.replica_scaling_absolute_modulo,
        converge=Converge(converge) if converge else None,
        min_available_percent=spec.min_available_replica_percentage,
    )


def _settle(spec: WatermarkSpec) -> tuple[Rule, ...]:
    up, down = parse_quantity(spec.scale_up_limit_factor), parse_quantity(spec.scale_down_limit_factor)
    delays = (spec.upscale_delay_above_watermark_seconds, spec.downscale_delay_below_watermark_seconds)
    rests = (spec.upscale_forbidden_window_seconds, spec.downscale_forbidden_window_seconds)
    return (
        Velocity(up_percent=up, down_percent=down),
        Delay(above_s=float(delays[0]), below_s=float(delays[1])),
        Cooldown(up_s=float(rests[0]), down_s=float(rests[1]), any_direction=True),
    )


def _behavior(spec: WatermarkSpec, zone: float, ledger: Ledger) -> Manifest:
    why = "a rest counts from the last change of the same direction"
    ledger.approximate("spec.upscaleForbiddenWindowSeconds", why)
    down_s = spec.downscale_forbidden_window_seconds
    sides = (
        ("Up", spec.upscale_delay_above_watermark_seconds, spec.upscale_forbidden_window_seconds),
        ("Down", max(spec.downscale_delay_below_watermark_seconds, min(down_s, LONGEST_WINDOW_S)), down_s),
    )
    factors = {"Up": spec.scale_up_limit_factor, "Down": spec.scale_down_limit_factor}
    tolerances = {"Up": parse_quantity(spec.tolerance), "Down": zone}
    behavior = {}
    for way, window_s, rest_s in sides:
        path = f"spec.behavior.scale{way}"
        behavior[f"scale{way}"] = {
            "stabilizationWindowSeconds": ledger.at_most(
                f"{path}.stabilizationWindowSeconds", window_s, LONGEST_WINDOW_S
            ),
            "tolerance": tolerances[way],
            "cooldownSeconds": ledger.at_most(f"{path}.cooldownSeconds", rest_s, LONGEST_REST_S),
        } | _step(way, parse_quantity(factors[way]), ledger)
    return behavior


def _step(way: str, percent: float, ledger: Ledger) -> Manifest:
    """Up to so many percent in one step, at least one pod; 0 switches the direction off."""
    if (value := ceil(percent)) != percent:
        ledger.approximate(f"spec.scale{way}LimitFactor", f"whole percents: {value}")
    if value == 0:
        return {"selectPolicy": "Disabled"}
    policies = [("Percent", value), ("Pods", 1)]
    return {"policies": [{"type": kind, "value": size, "periodSeconds": _STEP_S} for kind, size in policies]}


def _lose(spec: WatermarkSpec, written: Manifest, ledger: Ledger) -> None:
    if not spec.tolerate_zero:
        ledger.approximate("spec.tolerateZero", "a value of zero counts")
    if spec.replica_scaling_absolute_modulo != 1:
        ledger.approximate("spec.replicaScalingAbsoluteModulo", "has no equivalent")
    ledger.approximate_written("spec", written, ("readinessDelay", "readinessDelaySeconds"), "pods count as in HPA")
    names = ("convergeTowardsWatermark", "minAvailableReplicaPercentage")
    ledger.approximate_written("spec", written, names, "has no equivalent")
