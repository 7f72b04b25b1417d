"""WatermarkPodAutoscaler (datadoghq.com/v1alpha1): two marks per metric, with a quiet zone between them.

Read to be linted, replayed and converted; nobody serves it here, and its own controller goes on.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from trimtab.kinds.amounts import BareQuantity, Count, CountOrZero, Target, Text
from trimtab.kinds.horizontal import MIN_AT_MOST_MAX
from trimtab.kinds.manifest_part import FieldRule, ManifestPart
from trimtab.kinds.meta import Kind, TargetRef
from trimtab.kinds.names import MetricName
from trimtab.kinds.selector import Selector
from trimtab.policy import (
    Absence,
    Bounds,
    Converge,
    Cooldown,
    Delay,
    Metric,
    MetricKind,
    Mode,
    PodRules,
    Policy,
    Rule,
    Velocity,
    Watermark,
)
from trimtab.quantity import parse_quantity

DEFAULT_TOLERANCE, DEFAULT_UP_PERCENT, DEFAULT_DOWN_PERCENT = 0.1, 50, 20
DEFAULT_UP_REST_S, DEFAULT_DOWN_REST_S = 60, 300


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
        found = self.external or self.resource
        assert found is not None
        return found


class WatermarkSpec(ManifestPart):
    scale_target_ref: TargetRef
    min_replicas: Count = 1
    max_replicas: Count
    metrics: Annotated[list[WatermarkMetric], Field(max_length=50)] = []
    algorithm: Literal["absolute", "average"] = "absolute"
    tolerance: BareQuantity = DEFAULT_TOLERANCE
    converge_towards_watermark: Literal["highwatermark", "lowwatermark"] | None = None
    replica_scaling_absolute_modulo: Count = 1
    min_available_replica_percentage: Annotated[int, Field(ge=0, le=100)] = 0
    scale_up_limit_factor: BareQuantity = DEFAULT_UP_PERCENT
    scale_down_limit_factor: BareQuantity = DEFAULT_DOWN_PERCENT
    upscale_forbidden_window_seconds: CountOrZero = DEFAULT_UP_REST_S
    downscale_forbidden_window_seconds: CountOrZero = DEFAULT_DOWN_REST_S
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


class WatermarkPodAutoscaler(Kind):
    api_version: Literal["datadoghq.com/v1alpha1"]
    kind: Literal["WatermarkPodAutoscaler"]
    spec: WatermarkSpec

    crd: ClassVar[bool] = False

    @property
    def target(self) -> TargetRef:
        return self.spec.scale_target_ref

    def to_policy(self, at: float) -> Policy:
        spec = self.spec
        grace_s = spec.readiness_delay_seconds if spec.readiness_delay_seconds is not None else spec.readiness_delay
        return Policy(
            signals=tuple(_signal(metric, spec) for metric in spec.metrics),
            absence=Absence(zero_is_missing=not spec.tolerate_zero),
            pods=PodRules(pending_grace_s=None if grace_s is None else float(grace_s)),
            settle=_settle(spec),
            bounds=Bounds(min_replicas=spec.min_replicas, max_replicas=spec.max_replicas),
            admit=self.admit(Mode.SHADOW if spec.dry_run else Mode.AUTO),
        )


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
