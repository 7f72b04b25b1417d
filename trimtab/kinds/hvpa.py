"""Hvpa (autoscaling.k8s.io/v1alpha1): documents 001 and 004, in 001's flat form and in the nested one of its releases.

Flat: weights are fractions 0..1. Nested: whole percent 0..100. Weights or buckets, never both.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from msgspec.structs import replace
from pydantic import Field

from trimtab.errors import InvalidInput
from trimtab.kinds.amounts import INT32, Count, CountOrZero, Duration
from trimtab.kinds.annotations import EXACT
from trimtab.kinds.blend import BaseSpec, BucketSpec, BucketsSpec, Interval, OverlapPercent, Sizing, bucket_rules
from trimtab.kinds.bridge import annotated, bridge_problems
from trimtab.kinds.horizontal import MIN_AT_MOST_MAX, horizontal
from trimtab.kinds.hvpa_gates import ChangeParams, ScaleType, Side, WindowSpec, gates, seconds
from trimtab.kinds.hvpa_parts import OF_BUCKETS, HvpaMetric, HvpaResourcePolicy, belongs_to_buckets
from trimtab.kinds.manifest_part import FieldRule, ManifestPart
from trimtab.kinds.meta import Kind, TargetRef, annotation_problems, flag
from trimtab.kinds.metric import MOST_METRICS
from trimtab.kinds.tuning import annotated_tuning, tuning_problems
from trimtab.kinds.vertical import container_rules
from trimtab.policy import (
    Apply,
    Blend,
    Bounds,
    ContainerRule,
    Gap,
    Gate,
    Limits,
    Policy,
    UpdateMode,
    Vertical,
    Weights,
)
from trimtab.quantity import parse_quantity

_FLAT = (
    "scaleUpStabilizationWindow",
    "scaleDownStabilizationWindow",
    "minCpuChange",
    "minMemChange",
    "hpaTemplate",
    "vpaTemplate",
)
_FLAT_CEL = "(" + " || ".join(f"has(self.{name})" for name in _FLAT) + ")"
_NESTED_CEL = "(has(self.hpa) || has(self.vpa))"
_MODES_CEL = "[{}]".format(
    ", ".join(
        f"self.?{axis}.?{way}.?updatePolicy.?updateMode" for axis in ("hpa", "vpa") for way in ("scaleUp", "scaleDown")
    )
)


class HpaTemplate(ManifestPart):
    """What the horizontal half follows."""

    min_replicas: Count = 1
    max_replicas: Count
    metrics: Annotated[list[HvpaMetric], Field(max_length=MOST_METRICS)] | None = None

    rules: ClassVar = (MIN_AT_MOST_MAX,)


class VpaTemplate(ManifestPart):
    """What the vertical half follows."""

    resource_policy: HvpaResourcePolicy | None = None
    update_policy: dict[str, Any] | None = None


class NestedHpaTemplate(ManifestPart):
    metadata: dict[str, Any] | None = None
    spec: HpaTemplate


class NestedHpa(ManifestPart):
    selector: dict[str, Any] | None = None
    deploy: bool = True
    scale_up: ScaleType | None = None
    scale_down: ScaleType | None = None
    template: NestedHpaTemplate | None = None


class NestedVpaTemplate(ManifestPart):
    metadata: dict[str, Any] | None = None
    spec: VpaTemplate | None = None


class GapParams(ManifestPart):
    """How far limits stay above requests."""

    cpu: ChangeParams | None = None
    memory: ChangeParams | None = None
    replicas: ChangeParams | None = None


class NestedVpa(ManifestPart):
    selector: dict[str, Any] | None = None
    deploy: bool = True
    scale_up: ScaleType | None = None
    scale_down: ScaleType | None = None
    template: NestedVpaTemplate | None = None
    limits_requests_gap_scale_params: GapParams | None = None


class HvpaInterval(Interval):
    """A stage; the weight is a fraction in the flat form and percent in the nested one."""

    vpa_weight: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]


def _modes(spec: HvpaSpec) -> list[UpdateMode]:
    axes = [axis for axis in (spec.hpa, spec.vpa) if axis]
    return [(side or _FREE).side().mode for axis in axes for side in (axis.scale_up, axis.scale_down)]


class HvpaSpec(ManifestPart):
    target_ref: TargetRef
    replicas: CountOrZero | None = None
    """For the scale subresource; decides nothing."""
    scale_up_stabilization_window: Duration | None = None
    scale_down_stabilization_window: Duration | None = None
    min_cpu_change: ChangeParams | None = None
    min_mem_change: ChangeParams | None = None
    hpa_template: HpaTemplate | None = None
    """The flat form of document 001; weights are then fractions."""
    vpa_template: VpaTemplate | None = None
    maintenance_time_window: WindowSpec | None = None
    """When updateMode: MaintenanceWindow lets changes through."""
    hpa: NestedHpa | None = None
    """The nested form; weights are then percent."""
    vpa: NestedVpa | None = None
    weight_based_scaling_intervals: Annotated[list[HvpaInterval], Field(max_length=50)] | None = None
    """Document 001: how much of each change is vertical, by the number of replicas."""
    buckets: Annotated[list[BucketSpec], Field(min_length=1, max_length=50)] | None = None
    """Document 004: ranges of replicas and of the size of each."""
    base_resources_per_replica: BaseSpec | None = None
    """With buckets: what a replica uses without doing any work."""
    sizing: Sizing | None = None
    """With buckets: how large each replica becomes; Guarded by default, MaxOfVpaAndShare is document 004's rule of
    thumb."""
    overlap_percent: OverlapPercent | None = None
    """With buckets: a replica is removed when the total falls so far below the edge at which it was added; 10 by
    default, 0 divides the buckets linearly and nothing else."""
    grow_past_last: bool | None = None
    """With buckets: beyond the last one sizes grow to maxAllowed instead of ending at its maximum."""

    rules: ClassVar[tuple[FieldRule, ...]] = (
        FieldRule(
            lambda s: s.flat != s.nested,
            at="",
            fix="write either hpaTemplate and vpaTemplate (document 001) or hpa and vpa",
            cel=f"{_FLAT_CEL} != {_NESTED_CEL}",
        ),
        FieldRule(
            lambda s: not s.weight_based_scaling_intervals or s.buckets is None,
            at="buckets",
            fix="choose weightBasedScalingIntervals or buckets, not both",
            cel="!has(self.weightBasedScalingIntervals) || self.weightBasedScalingIntervals.size() == 0"
            " || !has(self.buckets)",
        ),
        FieldRule(
            lambda s: not s.flat or all(i.vpa_weight <= 1 for i in s.weight_based_scaling_intervals or []),
            at="weightBasedScalingIntervals",
            fix="with hpaTemplate and vpaTemplate a vpaWeight is a fraction from 0 to 1",
            cel=f"!{_FLAT_CEL} || !has(self.weightBasedScalingIntervals)"
            " || self.weightBasedScalingIntervals.all(i, i.vpaWeight <= 1.0)",
        ),
        FieldRule(
            lambda s: not s.nested or all(i.vpa_weight % 1 == 0 for i in s.weight_based_scaling_intervals or []),
            at="weightBasedScalingIntervals",
            fix="with hpa and vpa a vpaWeight is a whole percentage from 0 to 100",
            cel=f"!{_NESTED_CEL} || !has(self.weightBasedScalingIntervals)"
            " || self.weightBasedScalingIntervals.all(i, double(int(i.vpaWeight)) == i.vpaWeight)",
        ),
        FieldRule(
            lambda s: s.maintenance_time_window is not None or UpdateMode.WINDOW not in _modes(s),
            at="maintenanceTimeWindow",
            fix='add it: an updateMode is MaintenanceWindow; begin: "220000+0100", end: "230000+0100"',
            cel=f"has(self.maintenanceTimeWindow) || {_MODES_CEL}.all(m, m.orValue('Auto') != 'MaintenanceWindow')",
        ),
        *bucket_rules("buckets"),
        *(belongs_to_buckets(*names) for names in OF_BUCKETS.items()),
        FieldRule(
            lambda s: bool(s.weight_based_scaling_intervals or s.buckets),
            at="weightBasedScalingIntervals",
            fix="give at least one stage, or buckets",
            cel="has(self.buckets)"
            " || (has(self.weightBasedScalingIntervals) && self.weightBasedScalingIntervals.size() > 0)",
        ),
    )

    @property
    def flat(self) -> bool:
        fields = (self.scale_up_stabilization_window, self.scale_down_stabilization_window, self.min_cpu_change)
        return any(field is not None for field in (*fields, self.min_mem_change, self.hpa_template, self.vpa_template))

    @property
    def nested(self) -> bool:
        return self.hpa is not None or self.vpa is not None

    @property
    def horizontal(self) -> HpaTemplate | None:
        template = self.hpa.template.spec if self.hpa and self.hpa.template else None
        return self.hpa_template or template

    @property
    def bounds(self) -> Bounds:
        """HPA's, else those of the buckets, else the number of pods is left to others."""
        if self.horizontal:
            return Bounds(min_replicas=self.horizontal.min_replicas, max_replicas=self.horizontal.max_replicas)
        if self.buckets:
            first, last = self.buckets[0].replicas, self.buckets[-1].replicas
            return Bounds(min_replicas=first.min, max_replicas=last.max)
        return Bounds(min_replicas=1, max_replicas=INT32)


class Hvpa(Kind):
    """Both axes of one workload, blended by weights or buckets."""

    api_version: Literal["autoscaling.k8s.io/v1alpha1"]
    kind: Literal["Hvpa"]
    spec: HvpaSpec

    def problems(self) -> Iterator[InvalidInput]:
        yield from super().problems()
        yield from annotation_problems(self.metadata.annotations, {EXACT: flag})
        yield from bridge_problems(self.metadata.annotations, _pods(self.spec).signals)
        yield from tuning_problems(self.metadata.annotations)

    @property
    def target(self) -> TargetRef:
        return self.spec.target_ref

    def to_policy(self, at: float) -> Policy:
        spec = self.spec
        return replace(
            _pods(spec),
            bounds=spec.bounds,
            vertical=_vertical(spec),
            blend=_blend(spec, exact=flag(self.metadata.annotations.get(EXACT), "")),
            gates=_gates(spec),
            bridge=annotated(self.metadata.annotations),
            tuning=annotated_tuning(self.metadata.annotations),
            admit=self.admit(),
        )


def _pods(spec: HvpaSpec) -> Policy:
    """HPA's own rules; `hpa.deploy: false` leaves no signal, so only the vertical total moves replicas."""
    template = spec.horizontal
    if template is None or (spec.hpa is not None and not spec.hpa.deploy):
        return Policy(settle=())
    return horizontal(template.min_replicas, template.max_replicas, template.metrics, None)


def _blend(spec: HvpaSpec, exact: bool) -> Blend:
    if spec.buckets:
        return _buckets(spec).rule()
    scale = 1.0 if spec.flat else 100.0
    least, most = spec.bounds.min_replicas, spec.bounds.max_replicas
    intervals = spec.weight_based_scaling_intervals or []
    return Weights(
        stages=tuple(interval.stage(interval.vpa_weight / scale, least, most) for interval in intervals), exact=exact
    )


def _buckets(spec: HvpaSpec) -> BucketsSpec:
    """What an Autoscaler says in one place, with its defaults."""
    said = {
        "buckets": spec.buckets,
        "base": spec.base_resources_per_replica,
        "sizing": spec.sizing,
        "overlap_percent": spec.overlap_percent,
        "grow_past_last": spec.grow_past_last,
    }
    return BucketsSpec.model_construct(None, **{name: value for name, value in said.items() if value is not None})


def _vertical(spec: HvpaSpec) -> Vertical:
    """A vertical half that is not deployed sizes nothing, but the replicas are still weighed."""
    if spec.nested and (spec.vpa is None or not spec.vpa.deploy):
        return Vertical(containers=(ContainerRule(off=True),), apply=Apply.NEVER)
    nested = spec.vpa.template.spec if spec.vpa and spec.vpa.template else None
    template = spec.vpa_template or nested
    policy = template.resource_policy if template else None
    gaps = spec.vpa.limits_requests_gap_scale_params if spec.vpa else None
    return Vertical(
        containers=container_rules(policy.container_policies or [] if policy else []),
        limits=Limits(cpu=_gap(gaps.cpu), memory=_gap(gaps.memory)) if gaps else Limits(),
        apply=Apply.IN_PLACE_OR_RECREATE,
    )


def _gap(params: ChangeParams | None) -> Gap | None:
    """Nothing written, or nothing but zero percent, keeps the ratio of limit to request."""
    if params is None or (params.value is None and not params.percentage):
        return None
    value = 0.0 if params.value is None else parse_quantity(params.value)
    return Gap(percent=float(params.percentage or 0), value=value)


_FREE = ScaleType()


def _gates(spec: HvpaSpec) -> tuple[Gate, ...]:
    window = spec.maintenance_time_window.window() if spec.maintenance_time_window else None
    if spec.flat:
        up_s, down_s = seconds(spec.scale_up_stabilization_window), seconds(spec.scale_down_stabilization_window)
        change = (spec.min_cpu_change, spec.min_mem_change)
        pods = (Side(rest_s=up_s), Side(rest_s=down_s))
        return gates(pods, (Side(UpdateMode.AUTO, up_s, *change), Side(UpdateMode.AUTO, down_s, *change)), window)
    return gates(_sides(spec.hpa), _sides(spec.vpa), window)


def _sides(half: NestedHpa | NestedVpa | None) -> tuple[Side, Side]:
    if half is None:
        return Side(), Side()
    return (half.scale_up or _FREE).side(), (half.scale_down or _FREE).side()
