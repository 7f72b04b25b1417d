"""The metrics of autoscaling/v2 and, for Autoscaler, a Prometheus query; each becomes one Signal."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field
from pydantic.alias_generators import to_snake

from trimtab.kinds.amounts import ContainerName, Count, Segment, Target, Text
from trimtab.kinds.meta import ObjectRef
from trimtab.kinds.part import Part, Rule
from trimtab.kinds.selector import Selector
from trimtab.policy import Metric, MetricKind, PodAverage, Signal, Tolerance, Total, TotalAverage, Utilization
from trimtab.quantity import parse_quantity

TargetType = Literal["Utilization", "AverageValue", "Value"]


def _exactly_one(one: str, other: str, attributes: tuple[str, str], fix: str) -> Rule:
    schema = {"oneOf": [{"required": [one]}, {"required": [other]}]}
    first, second = attributes
    return Rule(lambda t: (getattr(t, first) is None) != (getattr(t, second) is None), at="", fix=fix, schema=schema)


class ResourceTarget(Part):
    """How much of the request, or how much of the resource, each pod may use; `type` is what people read."""

    type: TargetType
    average_utilization: Count | None = None
    average_value: Target | None = None

    rules: ClassVar = (
        _exactly_one(
            "averageUtilization",
            "averageValue",
            ("average_utilization", "average_value"),
            "set either averageUtilization (percent of the request) or averageValue",
        ),
    )


class AverageTarget(Part):
    """A value for each pod."""

    type: TargetType
    average_value: Target


class ValueTarget(Part):
    """One value for the whole, or a share for each pod."""

    type: TargetType
    value: Target | None = None
    average_value: Target | None = None

    rules: ClassVar = (
        _exactly_one(
            "value",
            "averageValue",
            ("value", "average_value"),
            "set either value or averageValue (a share for each pod)",
        ),
    )


class MetricName(Part):
    name: Segment
    selector: Selector | None = None

    @property
    def selector_text(self) -> str:
        return self.selector.text if self.selector else ""


class ResourceMetric(Part):
    """CPU or memory of whole pods."""

    name: Text
    target: ResourceTarget

    @property
    def goal(self) -> ResourceTarget:
        return self.target


class ContainerMetric(ResourceMetric):
    """CPU or memory of one container."""

    container: ContainerName


class PodsMetric(Part):
    """A custom metric of each pod."""

    metric: MetricName
    target: AverageTarget


class ObjectMetric(Part):
    """A metric of one other object."""

    described_object: ObjectRef
    metric: MetricName
    target: ValueTarget


class ExternalMetric(Part):
    """A metric from outside the cluster."""

    metric: MetricName
    target: ValueTarget


class PrometheusMetric(Part):
    """A query whose answer is one number; the operator knows the server."""

    query: Annotated[str, Field(min_length=1, max_length=8192)]
    name: Text | None = None
    target: ValueTarget


_MEMBERS = ("resource", "containerResource", "pods", "object", "external")


def _one_member(members: tuple[str, ...]) -> Rule:
    """The member that `type` names is set, and no other."""
    names = {member: member[0].upper() + member[1:] for member in members}
    cel = " && ".join(f"has(self.{member}) == (self.type == '{name}')" for member, name in names.items())

    attributes = [(to_snake(member), name) for member, name in names.items()]

    def holds(spec: Any) -> bool:
        return all((getattr(spec, member) is not None) == (spec.type == name) for member, name in attributes)

    return Rule(holds, at="type", fix="fill in the member that type names, and no other", cel=cel)


class MetricSpec(Part):
    """One metric of autoscaling/v2."""

    type: Literal["Resource", "ContainerResource", "Pods", "Object", "External"]
    resource: ResourceMetric | None = None
    container_resource: ContainerMetric | None = None
    pods: PodsMetric | None = None
    object: ObjectMetric | None = None
    external: ExternalMetric | None = None

    rules: ClassVar[tuple[Rule, ...]] = (_one_member(_MEMBERS),)

    def signal(self, tolerance: Tolerance) -> Signal:
        if self.resource:
            metric = Metric(kind=MetricKind.RESOURCE, name=self.resource.name)
            return _of_pods(metric, self.resource.goal, tolerance)
        if self.container_resource:
            one = self.container_resource
            metric = Metric(kind=MetricKind.CONTAINER, name=one.name, container=one.container)
            return _of_pods(metric, one.goal, tolerance)
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


class Metrics(MetricSpec):
    """One metric of an Autoscaler: autoscaling/v2's five, or a Prometheus query."""

    type: Literal["Resource", "ContainerResource", "Pods", "Object", "External", "Prometheus"]  # type: ignore[assignment]
    prometheus: PrometheusMetric | None = None

    rules: ClassVar[tuple[Rule, ...]] = (_one_member((*_MEMBERS, "prometheus")),)

    def signal(self, tolerance: Tolerance) -> Signal:
        if self.prometheus is None:
            return super().signal(tolerance)
        metric = Metric(kind=MetricKind.PROMETHEUS, name=self.prometheus.name or "", query=self.prometheus.query)
        return _of_total(metric, self.prometheus.target, tolerance)


def _named(kind: MetricKind, metric: MetricName, where: str = "") -> Metric:
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
