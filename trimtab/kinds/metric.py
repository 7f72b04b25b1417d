"""The metrics of autoscaling/v2 and, for Autoscaler, a Prometheus query; each becomes one Signal."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field
from pydantic.alias_generators import to_snake

from trimtab.kinds.amounts import Count, Target
from trimtab.kinds.manifest_part import FieldRule, ManifestPart
from trimtab.kinds.meta import ObjectRef
from trimtab.kinds.names import ContainerName, MetricName, ResourceName, Title
from trimtab.kinds.selector import Selector
from trimtab.policy import Metric, MetricKind, PodAverage, Signal, Tolerance, Total, TotalAverage, Utilization
from trimtab.quantity import parse_quantity

LONGEST_QUERY = 4096
MOST_METRICS = 20
MOST_FORECASTS = 4  # metrics of one object that a forecast looks ahead for

TargetType = Literal["Utilization", "AverageValue", "Value"]


def _exactly_one(name: str, other: str, attributes: tuple[str, str], fix: str) -> FieldRule:
    schema = {"oneOf": [{"required": [name]}, {"required": [other]}]}
    first, second = attributes
    return FieldRule(
        lambda t: (getattr(t, first) is None) != (getattr(t, second) is None), at="", fix=fix, schema=schema
    )


class ResourceTarget(ManifestPart):
    """How much of the request, or how much of the resource, each pod may use; `type` is what people read."""

    type: TargetType
    """Utilization or AverageValue; the field that is set decides."""
    average_utilization: Count | None = None
    """Percent of what the pods request; above 100 is allowed."""
    average_value: Target | None = None
    """So much for each pod, such as 500m or 1Gi."""

    rules: ClassVar = (
        _exactly_one(
            "averageUtilization",
            "averageValue",
            ("average_utilization", "average_value"),
            "set either averageUtilization (percent of the request) or averageValue",
        ),
    )


class AverageTarget(ManifestPart):
    """A value for each pod."""

    type: TargetType
    """AverageValue."""
    average_value: Target
    """So much for each pod."""


class ValueTarget(ManifestPart):
    """One value for the whole, or a share for each pod."""

    type: TargetType
    """Value or AverageValue; the field that is set decides."""
    value: Target | None = None
    """So much for the whole: replicas are multiplied by value / target."""
    average_value: Target | None = None
    """So much for each pod: replicas are the total / target."""

    rules: ClassVar = (
        _exactly_one(
            "value",
            "averageValue",
            ("value", "average_value"),
            "set either value or averageValue (a share for each pod)",
        ),
    )


class NamedMetric(ManifestPart):
    name: MetricName
    """Its name in the metrics API."""
    selector: Selector | None = None
    """Which of its series count."""

    @property
    def selector_text(self) -> str:
        return self.selector.text if self.selector else ""


class ResourceMetricSource(ManifestPart):
    """CPU or memory of whole pods."""

    name: ResourceName
    """cpu or memory."""
    target: ResourceTarget
    """What each pod may use."""

    @property
    def goal(self) -> ResourceTarget:
        return self.target


class ContainerResourceMetricSource(ResourceMetricSource):
    """CPU or memory of one container."""

    container: ContainerName
    """The container, by name; sidecars do not count."""


class PodsMetricSource(ManifestPart):
    """A custom metric of each pod."""

    metric: NamedMetric
    """Which metric."""
    target: AverageTarget
    """How much for each pod."""


class ObjectMetricSource(ManifestPart):
    """A metric of one other object."""

    described_object: ObjectRef
    """Whose metric it is."""
    metric: NamedMetric
    """Which metric."""
    target: ValueTarget
    """How much of it."""


class ExternalMetricSource(ManifestPart):
    """A metric from outside the cluster."""

    metric: NamedMetric
    """Which metric; several series are added up."""
    target: ValueTarget
    """How much of it."""


class PrometheusMetricSource(ManifestPart):
    """A query whose answer is one number; the operator knows the server."""

    query: Annotated[str, Field(min_length=1, max_length=LONGEST_QUERY)]
    """PromQL; one series with one number."""
    name: Title | None = None
    """What people call it, in status and explanations."""
    target: ValueTarget
    """How much of it."""


def few_forecasts(member: str) -> FieldRule:
    """Each metric that is looked ahead for costs a fit in every tick."""
    return FieldRule(
        lambda s: getattr(s, member) is None or len(s.metrics or []) <= MOST_FORECASTS,
        at=member,
        fix=f"a forecast looks ahead for at most {MOST_FORECASTS} metrics: leave it out, or some of the metrics",
        cel=f"!has(self.{member}) || !has(self.metrics) || self.metrics.size() <= {MOST_FORECASTS}",
    )


_MEMBERS = ("resource", "containerResource", "pods", "object", "external")


def _one_member(members: tuple[str, ...]) -> FieldRule:
    """The member that `type` names is set, and no other."""
    names = {member: member[0].upper() + member[1:] for member in members}
    cel = " && ".join(f"has(self.{member}) == (self.type == '{name}')" for member, name in names.items())

    attributes = [(to_snake(member), name) for member, name in names.items()]

    def holds(spec: Any) -> bool:
        return all((getattr(spec, member) is not None) == (spec.type == name) for member, name in attributes)

    return FieldRule(holds, at="type", fix="fill in the member that type names, and no other", cel=cel)


class MetricSpec(ManifestPart):
    """One metric of autoscaling/v2."""

    type: Literal["Resource", "ContainerResource", "Pods", "Object", "External"]
    """Which of the members below is filled in."""
    resource: ResourceMetricSource | None = None
    container_resource: ContainerResourceMetricSource | None = None
    pods: PodsMetricSource | None = None
    object: ObjectMetricSource | None = None
    external: ExternalMetricSource | None = None

    rules: ClassVar[tuple[FieldRule, ...]] = (_one_member(_MEMBERS),)

    def signal(self, tolerance: Tolerance) -> Signal:
        if self.resource:
            metric = Metric(kind=MetricKind.RESOURCE, name=self.resource.name)
            return _of_pods(metric, self.resource.goal, tolerance)
        if self.container_resource:
            source = self.container_resource
            metric = Metric(kind=MetricKind.CONTAINER, name=source.name, container=source.container)
            return _of_pods(metric, source.goal, tolerance)
        if self.pods:
            metric = _named(MetricKind.PODS, self.pods.metric)
            target = parse_quantity(self.pods.target.average_value)
            return PodAverage(metric=metric, target=target, tolerance=tolerance)
        if self.object:
            described = self.object.described_object
            where = f"{described.api_version or 'v1'}/{described.kind}/{described.name}"
            metric = _named(MetricKind.OBJECT, self.object.metric, where)
            return _of_total(metric, self.object.target, tolerance)
        assert self.external is not None
        return _of_total(_named(MetricKind.EXTERNAL, self.external.metric), self.external.target, tolerance)

    @property
    def sees_without_pods(self) -> bool:
        """A metric that has a value while there are no pods, so that zero is not for ever."""
        return self.type in ("Object", "External", "Prometheus")


class AutoscalerMetric(MetricSpec):
    """One metric of an Autoscaler: autoscaling/v2's five, or a Prometheus query."""

    type: Literal["Resource", "ContainerResource", "Pods", "Object", "External", "Prometheus"]  # type: ignore[assignment]
    """Which of the members below is filled in."""
    prometheus: PrometheusMetricSource | None = None

    rules: ClassVar[tuple[FieldRule, ...]] = (_one_member((*_MEMBERS, "prometheus")),)

    def signal(self, tolerance: Tolerance) -> Signal:
        if self.prometheus is None:
            return super().signal(tolerance)
        metric = Metric(kind=MetricKind.PROMETHEUS, name=self.prometheus.name or "", query=self.prometheus.query)
        return _of_total(metric, self.prometheus.target, tolerance)


def _named(kind: MetricKind, metric: NamedMetric, where: str = "") -> Metric:
    return Metric(kind=kind, name=metric.name, selector=metric.selector_text, object=where)


def _of_pods(metric: Metric, target: ResourceTarget, tolerance: Tolerance) -> Signal:
    if target.average_utilization is not None:
        return Utilization(metric=metric, percent=target.average_utilization, tolerance=tolerance)
    assert target.average_value is not None
    return PodAverage(metric=metric, target=parse_quantity(target.average_value), tolerance=tolerance)


def _of_total(metric: Metric, target: ValueTarget, tolerance: Tolerance) -> Signal:
    if target.average_value is not None:
        return TotalAverage(metric=metric, target=parse_quantity(target.average_value), tolerance=tolerance)
    assert target.value is not None
    return Total(metric=metric, target=parse_quantity(target.value), tolerance=tolerance)


def cpu_of_request(percent: int, tolerance: Tolerance = Tolerance()) -> Utilization:  # noqa: B008  (frozen)
    return Utilization(metric=Metric(kind=MetricKind.RESOURCE, name="cpu"), percent=percent, tolerance=tolerance)


DEFAULT_CPU_PERCENT = 80  # what Kubernetes fills in where no metric is written


def signals_of(metrics: list[Any] | None, tolerance: Tolerance) -> tuple[Signal, ...]:
    """Every metric's signal; none written means CPU at 80 % of the request, as in Kubernetes."""
    if not metrics:
        return (cpu_of_request(DEFAULT_CPU_PERCENT, tolerance),)
    return tuple(metric.signal(tolerance) for metric in metrics)
