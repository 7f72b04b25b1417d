"""The metrics of autoscaling/v2 and, for Autoscaler, a Prometheus query; each becomes one Signal."""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import Field
from pydantic.alias_generators import to_snake

from trimtab.kinds.amounts import Count, Duration, Target
from trimtab.kinds.manifest_part import FieldRule, ManifestPart
from trimtab.kinds.meta import ObjectRef
from trimtab.kinds.names import ContainerName, MetricName, ResourceName, Title
from trimtab.kinds.selector import Selector
from trimtab.policy import Backlog, Metric, MetricKind, PodAverage, Signal, Tolerance, Total, TotalAverage, Utilization
from trimtab.quantity import parse_duration, parse_quantity

LONGEST_QUERY = 4096
MOST_METRICS = 20
MOST_FORECASTS = 4  # metrics of one object that a forecast looks ahead for

HpaMetric = Literal["Resource", "ContainerResource", "Pods", "Object", "External"]
HPA_METRICS: tuple[str, ...] = get_args(HpaMetric)
SEE_WITHOUT_PODS = ("Object", "External", "Prometheus", "Backlog")
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


class QuerySource(ManifestPart):
    """A PromQL query whose answer is one number."""

    query: Annotated[str, Field(min_length=1, max_length=LONGEST_QUERY)]
    """PromQL; one series with one number."""


WaitTime = Annotated[Duration, Field(max_length=16)]
DEFAULT_BUSY_PERCENT = 80
# A counter, or a sum of counters, of which nobody takes the rate.
_COUNTER = re.compile(r"^\s*(sum\s*[(]\s*)?[a-zA-Z_:][a-zA-Z0-9_:]*_total\s*([{][^{}]*[}])?\s*[)]?\s*$")


class BacklogMetricSource(ManifestPart):
    """Work that waits in a queue. Pods = (arrivals + waiting / drainWithin) x serviceTime / (concurrency x target)."""

    name: Title | None = None
    """What people call the queue, in status and explanations."""
    arrivals: QuerySource
    """Items that arrive per second, such as sum(rate(jobs_enqueued_total[1m]))."""
    waiting: QuerySource
    """Items that wait now; those in service do not count."""
    service_time: WaitTime | None = None
    """How long one item takes, such as 2s; with serviceTimeQuery, until that has an answer."""
    service_time_query: QuerySource | None = None
    """The same, measured: seconds per item."""
    concurrency: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    """Items that one pod works on at once."""
    target_utilization: Annotated[int, Field(ge=1, le=100)] = DEFAULT_BUSY_PERCENT
    """Percent of its concurrency that a pod is meant to be busy with; the rest is reserve."""
    wait_below: WaitTime
    """No item shall wait longer; above it, work counts as overloaded."""
    drain_within: WaitTime | None = None
    """How fast a backlog is worked off. Left out: waitBelow or the pods' start-up time, the longer."""

    rules: ClassVar = (
        FieldRule(
            lambda b: b.service_time is not None or b.service_time_query is not None,
            at="",
            fix="say how long one item takes: serviceTime, or serviceTimeQuery where it is measured",
            schema={"anyOf": [{"required": ["serviceTime"]}, {"required": ["serviceTimeQuery"]}]},
        ),
        FieldRule(
            lambda b: _COUNTER.search(b.arrivals.query) is None,
            at="arrivals.query",
            fix="a counter only grows: write what arrives per second, such as sum(rate(COUNTER_total[1m]))",
            cel=f"!self.arrivals.query.matches(r'{_COUNTER.pattern}')",
        ),
    )

    def signal(self, tolerance: Tolerance) -> Backlog:
        name = self.name or "backlog"
        measured = self.service_time_query
        return Backlog(
            metric=_query(self.arrivals, name),
            waiting=_query(self.waiting, f"{name} waiting"),
            service_time=_query(measured, f"{name} service time") if measured else None,
            service_time_s=parse_duration(self.service_time) if self.service_time else 0.0,
            concurrency=self.concurrency,
            share=self.target_utilization / 100.0,
            wait_s=parse_duration(self.wait_below),
            drain_s=parse_duration(self.drain_within) if self.drain_within else None,
            tolerance=tolerance,
        )


def _query(source: QuerySource, name: str) -> Metric:
    return Metric(kind=MetricKind.PROMETHEUS, name=name, query=source.query)


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

    type: HpaMetric
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
            return _of_pods(metric, self.resource.target, tolerance)
        if self.container_resource:
            source = self.container_resource
            metric = Metric(kind=MetricKind.CONTAINER, name=source.name, container=source.container)
            return _of_pods(metric, source.target, tolerance)
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
        return self.type in SEE_WITHOUT_PODS


class AutoscalerMetric(MetricSpec):
    """One metric of an Autoscaler: autoscaling/v2's five, a Prometheus query, or a queue."""

    type: Literal[HpaMetric, "Prometheus", "Backlog"]  # type: ignore[assignment]
    """Which of the members below is filled in."""
    prometheus: PrometheusMetricSource | None = None
    backlog: BacklogMetricSource | None = None

    rules: ClassVar[tuple[FieldRule, ...]] = (_one_member((*_MEMBERS, "prometheus", "backlog")),)

    def signal(self, tolerance: Tolerance) -> Signal:
        if self.backlog is not None:
            return self.backlog.signal(tolerance)
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


DEFAULT_CPU_PERCENT = 80  # what Kubernetes fills in where no metric is written


def signals_of(metrics: list[Any] | None, tolerance: Tolerance) -> tuple[Signal, ...]:
    """Every metric's signal; none written means CPU at 80 % of the request, as in Kubernetes."""
    if not metrics:
        cpu = Metric(kind=MetricKind.RESOURCE, name="cpu")
        return (Utilization(metric=cpu, percent=DEFAULT_CPU_PERCENT, tolerance=tolerance),)
    return tuple(metric.signal(tolerance) for metric in metrics)
