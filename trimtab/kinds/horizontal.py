"""What HPA, EHPA, Hvpa and Autoscaler share: bounds, metrics and behavior become one Policy."""

from __future__ import annotations

from typing import Any

from trimtab.kinds.behavior import Behavior, settle_of, tolerance_of
from trimtab.kinds.manifest_part import FieldRule
from trimtab.kinds.metric import SEE_WITHOUT_PODS, signals_of
from trimtab.policy import Bounds, ForecastChoice, Policy

# A line of best fit in which one jump is no slope, so that a flash crowd is met and not extrapolated, and which says
# nothing where the load only fluctuates.
LINE = ForecastChoice(model="linear", options={"slope_quantile": 0.4, "abstains": True})


def horizontal(least: int, most: int, metrics: list[Any] | None, behavior: Behavior | None) -> Policy:
    return Policy(
        signals=signals_of(metrics, tolerance_of(behavior)),
        settle=settle_of(behavior),
        bounds=Bounds(min_replicas=least, max_replicas=most),
    )


MIN_AT_MOST_MAX = FieldRule(
    lambda s: s.max_replicas is None or s.min_replicas <= s.max_replicas,
    at="minReplicas",
    fix="must not be above maxReplicas",
    cel="!has(self.minReplicas) || !has(self.maxReplicas) || self.minReplicas <= self.maxReplicas",
)

ZERO_NEEDS_EYES = FieldRule(
    lambda s: s.min_replicas > 0 or any(metric.sees_without_pods for metric in s.metrics or []),
    at="minReplicas",
    fix="zero needs a metric that has a value without pods (Object, External, Prometheus, Backlog); or write 1",
    cel="!has(self.minReplicas) || self.minReplicas > 0 || "
    f"(has(self.metrics) && self.metrics.exists(m, m.type in {list(SEE_WITHOUT_PODS)}))",
)

ZERO_NEEDS_SERVICE_TIME = FieldRule(
    lambda s: s.min_replicas > 0 or all(not m.backlog or m.backlog.service_time for m in s.metrics or []),
    at="minReplicas",
    fix="serviceTimeQuery has no answer while no pod works: also write serviceTime, for the first pod; or write 1",
    cel="!has(self.minReplicas) || self.minReplicas > 0 || !has(self.metrics) || "
    "self.metrics.all(m, !has(m.backlog) || has(m.backlog.serviceTime))",
)
