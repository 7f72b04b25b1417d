"""Hvpa (autoscaling.k8s.io/v1alpha1): HVPA weights and HVPA buckets, as an Autoscaler."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from msgspec import structs
from pydantic import Field

from trimtab.errors import InvalidInput
from trimtab.kinds.amounts import INT32, Count, CountOrZero, Duration, Quantity, Target, amount
from trimtab.kinds.annotations import BRIDGE, EXACT, TUNING
from trimtab.kinds.behavior import LONGEST_REST_S
from trimtab.kinds.blend import BaseSpec, BucketSpec, Interval, OverlapPercent, Sizing, bucket_rules
from trimtab.kinds.foreign import SCALING, ForeignKind, Manifest, exact_parts
from trimtab.kinds.horizontal import MIN_AT_MOST_MAX
from trimtab.kinds.hpa import v2_metric
from trimtab.kinds.ledger import Ledger, without_none
from trimtab.kinds.manifest_part import FieldRule, ManifestPart
from trimtab.kinds.meta import TargetRef, annotation_problems, flag
from trimtab.kinds.metric import MOST_METRICS, MetricSpec, ResourceTarget
from trimtab.kinds.names import ContainerName, ResourceName
from trimtab.kinds.tuning import no_tuning
from trimtab.kinds.vertical import Amounts, ContainerPolicy, at_most_cel, distinct_names, min_max_rule, ordered
from trimtab.policy import (
    Apply,
    Axis,
    Direction,
    Gap,
    Gate,
    Limits,
    MaintenanceWindow,
    MinChange,
    Policy,
    Rest,
    Update,
    UpdateMode,
    Weights,
)
from trimtab.quantity import is_whole, parse_duration, parse_quantity

CLOCK = r"^([01][0-9]|2[0-3])[0-5][0-9][0-5][0-9][+-]([01][0-9]|2[0-3])[0-5][0-9]$"
_DAY_S = 86400
_DEFAULT_CHANGE = {Axis.CPU: 0.2, Axis.MEMORY: 200e6}  # 200m and 200M, where HVPA weights leaves them out

Clock = Annotated[str, Field(pattern=CLOCK, max_length=11)]


class ChangeParams(ManifestPart):
    """An amount, a percentage of the present request, or both: then the smaller one counts."""

    value: Quantity | None = None
    """An amount."""
    percentage: Annotated[int, Field(ge=0, le=10000)] | None = None
    """A share of what it is now, in percent."""


class MinChangeSpec(ManifestPart):
    cpu: ChangeParams | None = None
    """Of the CPU request."""
    memory: ChangeParams | None = None
    """Of the memory request."""
    replicas: ChangeParams | None = None
    """Not read, as upstream."""


class UpdatePolicy(ManifestPart):
    update_mode: Literal["Auto", "Off", "MaintenanceWindow"] = "Auto"
    """Auto, Off (quote it) or MaintenanceWindow."""


class ScaleType(ManifestPart):
    """One axis and direction."""

    update_policy: UpdatePolicy | None = None
    """Whether and when."""
    min_change: MinChangeSpec | None = None
    """Smaller changes are not worth it."""
    stabilization_duration: Duration | None = None
    """Rest so long after the last scaling of any kind."""

    def side(self) -> Side:
        change = self.min_change or MinChangeSpec()
        mode = self.update_policy.update_mode if self.update_policy else "Auto"
        return Side(UpdateMode(mode), seconds(self.stabilization_duration), change.cpu, change.memory)


class WindowSpec(ManifestPart):
    """Every day from begin to end, "HHMMSS+ZZZZ", both ends included; may cross midnight."""

    begin: Clock
    """HHMMSS and the offset of the zone, such as 220000+0100."""
    end: Clock
    """The same; may lie after midnight."""

    rules: ClassVar = ()

    def window(self) -> MaintenanceWindow:
        return MaintenanceWindow(begin_s=clock_s(self.begin), end_s=clock_s(self.end))


class Side(NamedTuple):
    """What one axis and direction obeys."""

    mode: UpdateMode = UpdateMode.AUTO
    rest_s: float = 0.0
    cpu: ChangeParams | None = None
    memory: ChangeParams | None = None


def clock_s(text: str, path: str = "") -> int:
    """The UTC second of the day of "160554+0200"."""
    digits = text[:6] + text[7:11]
    if len(text) != 11 or text[6] not in "+-" or not is_whole(digits):
        raise InvalidInput(path, text, 'write HHMMSS and the offset of the zone, such as "220000+0100"')
    hours, minutes, seconds_, off_hours, off_minutes = (int(digits[i : i + 2]) for i in range(0, 10, 2))
    if hours > 23 or minutes > 59 or seconds_ > 59 or off_hours > 23 or off_minutes > 59:
        raise InvalidInput(path, text, "hours go to 23, minutes and seconds to 59")
    offset_s = (off_hours * 3600 + off_minutes * 60) * (1 if text[6] == "+" else -1)
    return (hours * 3600 + minutes * 60 + seconds_ - offset_s) % _DAY_S


def seconds(text: str | None) -> float:
    return 0.0 if text is None else parse_duration(text)


def gates(replicas: tuple[Side, Side], sizes: tuple[Side, Side], window: MaintenanceWindow | None) -> tuple[Gate, ...]:
    """The gates of both axes; each pair is (up, down)."""
    found: list[Gate] = []
    for direction, side in zip(Direction, replicas, strict=True):
        found += _mode_gates(Axis.REPLICAS, direction, side, UpdateMode.OFF, window)
        found += _mode_gates(Axis.REPLICAS, direction, side, UpdateMode.WINDOW, window)
        found += _rests(Axis.REPLICAS, direction, side)
    for axis in (Axis.CPU, Axis.MEMORY):
        for direction, side in zip(Direction, sizes, strict=True):
            found += _mode_gates(axis, direction, side, UpdateMode.OFF, window)
            found += _rests(axis, direction, side)
            found += _mode_gates(axis, direction, side, UpdateMode.WINDOW, window)
            found.append(_smallest(axis, direction, side))
    return tuple(found)


def _mode_gates(
    axis: Axis, direction: Direction, side: Side, mode: UpdateMode, window: MaintenanceWindow | None
) -> list[Gate]:
    if side.mode is not mode:
        return []
    open_in = window if mode is UpdateMode.WINDOW else None
    return [Update(axis=axis, direction=direction, mode=mode, window=open_in)]


def _rests(axis: Axis, direction: Direction, side: Side) -> list[Gate]:
    return [Rest(axis=axis, direction=direction, window_s=side.rest_s)] if side.rest_s else []


def _smallest(axis: Axis, direction: Direction, side: Side) -> MinChange:
    params = (side.cpu if axis is Axis.CPU else side.memory) or ChangeParams()
    value, percent = amount(params.value), params.percentage
    if value is None and percent is None:
        value = _DEFAULT_CHANGE[axis]
    return MinChange(axis=axis, direction=direction, value=value, percent=None if percent is None else float(percent))


_TARGET_FIELDS = ("target", "targetAverageUtilization", "targetAverageValue")


def _ways(part: HvpaResource) -> list[object]:
    return [part.target, part.target_average_utilization, part.target_average_value]


class HvpaResource(ManifestPart):
    """A CPU or memory metric, with the target as autoscaling/v2 or v2beta1 writes it."""

    name: ResourceName
    """cpu or memory."""
    target: ResourceTarget | None = None
    """As autoscaling/v2 writes it."""
    target_average_utilization: Count | None = None
    """As v2beta1 writes it: percent of what the pods request."""
    target_average_value: Target | None = None
    """As v2beta1 writes it: so much for each pod."""

    rules: ClassVar[tuple[FieldRule, ...]] = (
        FieldRule(
            lambda r: _ways(r).count(None) == 2,
            at="target",
            fix="set exactly one of target, targetAverageUtilization, targetAverageValue",
            schema={"oneOf": [{"required": [way]} for way in _TARGET_FIELDS]},
        ),
    )


class HvpaContainer(HvpaResource):
    container: ContainerName
    """The container, by name."""


class HvpaMetric(MetricSpec):
    """One metric, in the spelling of autoscaling/v2 or (CPU and memory) v2beta1."""

    resource: HvpaResource | None = None  # type: ignore[assignment]
    """CPU or memory of whole pods."""
    container_resource: HvpaContainer | None = None  # type: ignore[assignment]
    """CPU or memory of one container."""


class HvpaContainerPolicy(ContainerPolicy):
    """VPA's policy of one container; HVPA spells one key `MinAllowed`."""

    capital_min_allowed: Annotated[Amounts | None, Field(alias="MinAllowed")] = None
    """minAllowed, as HVPA spells it."""

    rules: ClassVar[tuple[FieldRule, ...]] = (
        min_max_rule(),
        FieldRule(
            lambda p: ordered(p.capital_min_allowed, p.max_allowed),
            at="MinAllowed",
            fix="must not be above maxAllowed",
            cel=" && ".join(
                at_most_cel(
                    f"self.MinAllowed.{resource}",
                    f"self.maxAllowed.{resource}",
                    "!has(self.MinAllowed) || !has(self.maxAllowed)",
                )
                for resource in ("cpu", "memory")
            ),
        ),
        FieldRule(
            lambda p: p.capital_min_allowed is None or p.min_allowed is None,
            at="MinAllowed",
            fix="write minAllowed once",
            cel="!has(self.MinAllowed) || !has(self.minAllowed)",
        ),
    )


class HvpaResourcePolicy(ManifestPart):
    container_policies: Annotated[list[HvpaContainerPolicy], Field(max_length=50)] | None = None
    """Bounds of each container."""

    rules: ClassVar[tuple[FieldRule, ...]] = (distinct_names(),)

    def as_vpa_writes_it(self) -> dict[str, Any]:
        written = self.manifest()
        for container in written.get("containerPolicies") or []:
            if "MinAllowed" in container:
                container["minAllowed"] = container.pop("MinAllowed")
        return written


OF_BUCKETS = {  # as written, and as an attribute
    "baseResourcesPerReplica": "base_resources_per_replica",
    "sizing": "sizing",
    "overlapPercent": "overlap_percent",
    "growPastLast": "grow_past_last",
}


def belongs_to_buckets(written: str, attribute: str) -> FieldRule:
    return FieldRule(
        lambda s: getattr(s, attribute) is None or s.buckets is not None,
        at=written,
        fix="it belongs to buckets; weights do not know it",
        cel=f"!has(self.{written}) || has(self.buckets)",
    )


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


_WAYS = ("scaleUp", "scaleDown")
_REST = "sizes no longer rest after a change"
_SMALL = "small changes of a size are no longer held back"
_OFF = {"apply": "Never", "resourcePolicy": {"containerPolicies": [{"containerName": "*", "mode": "Off"}]}}
_COMPUTED = "both recommendations are computed here; no HPA or VPA object is made"
_APPLIED = "Hvpa applies the recommendation itself"
_NO_REPLICA_CHANGE = "upstream never reads it either"


class Hvpa(ForeignKind):
    """Both axes of one workload, blended by weights or buckets."""

    api_version: Literal["autoscaling.k8s.io/v1alpha1"]
    kind: Literal["Hvpa"]
    spec: HvpaSpec

    ignored: ClassVar = {
        "spec.replicas": "the number of replicas is decided, not written here",
        "spec.hpa.selector": _COMPUTED,
        "spec.hpa.template.metadata": _COMPUTED,
        "spec.vpa.selector": _COMPUTED,
        "spec.vpa.template.metadata": _COMPUTED,
        "spec.vpaTemplate.updatePolicy": _APPLIED,
        "spec.vpa.template.spec.updatePolicy": _APPLIED,
        "spec.hpa.scaleUp.minChange": _NO_REPLICA_CHANGE,
        "spec.hpa.scaleDown.minChange": _NO_REPLICA_CHANGE,
        "spec.vpa.scaleUp.minChange.replicas": _NO_REPLICA_CHANGE,
        "spec.vpa.scaleDown.minChange.replicas": _NO_REPLICA_CHANGE,
        "spec.vpa.limitsRequestsGapScaleParams.replicas": _NO_REPLICA_CHANGE,
    }

    @property
    def own_annotations(self) -> tuple[str, ...]:
        return (EXACT, BRIDGE)

    def problems(self) -> Iterator[InvalidInput]:
        yield from super().problems()
        yield from annotation_problems(self.metadata.annotations, {EXACT: flag, TUNING: no_tuning})

    def as_autoscaler(self, metadata: Manifest, ledger: Ledger) -> Manifest:
        """Rests of replicas become cooldowns, directions that are off stay off; gates of sizes are approximated."""
        spec, template = self.spec, self.spec.horizontal
        _place(spec, ledger)
        made: Manifest = {"scaleTargetRef": spec.target_ref.manifest()} | self.annotated_parts(ledger)
        if template:
            made |= {name: part for name, part in template.manifest().items() if name in SCALING}
            made["metrics"] = [v2_metric(metric.manifest()) for metric in template.metrics or []]
        moves = template is not None and (spec.hpa is None or spec.hpa.deploy)
        if template and not moves:
            ledger.approximate("spec.hpa.deploy", "the metrics of an Autoscaler always count", signal=True)
        vertical = _vertical(spec, made, ledger)
        blend = _blend(spec, made, self.exact, ledger)
        if blend and self.exact:
            ledger.approximate(f'metadata.annotations["{EXACT}"]', "an Autoscaler follows the text where both differ")
        behavior = _behavior(spec, ledger)
        if behavior and template:
            made["behavior"] = behavior
        for way in () if template else behavior:
            ledger.approximate(
                f"spec.{way}StabilizationWindow" if spec.flat else f"spec.hpa.{way}", "nothing moves replicas here"
            )
        still = not moves and "maxReplicas" in made
        return made | exact_parts(
            signals=[] if still else None,
            settle=[] if still else Policy().settle if "behavior" in made else None,
            vertical=vertical or None,
            blend=blend or None,
            gates=gates(spec.replica_sides, spec.size_sides, spec.window),
        )

    @property
    def exact(self) -> bool:
        """Whether its weights follow the released program; nothing else of it differs."""
        return flag(self.metadata.annotations.get(EXACT), "") and not self.spec.buckets


def _place(spec: HvpaSpec, ledger: Ledger) -> None:
    hpa, vpa = ("hpaTemplate", "vpaTemplate") if spec.flat else ("hpa.template.spec", "vpa.template.spec")
    ledger.places({f"spec.{name}": f"spec.{hpa}.{name}" for name in ("minReplicas", "maxReplicas", "metrics")})
    ledger.places(
        {
            "spec.scaleTargetRef": "spec.targetRef",
            "spec.vertical.resourcePolicy": f"spec.{vpa}.resourcePolicy",
            "spec.vertical": "spec.vpaTemplate" if spec.flat else "spec.vpa",
            "spec.blend": "spec.buckets" if spec.buckets else "spec.weightBasedScalingIntervals",
            "spec.blend.weights.intervals": "spec.weightBasedScalingIntervals",
            "spec.blend.buckets.buckets": "spec.buckets",
            "spec.blend.buckets.base": "spec.baseResourcesPerReplica",
        }
    )
    for way in _WAYS:
        rest = f"spec.{way}StabilizationWindow" if spec.flat else f"spec.hpa.{way}.stabilizationDuration"
        ledger.place(f"spec.behavior.{way}.cooldownSeconds", rest)
        ledger.place(f"spec.behavior.{way}.selectPolicy", f"spec.hpa.{way}.updatePolicy.updateMode")


def _blend(spec: HvpaSpec, made: Manifest, as_released: bool, ledger: Ledger) -> Manifest:
    """Add the blend; return what of it no field of an Autoscaler holds."""
    if spec.buckets:
        made["blend"] = {"buckets": spec.of_buckets()}
        if "maxReplicas" not in made:
            made |= {"minReplicas": spec.buckets[0].replicas.min, "maxReplicas": spec.buckets[-1].replicas.max}
            why = (
                "no metric moves these replicas, but an Autoscaler without a metric follows CPU at 80 % of its requests"
            )
            ledger.approximate("spec.buckets", why, signal=True)
        return {}
    intervals, scale = spec.weight_based_scaling_intervals or [], 1.0 if spec.flat else 100.0
    if "maxReplicas" in made:
        stages = [interval.manifest() | {"vpaWeight": interval.vpa_weight / scale} for interval in intervals]
        made["blend"] = {"weights": {"intervals": stages}}
        return {"exact": True} if as_released else {}
    why = "nothing here moves replicas, so there is nothing to weigh: sizes change in full"
    ledger.approximate("spec.weightBasedScalingIntervals", why)
    ledger.place("spec.maxReplicas", "spec")
    weights = tuple(interval.stage(interval.vpa_weight / scale, 1, INT32) for interval in intervals)
    return structs.asdict(Weights(stages=weights, exact=as_released)) | {"is": "Weights"}


def _vertical(spec: HvpaSpec, made: Manifest, ledger: Ledger) -> Manifest:
    """Add the vertical part; return what of it no field holds. A half that is not deployed sizes nothing."""
    if spec.nested and (spec.vpa is None or not spec.vpa.deploy):
        made["vertical"] = _OFF
        return {}
    policy = spec.resource_policy
    made["vertical"] = {"apply": "InPlaceOrRecreate"} | without_none(
        resourcePolicy=policy and policy.as_vpa_writes_it()
    )
    held = _sizes(spec, ledger)
    if held:
        made["vertical"]["apply"] = "Never"
    gaps = spec.vpa.limits_requests_gap_scale_params if spec.vpa else None
    if gaps:
        ledger.approximate("spec.vpa.limitsRequestsGapScaleParams", "limits stay in proportion to requests")
    return without_none(
        apply=Apply.IN_PLACE_OR_RECREATE if held else None,
        limits=Limits(cpu=_gap(gaps.cpu), memory=_gap(gaps.memory)) if gaps else None,
    )


def _gap(params: ChangeParams | None) -> Gap | None:
    """Nothing written, or nothing but zero percent, keeps the ratio of limit to request."""
    if params is None or (params.value is None and not params.percentage):
        return None
    value = 0.0 if params.value is None else parse_quantity(params.value)
    return Gap(percent=float(params.percentage or 0), value=value)


def _behavior(spec: HvpaSpec, ledger: Ledger) -> Manifest:
    """What behavior can express of the gates of replicas."""
    behavior: Manifest = {}
    for way, side in zip(_WAYS, spec.replica_sides, strict=True):
        rules: Manifest = {}
        if side.rest_s:
            rest = f"spec.behavior.{way}.cooldownSeconds"
            rules["cooldownSeconds"] = ledger.at_most(rest, round(side.rest_s), LONGEST_REST_S)
        if side.mode is UpdateMode.OFF:
            rules["selectPolicy"] = "Disabled"
        elif side.mode is UpdateMode.WINDOW:
            ledger.approximate(f"spec.hpa.{way}.updatePolicy.updateMode", "replicas change at any time of the day")
        if rules:
            behavior[way] = rules
    return behavior


def _sizes(spec: HvpaSpec, ledger: Ledger) -> bool:
    """Approximate the gates of sizes; return whether sizes are switched off in both directions."""
    sides = spec.size_sides
    held = all(side.mode is UpdateMode.OFF for side in sides)
    for way, side in zip(_WAYS, sides, strict=True):
        path = f"spec.vpa.{way}"
        if side.mode is UpdateMode.OFF and not held:
            ledger.approximate(f"{path}.updatePolicy.updateMode", "an Autoscaler sizes in both directions")
        elif side.mode is UpdateMode.WINDOW:
            ledger.approximate(f"{path}.updatePolicy.updateMode", "sizes change at any time of the day")
        if side.rest_s:
            ledger.approximate(
                f"spec.{way}StabilizationWindow" if spec.flat else f"{path}.stabilizationDuration", _REST
            )
        if not spec.flat and (side.cpu or side.memory):
            ledger.approximate(f"{path}.minChange", _SMALL)
    if spec.flat:
        ledger.approximate_written("spec", spec.manifest(), ("minCpuChange", "minMemChange"), _SMALL)
    if not any(side.cpu for side in sides):
        ledger.approximate("spec.minCpuChange", "changes below 200m and 200M are no longer held back")
    return held
