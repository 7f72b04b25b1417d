"""HorizontalPodAutoscaler: autoscaling/v2, v2beta2, v1; predictive HPA's annotation lets a forecast raise its floor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from trimtab.errors import InvalidInput
from trimtab.kinds.amounts import Count, CountOrZero
from trimtab.kinds.annotations import BRIDGE, EXACT, HPA_V1_BEHAVIOR, HPA_V1_METRICS, PREDICTIVE
from trimtab.kinds.behavior import Behavior
from trimtab.kinds.bridge import no_bridge
from trimtab.kinds.foreign import ForeignKind, Manifest
from trimtab.kinds.horizontal import MIN_AT_MOST_MAX, ZERO_NEEDS_EYES
from trimtab.kinds.ledger import Ledger
from trimtab.kinds.manifest_part import FieldRule, ManifestPart
from trimtab.kinds.meta import TargetRef, annotation_problems, flag, predictive
from trimtab.kinds.metric import ExternalMetricSource, MetricSpec

_V1_TARGET = "targetCPUUtilizationPercentage"
# Fields of approved Kubernetes enhancements. Nothing here acts on them, which is said instead of refusing the object.
_UPCOMING = {
    "selectionStrategy": "pods belong to their workload by owner references, which is OwnerReferences",
    "syncPeriodSeconds": "every object is looked at in each tick of the operator (--tick)",
}
_FALLBACK = "while the metric is missing nothing shrinks; spec.onMetricFailure of an Autoscaler sets a floor"


class ExternalOrFallback(ExternalMetricSource):
    fallback: dict[str, Any] | None = None


class HpaMetric(MetricSpec):
    external: ExternalOrFallback | None = None


class HpaSpec(ManifestPart):
    scale_target_ref: TargetRef
    min_replicas: CountOrZero = 1
    max_replicas: Count
    metrics: Annotated[list[HpaMetric], Field(max_length=50)] | None = None
    behavior: Behavior | None = None
    selection_strategy: Literal["LabelSelector", "OwnerReferences"] | None = None
    sync_period_seconds: Count | None = None

    rules: ClassVar[tuple[FieldRule, ...]] = (MIN_AT_MOST_MAX, ZERO_NEEDS_EYES)


class AnyHpa(ForeignKind):
    """What all versions of the API share."""

    kind: Literal["HorizontalPodAutoscaler"]

    crd: ClassVar[bool] = False

    @property
    def predictive(self) -> bool:
        """Predictive HPA's switch; one that says neither is off, and refused below."""
        try:
            return predictive(self.metadata.annotations.get(PREDICTIVE), "")
        except InvalidInput:
            return False

    def problems(self) -> Iterator[InvalidInput]:
        yield from super().problems()
        yield from annotation_problems(
            self.metadata.annotations, {PREDICTIVE: predictive, EXACT: flag, BRIDGE: no_bridge}
        )

    @property
    def own_annotations(self) -> tuple[str, ...]:
        return (EXACT,) if self.predictive else ()

    def as_autoscaler(self, metadata: Manifest, ledger: Ledger) -> Manifest:
        """The same spec; predictive HPA's annotations become a forecast, which only adds."""
        made = self.scaling(ledger)
        lose_upcoming(made, ledger)
        if self.predictive:
            exact = flag(self.metadata.annotations.get(EXACT), "")
            made["forecast"] = {"model": "linear"} | ({"exact": True} if exact else {})
            ledger.place("spec.forecast", f'metadata.annotations["{PREDICTIVE}"]')
            ledger.place("spec.forecast.exact", f'metadata.annotations["{EXACT}"]')
        return made

    def scaling(self, ledger: Ledger) -> Manifest:
        raise NotImplementedError


def lose_upcoming(made: Manifest, ledger: Ledger) -> None:
    """Take fields that Kubernetes will have out of a spec, each with the reason."""
    for name, why in _UPCOMING.items():
        if made.pop(name, "OwnerReferences") != "OwnerReferences":
            ledger.lose(f"spec.{name}", why)
    for index, metric in enumerate(made.get("metrics") or []):
        if metric.get("external", {}).pop("fallback", None) is not None:
            ledger.lose(f"spec.metrics[{index}].external.fallback", _FALLBACK)


class HpaWithMetrics(AnyHpa):
    """What the versions share that name their metrics."""

    spec: HpaSpec

    def scaling(self, ledger: Ledger) -> Manifest:
        return self.spec.manifest()


class Hpa(HpaWithMetrics):
    api_version: Literal["autoscaling/v2", "autoscaling/v2beta2"]


class HpaV1Spec(ManifestPart):
    scale_target_ref: TargetRef
    min_replicas: Count = 1
    max_replicas: Count
    target_cpu: Annotated[Count | None, Field(alias=_V1_TARGET)] = None
    sync_period_seconds: Count | None = None

    rules: ClassVar[tuple[FieldRule, ...]] = (MIN_AT_MOST_MAX,)


class HpaV1(AnyHpa):
    """autoscaling/v1; metrics hidden in its annotations are refused, not ignored."""

    api_version: Literal["autoscaling/v1"]
    spec: HpaV1Spec

    def problems(self) -> Iterator[InvalidInput]:
        yield from super().problems()
        for key in (HPA_V1_METRICS, HPA_V1_BEHAVIOR):
            if key in self.metadata.annotations:
                fix = "read it as autoscaling/v2: kubectl get hpa.v2.autoscaling NAME -o yaml"
                yield InvalidInput(f'metadata.annotations["{key}"]', self.metadata.annotations[key], fix)

    def scaling(self, ledger: Ledger) -> Manifest:
        made = self.spec.manifest()
        if (percent := made.pop(_V1_TARGET, None)) is not None:
            target = {"type": "Utilization", "averageUtilization": percent}
            made["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
            ledger.place("spec.metrics", f"spec.{_V1_TARGET}")
        return made


_TARGETS = {
    "targetAverageUtilization": ("Utilization", "averageUtilization"),
    "targetAverageValue": ("AverageValue", "averageValue"),
    "averageValue": ("AverageValue", "averageValue"),
    "targetValue": ("Value", "value"),
}


def v2_metric(metric: Any) -> Any:
    """A metric of v2beta1 in the words of v2; one that is written in them stays as it is."""
    if not isinstance(metric, dict):
        return metric
    return {name: _v2_member(inner) if isinstance(inner, dict) else inner for name, inner in metric.items()}


def _v2_member(member: dict[str, Any]) -> dict[str, Any]:
    made = dict(member)
    if isinstance(made.get("target"), dict) and "kind" in made["target"]:
        made["describedObject"] = made.pop("target")
    if "metricName" in made:
        selector = made.pop("selector", None) or made.pop("metricSelector", None)
        made["metric"] = {"name": made.pop("metricName")} | ({"selector": selector} if selector else {})
    for name, (kind, field) in _TARGETS.items():
        if (value := made.pop(name, None)) is not None:
            made["target"] = {"type": kind, field: value}
    return made


class HpaV2beta1(HpaWithMetrics):
    api_version: Literal["autoscaling/v2beta1"]

    @model_validator(mode="before")
    @classmethod
    def _as_v2(cls, manifest: Any) -> Any:
        spec = manifest.get("spec") if isinstance(manifest, dict) else None
        if not isinstance(spec, dict) or not isinstance(spec.get("metrics"), list):
            return manifest
        return {**manifest, "spec": {**spec, "metrics": [v2_metric(metric) for metric in spec["metrics"]]}}
