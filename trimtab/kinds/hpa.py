"""HorizontalPodAutoscaler: autoscaling/v2, v2beta2, v1; document 003's annotation lets a forecast raise its floor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from msgspec.structs import replace
from pydantic import Field

from trimtab.errors import InvalidInput
from trimtab.kinds.amounts import Count, CountOrZero
from trimtab.kinds.annotations import BRIDGE, EXACT, HPA_V1_BEHAVIOR, HPA_V1_METRICS, PREDICTIVE
from trimtab.kinds.behavior import Behavior
from trimtab.kinds.bridge import no_bridge
from trimtab.kinds.horizontal import EXACT_LINE, LINE, MIN_AT_MOST_MAX, ZERO_NEEDS_EYES, horizontal
from trimtab.kinds.manifest_part import FieldRule, ManifestPart
from trimtab.kinds.meta import Kind, TargetRef, annotation_problems, flag, predictive
from trimtab.kinds.metric import DEFAULT_CPU_PERCENT, MOST_FORECASTS, MetricSpec, cpu_of_request
from trimtab.policy import Policy

MetricList = Annotated[list[MetricSpec], Field(max_length=50)]


class HpaSpec(ManifestPart):
    scale_target_ref: TargetRef
    min_replicas: CountOrZero = 1
    max_replicas: Count
    metrics: MetricList | None = None
    behavior: Behavior | None = None

    rules: ClassVar[tuple[FieldRule, ...]] = (MIN_AT_MOST_MAX, ZERO_NEEDS_EYES)


class AnyHpa(Kind):
    """What all versions of the API share."""

    kind: Literal["HorizontalPodAutoscaler"]

    crd: ClassVar[bool] = False

    @property
    def predictive(self) -> bool:
        """Document 003's switch; one that says neither is off, and refused below."""
        try:
            return predictive(self.metadata.annotations.get(PREDICTIVE), "")
        except InvalidInput:
            return False

    def problems(self) -> Iterator[InvalidInput]:
        yield from super().problems()
        yield from annotation_problems(
            self.metadata.annotations, {PREDICTIVE: predictive, EXACT: flag, BRIDGE: no_bridge}
        )

    def _with_forecast(self, policy: Policy) -> Policy:
        """The forecast only adds: the HPA keeps scaling, its floor is what we raise."""
        exact = flag(self.metadata.annotations.get(EXACT), "")
        forecast = (EXACT_LINE if exact else LINE) if self.predictive else None
        return replace(policy, admit=self.admit(), forecast=forecast)


class HpaWithMetrics(AnyHpa):
    """What the versions share that name their metrics."""

    spec: HpaSpec

    def problems(self) -> Iterator[InvalidInput]:
        yield from super().problems()
        if self.predictive and len(self.spec.metrics or []) > MOST_FORECASTS:
            fix = f"a forecast looks ahead for at most {MOST_FORECASTS} metrics, of which this has more"
            yield InvalidInput(f'metadata.annotations["{PREDICTIVE}"]', "true", fix)

    @property
    def target(self) -> TargetRef:
        return self.spec.scale_target_ref

    def to_policy(self, at: float) -> Policy:
        spec = self.spec
        return self._with_forecast(horizontal(spec.min_replicas, spec.max_replicas, spec.metrics, spec.behavior))


class Hpa(HpaWithMetrics):
    api_version: Literal["autoscaling/v2", "autoscaling/v2beta2"]


class HpaV1Spec(ManifestPart):
    scale_target_ref: TargetRef
    min_replicas: Count = 1
    max_replicas: Count
    target_cpu: Annotated[Count | None, Field(alias="targetCPUUtilizationPercentage")] = None

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

    @property
    def target(self) -> TargetRef:
        return self.spec.scale_target_ref

    def to_policy(self, at: float) -> Policy:
        spec = self.spec
        signals = (cpu_of_request(spec.target_cpu or DEFAULT_CPU_PERCENT),)
        policy = horizontal(spec.min_replicas, spec.max_replicas, None, None)
        return self._with_forecast(replace(policy, signals=signals))
