"""Hvpa (autoscaling.k8s.io/v1alpha1): HVPA weights and HVPA buckets, as an Autoscaler."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

from msgspec import structs

from trimtab.errors import InvalidInput
from trimtab.kinds.amounts import INT32
from trimtab.kinds.annotations import BRIDGE, EXACT, TUNING
from trimtab.kinds.behavior import LONGEST_REST_S
from trimtab.kinds.foreign import SCALING, ForeignKind, Manifest, exact_parts
from trimtab.kinds.hpa_v2beta1 import v2_metric
from trimtab.kinds.hvpa_gates import ChangeParams, gates
from trimtab.kinds.hvpa_spec import HvpaSpec
from trimtab.kinds.ledger import Ledger, without_none
from trimtab.kinds.meta import annotation_problems, flag
from trimtab.kinds.tuning import no_tuning
from trimtab.policy import Apply, Gap, Limits, Policy, UpdateMode, Weights
from trimtab.quantity import parse_quantity

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
