"""gauges: the last period under the metric names that custom-hpa's program has; the label deployment is on all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from trimtab.core.model import Decision, Missing, RuleName
from trimtab.kinds import CustomHpa
from trimtab.live.tell.telemetry import Family, Line, render

FAMILIES = {  # named by the program, its counters without the suffix that they have today
    "custom_hpa_up": Family("counter", "Periods since the start."),
    "custom_hpa_metric_requests": Family("counter", "Questions to Prometheus, by whether it answered."),
    "custom_hpa_metric_samples": Family("gauge", "The last sample."),
    "custom_hpa_status": Family("gauge", "1 for what was true of the last period."),
    "custom_hpa_status_current_replicas": Family("gauge", "Replicas that the Deployment has in its spec."),
    "custom_hpa_status_desired_replicas": Family("gauge", "Replicas that were last decided on."),
    "custom_hpa_scale_factor": Family("gauge", "The last sample over its target."),
    "custom_hpa_spec_min_replicas": Family("gauge", "The floor."),
    "custom_hpa_spec_max_replicas": Family("gauge", "The ceiling."),
    "custom_hpa_spec_target_value": Family("gauge", "The target."),
}
STATUSES = {
    RuleName.COOLDOWN: "cooldown",
    RuleName.MIN_FACTOR: "below-min-factor",
    RuleName.MAX_FACTOR: "above-max-factor",
}
SCALED = "scaled"


class Gauges:
    def __init__(self, custom: CustomHpa) -> None:
        self.custom = custom
        self.periods = 0
        self.requests: Counter[str] = Counter(success=0, failure=0)
        self.statuses: set[tuple[str, str]] = set()  # what was true of the last period: (status, up or down)
        self._values: dict[str, float] = {}  # by name; a number that was never known is not shown

    def fetched(self, sample: float | None) -> None:
        """One question to Prometheus; without a usable answer nothing is true of this period."""
        self.requests["failure" if sample is None else "success"] += 1
        if sample is None:
            self.statuses = set()
        else:
            self._values["custom_hpa_metric_samples"] = sample

    def decided(self, current: int, decision: Decision, scaled: bool) -> None:
        self._values["custom_hpa_status_current_replicas"] = current
        if decision.change is not None:
            self._values["custom_hpa_status_desired_replicas"] = decision.plan.replicas
        factor = scale_factor(decision)
        if factor is None:
            self.statuses = set()
            return
        self._values["custom_hpa_scale_factor"] = factor
        way = "up" if factor > 1.0 else "down"
        found = [STATUSES[step.rule] for step in decision.steps if step.rule in STATUSES] + [SCALED] * scaled
        self.statuses = {(status, way) for status in found}

    def render(self) -> str:
        deployment = {"deployment": self.custom.target.deployment}
        return render(((name, deployment | labels, value) for name, labels, value in self._lines()), FAMILIES)

    def _lines(self) -> Iterable[Line]:
        custom = self.custom
        yield "custom_hpa_up", {}, self.periods
        for status, count in self.requests.items():
            yield "custom_hpa_metric_requests", {"status": status}, count
        for status in (*STATUSES.values(), SCALED):
            for way in ("up", "down"):
                yield "custom_hpa_status", {"status": status, "scale": way}, float((status, way) in self.statuses)
        for name, value in self._values.items():
            yield name, {}, value
        yield "custom_hpa_spec_min_replicas", {}, custom.min_replicas
        yield "custom_hpa_spec_max_replicas", {}, custom.max_replicas
        yield "custom_hpa_spec_target_value", {}, custom.target.value


def scale_factor(decision: Decision) -> float | None:
    """sample / target before any rule; None without a sample, or where none was asked for."""
    for proposal in decision.proposals:
        if not isinstance(proposal.replicas, Missing) and proposal.value is not None and proposal.target:
            return proposal.value / proposal.target
    return None
