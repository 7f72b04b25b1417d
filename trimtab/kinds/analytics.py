"""Analytics and Recommendation of Crane (analysis.crane.io/v1alpha1): what to inspect, and what came of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from msgspec.structs import replace
from pydantic import Field

from trimtab.errors import InvalidInput
from trimtab.kinds.config_keys import config_problems, settings_of
from trimtab.kinds.manifest_part import FieldRule, ManifestPart
from trimtab.kinds.meta import Kind
from trimtab.kinds.names import ApiVersion, KindName, NamespaceName, ObjectName
from trimtab.kinds.selector import Selector
from trimtab.policy import Advice, Inspection

ANALYSIS_API = "analysis.crane.io/v1alpha1"
DEFAULT_PERIOD_S = 86400

AdviceType = Literal["HPA", "Resource", "Replicas"]


class CompletionStrategy(ManifestPart):
    """Once, or again and again."""

    completion_strategy_type: Literal["Once", "Periodical"] = "Once"
    """Once, or again and again."""
    period_seconds: Annotated[int, Field(ge=1, le=86400 * 365)] | None = None
    """How often; a day by default."""

    @property
    def period_s(self) -> float | None:
        """None: once and never again."""
        if self.completion_strategy_type == "Once":
            return None
        return float(self.period_seconds or DEFAULT_PERIOD_S)


class ResourceSelector(ManifestPart):
    """One workload by name, or all of a kind whose labels match."""

    kind: KindName
    """Such as Deployment."""
    api_version: ApiVersion
    """Such as apps/v1."""
    name: ObjectName | None = None
    """One workload; left out: all of the kind."""
    label_selector: Selector | None = None
    """By the labels of their pods."""


class AnalyticsSpec(ManifestPart):
    type: AdviceType
    """HPA: should it be autoscaled, and how. Resource: its requests. Replicas: their number."""
    resource_selectors: Annotated[list[ResourceSelector], Field(min_length=1, max_length=20)]
    """Which workloads are looked at."""
    completion_strategy: CompletionStrategy = CompletionStrategy()
    config: dict[str, str] = {}
    """Crane's keys, such as ehpa.default-min-replicas."""

    def problems(self) -> Iterator[InvalidInput]:
        yield from super().problems()
        for problem in config_problems(self.config, Advice(self.type)):
            yield InvalidInput(f'config["{problem.path}"]', problem.value, problem.fix)


class Analytics(Kind):
    """Asks for recommendations."""

    api_version: Literal["analysis.crane.io/v1alpha1"]
    kind: Literal["Analytics"]
    spec: AnalyticsSpec

    def to_inspection(self) -> Inspection:
        advice = Advice(self.spec.type)
        settings = settings_of(self.spec.config, advice)
        return replace(Inspection(advice=advice), **settings)


class ObjectReference(ManifestPart):
    """Kubernetes' ObjectReference, as far as it names a workload."""

    kind: KindName
    """Such as Deployment."""
    name: ObjectName
    """Of the workload."""
    api_version: ApiVersion | None = None
    """Such as apps/v1."""
    namespace: NamespaceName | None = None
    """That of this object."""
    uid: str | None = None
    """Not read."""
    resource_version: str | None = None
    """Not read."""
    field_path: str | None = None
    """Not read."""


class RecommendationSpec(ManifestPart):
    target_ref: ObjectReference
    """The workload it is about."""
    type: AdviceType
    """What is advised."""
    completion_strategy: CompletionStrategy = CompletionStrategy()
    adoption_type: Literal["Status", "StatusAndAnnotation", "Auto"] = "StatusAndAnnotation"
    """Status: told here. StatusAndAnnotation: on the workload, too. Auto: and made an EHPA in Preview."""

    rules: ClassVar[tuple[FieldRule, ...]] = ()


class Recommendation(Kind):
    """What one workload should become; its status carries the value."""

    api_version: Literal["analysis.crane.io/v1alpha1"]
    kind: Literal["Recommendation"]
    spec: RecommendationSpec

    ignored: ClassVar = {
        f"spec.targetRef.{name}": "a workload is found by its kind and name"
        for name in ("uid", "resourceVersion", "fieldPath")
    }

    @property
    def value(self) -> str | None:
        """The recommended YAML, as the status prints it."""
        status: dict[str, Any] = self.status or {}
        return status.get("recommendedValue")
