"""sizes: each request that a decision changes, from what to what, and why: "main memory 256Mi to 476Mi: OOM kill"."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from trimtab.core.model import Decision, Estimate, Missing, Observation, RuleName, Step
from trimtab.policy import RESOURCES, Axis
from trimtab.quantity import describe_memory, format_cpu, format_duration

USAGE, OOM_KILL = "Usage", "OOMKill"
_NOISE = 1e-9


class SizeChange(NamedTuple):
    """One request of one container."""

    container: str
    axis: Axis
    before: float
    after: float
    reason: str  # a rule's name, Usage or OOMKill
    why: str

    @property
    def amounts(self) -> str:
        """ "main memory 256Mi to 476Mi"."""
        text = format_cpu if self.axis is Axis.CPU else describe_memory
        return f"{self.container} {self.axis} {text(self.before)} to {text(self.after)}"

    @property
    def direction(self) -> str:
        return "up" if self.after > self.before else "down"


def size_changes(seen: Observation, decision: Decision, rule_text: Callable[[Step], str]) -> Iterator[SizeChange]:
    """Every request that this decision changes; `rule_text` says what a rule did."""
    for name, size in (decision.change.sizes or {}).items() if decision.change else ():
        for axis in RESOURCES:
            before, after = seen.sizes[name].requests.amount(axis) or 0.0, size.requests.amount(axis)
            if after is not None and after != before:
                yield SizeChange(
                    name, axis, before, after, *_reason(seen, decision, name, axis, before, after, rule_text)
                )


def _reason(
    seen: Observation,
    decision: Decision,
    name: str,
    axis: Axis,
    before: float,
    after: float,
    rule_text: Callable[[Step], str],
) -> tuple[str, str]:
    estimate = None if isinstance(seen.usage, Missing) else seen.usage.containers.get(name)
    if estimate is None:
        return USAGE, "usage"
    if axis is Axis.MEMORY and after > before and _answers_kill(estimate, before):
        return OOM_KILL, f"OOM kill at {datetime.fromtimestamp(estimate.oom_at or 0.0, UTC):%H:%M:%S} UTC"
    steps = [step for step in decision.steps if step.axis is axis and step.container in ("", name)]
    rule = next((step for step in reversed(steps) if abs(step.after - after) <= _NOISE * after), None)
    if rule is not None and rule.rule is not RuleName.OOM_NEED:
        return rule.reason, rule_text(rule)
    return USAGE, f"usage of {format_duration(round(estimate.observed_s))}"


def _answers_kill(estimate: Estimate, before: float) -> bool:
    return estimate.oom_at is not None and estimate.oom_need_bytes is not None and before < estimate.oom_need_bytes
