"""Hvpa (autoscaling.k8s.io/v1alpha1): documents 001 and 004, as a policy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

from msgspec.structs import replace

from trimtab.errors import InvalidInput
from trimtab.kinds.annotations import BRIDGE, EXACT, TUNING
from trimtab.kinds.blend import BucketsSpec
from trimtab.kinds.bridge import annotated, bridge_problems
from trimtab.kinds.horizontal import horizontal
from trimtab.kinds.hvpa_gates import ChangeParams, Side, gates, seconds
from trimtab.kinds.hvpa_spec import FREE, HvpaSpec, NestedHpa, NestedVpa
from trimtab.kinds.meta import Kind, TargetRef, annotation_problems, flag
from trimtab.kinds.tuning import no_tuning
from trimtab.kinds.vertical import container_rules
from trimtab.policy import Apply, Blend, ContainerRule, Gap, Gate, Limits, Policy, UpdateMode, Vertical, Weights
from trimtab.quantity import parse_quantity

_COMPUTED = "both recommendations are computed here; no HPA or VPA object is made"
_APPLIED = "Hvpa applies the recommendation itself"
_NO_REPLICA_CHANGE = "upstream never reads it either"


class Hvpa(Kind):
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
        yield from bridge_problems(self.metadata.annotations, _pods(self.spec).signals)

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
    return (half.scale_up or FREE).side(), (half.scale_down or FREE).side()
