"""The objective: how load that meets too few pods is weighed against pods that wait for load."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from msgspec.structs import replace
from pydantic import Field

from trimtab.kinds.manifest_part import FieldRule, ManifestPart
from trimtab.kinds.metric import LONGEST_QUERY, WaitTime, few_forecasts
from trimtab.policy import BRIDGED_START_SHARE, Bridge, LatencyPromise, Metric, MetricKind, Objective
from trimtab.quantity import parse_duration

PRICES = {"savings": 8.0, "balanced": 32.0, "reliability": 128.0}
BRIDGE_SHARE = 0.9375  # of the service level: ready pods grow a little before they carry too much
ServiceLevel = Annotated[str, Field(pattern=r"^(0?\.(0[1-9]|[1-9])[0-9]{0,2}|1(\.0)?)$", max_length=6)]


class LatencySpec(ManifestPart):
    """A promise to users, from which trimtab learns how much one pod serves."""

    query: Annotated[str, Field(min_length=1, max_length=LONGEST_QUERY)]
    """PromQL whose answer is one latency in seconds, such as histogram_quantile(0.99, sum by (le) (rate(...[2m])))."""
    below: WaitTime
    """The promise: in 99 % of the minutes latency is not above it, such as 300ms."""

    rules: ClassVar = (
        FieldRule(lambda p: parse_duration(p.below) > 0, at="below", fix='write a time above zero, such as "300ms"'),
    )

    def promise(self) -> LatencyPromise:
        metric = Metric(kind=MetricKind.PROMETHEUS, name="latency", query=self.query)
        return LatencyPromise(metric=metric, below_s=parse_duration(self.below))


class ObjectiveSpec(ManifestPart):
    """A priority or a price; pods are started and kept as long as they are worth it."""

    priority: Literal["savings", "balanced", "reliability"] | None = None
    """What matters more; balanced unless something else or a price is written."""
    price: Annotated[int, Field(ge=1, le=10000)] | None = None
    """How many pod-minutes one violated pod-minute of load is worth: savings is 8, balanced 32, reliability 128."""
    service_level: ServiceLevel | None = None
    """Above which share of its request a pod is overloaded. Left out: above its request, or above 80 % of its limit
    where that is less."""

    latency: LatencySpec | None = None
    """The promise to users. Targets and the service level follow from what one pod serves while it holds."""

    rules: ClassVar = (
        FieldRule(
            lambda o: o.latency is None or o.service_level in (None, "0.8"),
            at="serviceLevel",
            fix="it is learned from latency: leave one of them out",
            cel="!has(self.latency) || !has(self.serviceLevel) || self.serviceLevel == '0.8'",
        ),
        FieldRule(
            lambda o: o.priority is None or o.price is None,
            at="price",
            fix="a priority is a price already: leave one of them out",
            cel="!has(self.priority) || !has(self.price)",
        ),
    )

    def objective(self) -> Objective:
        price = PRICES[self.priority or "balanced"] if self.price is None else float(self.price)
        return Objective(
            price=price,
            service_level=None if self.service_level is None else float(self.service_level),
            latency=self.latency.promise() if self.latency else None,
        )


# A schema, not CEL, which does not see fields that are a number or a text.
_WITHOUT_VALUE = {"properties": {"target": {"not": {"required": ["value"]}}}}
_NO_METRIC_OF_THE_WHOLE = {
    "properties": {
        "metrics": {"items": {"properties": dict.fromkeys(("object", "external", "prometheus"), _WITHOUT_VALUE)}}
    }
}
OBJECTIVE_RULES = (
    FieldRule(
        lambda s: s.objective is None or s.max_replicas is not None,
        at="objective",
        fix="it weighs pods against load: set maxReplicas, or leave it out",
        cel="!has(self.objective) || has(self.maxReplicas)",
    ),
    FieldRule(
        lambda s: s.objective is None or s.blend is None,
        at="objective",
        fix="it chooses the number of pods by itself: leave it out, or blend",
        cel="!has(self.objective) || !has(self.blend)",
    ),
    FieldRule(
        lambda s: not (s.objective and s.objective.latency) or len(s.metrics or []) <= 1,
        at="objective.latency",
        fix="it is learned over the usage that one metric measures: write one metric",
        cel="!has(self.objective) || !has(self.objective.latency) || !has(self.metrics) || self.metrics.size() <= 1",
    ),
    FieldRule(
        lambda s: not (s.objective and s.objective.latency) or not any(metric.backlog for metric in s.metrics or []),
        at="objective.latency",
        fix="a Backlog metric has its own promise, waitBelow: leave one of them out",
        cel="!has(self.objective) || !has(self.objective.latency) || !has(self.metrics) "
        "|| !self.metrics.exists(m, has(m.backlog))",
    ),
    few_forecasts("objective"),
    FieldRule(
        lambda s: s.objective is None or not any(_of_the_whole(metric) for metric in s.metrics or []),
        at="objective",
        fix="it must know what one pod carries: write an average per pod (averageUtilization or averageValue)",
        schema={"anyOf": [{"not": {"required": ["objective"]}}, _NO_METRIC_OF_THE_WHOLE]},
    ),
)


def _of_the_whole(metric: Any) -> bool:
    source = metric.object or metric.external or metric.prometheus
    return source is not None and source.target.value is not None


def guarding(bridge: Bridge, objective: Objective) -> Bridge:
    """A bridge guards the service level, where one is written."""
    level = objective.service_level
    return bridge if level is None else replace(bridge, ceiling=BRIDGE_SHARE * level)


def bridged(objective: Objective) -> Objective:
    """With a bridge pods are started later: until then the ready ones carry more."""
    return replace(objective, start_share=BRIDGED_START_SHARE)
