"""The spec of an Hvpa, in HVPA's flat form and in the nested one of its releases, and what must hold of it.

Flat: weights are fractions 0..1. Nested: whole percent 0..100. Weights or buckets, never both.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import Field

from trimtab.kinds.amounts import Count, CountOrZero, Duration
from trimtab.kinds.blend import BaseSpec, BucketSpec, Interval, OverlapPercent, Sizing, bucket_rules
from trimtab.kinds.horizontal import MIN_AT_MOST_MAX
from trimtab.kinds.hvpa_gates import ChangeParams, ScaleType, Side, WindowSpec, seconds
from trimtab.kinds.hvpa_parts import OF_BUCKETS, HvpaMetric, HvpaResourcePolicy, belongs_to_buckets
from trimtab.kinds.manifest_part import FieldRule, ManifestPart
from trimtab.kinds.meta import TargetRef
from trimtab.kinds.metric import MOST_METRICS
from trimtab.policy import MaintenanceWindow, UpdateMode

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


FREE = ScaleType()  # where nothing is written about a direction


class HpaTemplate(ManifestPart):
    """What the horizontal half follows."""

    min_replicas: Count = 1
    """The floor."""
    max_replicas: Count
    """The ceiling."""
    metrics: Annotated[list[HvpaMetric], Field(max_length=MOST_METRICS)] | None = None
    """As in autoscaling/v2 or v2beta1. None: CPU at 80 %."""

    rules: ClassVar = (MIN_AT_MOST_MAX,)


class VpaTemplate(ManifestPart):
    """What the vertical half follows."""

    resource_policy: HvpaResourcePolicy | None = None
    """Bounds of each container."""
    update_policy: dict[str, Any] | None = None
    """Not read."""


class NestedHpaTemplate(ManifestPart):
    metadata: dict[str, Any] | None = None
    """Not read."""
    spec: HpaTemplate
    """Bounds and metrics."""


class NestedHpa(ManifestPart):
    selector: dict[str, Any] | None = None
    """Not read."""
    deploy: bool = True
    """false: sizes alone."""
    scale_up: ScaleType | None = None
    """When replicas may grow."""
    scale_down: ScaleType | None = None
    """When replicas may shrink."""
    template: NestedHpaTemplate | None = None
    """Bounds and metrics."""


class NestedVpaTemplate(ManifestPart):
    metadata: dict[str, Any] | None = None
    """Not read."""
    spec: VpaTemplate | None = None
    """Bounds of each container."""


class GapParams(ManifestPart):
    """How far limits stay above requests."""

    cpu: ChangeParams | None = None
    """Of the CPU limit."""
    memory: ChangeParams | None = None
    """Of the memory limit."""
    replicas: ChangeParams | None = None
    """Not read, as upstream."""


class NestedVpa(ManifestPart):
    selector: dict[str, Any] | None = None
    """Not read."""
    deploy: bool = True
    """false: replicas alone."""
    scale_up: ScaleType | None = None
    """When sizes may grow."""
    scale_down: ScaleType | None = None
    """When sizes may shrink."""
    template: NestedVpaTemplate | None = None
    """Bounds of each container."""
    limits_requests_gap_scale_params: GapParams | None = None
    """How far limits lie above requests; left out: in the proportion they have."""


class HvpaInterval(Interval):
    """A stage; the weight is a fraction in the flat form and percent in the nested one."""

    vpa_weight: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]
    """The share of a change that sizes take: 0 to 1 beside hpaTemplate, percent beside hpa and vpa."""


def _modes(spec: HvpaSpec) -> list[UpdateMode]:
    return [side.mode for side in (*_sides(spec.hpa), *_sides(spec.vpa))]


class HvpaSpec(ManifestPart):
    target_ref: TargetRef
    """The workload."""
    replicas: CountOrZero | None = None
    """For the scale subresource; decides nothing."""
    scale_up_stabilization_window: Duration | None = None
    """No growing so long after the last scaling of any kind."""
    scale_down_stabilization_window: Duration | None = None
    """No shrinking so long after the last scaling of any kind."""
    min_cpu_change: ChangeParams | None = None
    """Smaller changes of CPU are not worth it."""
    min_mem_change: ChangeParams | None = None
    """Smaller changes of memory are not worth it."""
    hpa_template: HpaTemplate | None = None
    """The flat form of HVPA weights; weights are then fractions."""
    vpa_template: VpaTemplate | None = None
    """Bounds of each container."""
    maintenance_time_window: WindowSpec | None = None
    """When updateMode: MaintenanceWindow lets changes through."""
    hpa: NestedHpa | None = None
    """The nested form; weights are then percent."""
    vpa: NestedVpa | None = None
    """How sizes change, as later releases write it."""
    weight_based_scaling_intervals: Annotated[list[HvpaInterval], Field(max_length=50)] | None = None
    """HVPA weights: how much of each change is vertical, by the number of replicas."""
    buckets: Annotated[list[BucketSpec], Field(min_length=1, max_length=50)] | None = None
    """HVPA buckets: ranges of replicas and of the size of each."""
    base_resources_per_replica: BaseSpec | None = None
    """With buckets: what a replica uses without doing any work."""
    sizing: Sizing | None = None
    """With buckets: how large each replica becomes; Guarded by default, MaxOfVpaAndShare is the proposal's rule of
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
            fix="write either hpaTemplate and vpaTemplate (HVPA's first README) or hpa and vpa",
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
    def resource_policy(self) -> HvpaResourcePolicy | None:
        nested = self.vpa.template.spec if self.vpa and self.vpa.template else None
        template = self.vpa_template or nested
        return template.resource_policy if template else None

    @property
    def window(self) -> MaintenanceWindow | None:
        return self.maintenance_time_window.window() if self.maintenance_time_window else None

    @property
    def replica_sides(self) -> tuple[Side, Side]:
        """What scaling replicas up and down obeys."""
        if self.flat:
            return Side(rest_s=self._rests_s[0]), Side(rest_s=self._rests_s[1])
        return _sides(self.hpa)

    @property
    def size_sides(self) -> tuple[Side, Side]:
        """What growing and shrinking sizes obeys."""
        if self.flat:
            up_s, down_s = self._rests_s
            change = (self.min_cpu_change, self.min_mem_change)
            return Side(UpdateMode.AUTO, up_s, *change), Side(UpdateMode.AUTO, down_s, *change)
        return _sides(self.vpa)

    @property
    def _rests_s(self) -> tuple[float, float]:
        return seconds(self.scale_up_stabilization_window), seconds(self.scale_down_stabilization_window)

    def of_buckets(self) -> dict[str, Any]:
        """The buckets and what belongs to them, as an Autoscaler spells it."""
        written = self.manifest()
        names = {"buckets": "buckets", "base": "baseResourcesPerReplica"} | {
            name: name for name in ("sizing", "overlapPercent", "growPastLast")
        }
        return {name: written[theirs] for name, theirs in names.items() if theirs in written}


def _sides(half: NestedHpa | NestedVpa | None) -> tuple[Side, Side]:
    if half is None:
        return Side(), Side()
    return (half.scale_up or FREE).side(), (half.scale_down or FREE).side()
