"""One look at one object as plain numbers: what the journal keeps of a tick in which nothing was decided anew.

Load and capacity are in the unit of the first signal: cores for CPU, bytes for memory, else whatever the metric counts.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from trimtab.core.explain import rule_text
from trimtab.core.model import Decision, Forecast, Missing, Observation, PodSamples, Step
from trimtab.core.overload import Yardstick, yardstick
from trimtab.policy import Axis, ForecastChoice, Policy, Size


class ObjectName(NamedTuple):
    """Which object decided."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


class Tick(NamedTuple):
    """`value` is what the first signal measured for each pod; None is what could not be measured."""

    name: ObjectName
    at: float
    replicas: int
    planned: int
    ready: int
    value: float | None
    load: float | None = None
    capacity: float | None = None  # the load above which ready pods are overloaded
    forecast_low: float | None = None
    forecast: float | None = None
    forecast_high: float | None = None
    horizon_s: float | None = None  # how far ahead of `at` the forecast lies
    cpu_cores: float | None = None  # request of one pod
    memory_bytes: float | None = None
    bridge: float | None = None  # how many times their written CPU ready pods have; None where there is no bridge
    load_at: float | None = None  # the end of the time that the load was measured over
    held: str = ""  # which rule kept the wish from being followed
    policy: Policy | None = None  # in force; stored once for all ticks that have it


def tick_of(name: ObjectName, policy: Policy, seen: Observation, decision: Decision, ready: int | None = None) -> Tick:
    """The numbers of a decision; `ready` where the observation shows no pods."""
    values = [proposal.value for proposal in decision.proposals if not proposal.forecast]
    ready, capacity = ready_and_capacity(policy, seen, decision, ready)
    size, (load, load_at) = _pod_size(seen), _load(seen)
    return Tick(
        name,
        seen.at,
        seen.spec_replicas,
        decision.plan.replicas,
        ready,
        values[0] if values else None,
        load,
        capacity,
        *_forecast(policy, seen),
        size.cpu_cores,
        size.memory_bytes,
        decision.plan.bridge if policy.bridge is not None else None,
        load_at,
        held_by(decision),
        policy,
    )


def ready_and_capacity(
    policy: Policy, seen: Observation, decision: Decision, ready: int | None = None
) -> tuple[int, float | None]:
    """Pods that serve, and the load above which they are overloaded, with their bridge."""
    serving = [pod for pod in seen.pods if pod.ready and not pod.deleting]
    if ready is None:
        ready = len(serving) if seen.pods else seen.status_replicas
    pod = yardstick(policy, policy.signals[0], replace(seen, pods=tuple(serving))) if policy.signals else None
    return ready, ready * pod.level * decision.plan.bridge if isinstance(pod, Yardstick) else None


def load_of(seen: Observation) -> float | None:
    """The demand over all pods."""
    return _load(seen)[0]


def _load(seen: Observation) -> tuple[float | None, float | None]:
    """The demand over all pods, and the time of its sample."""
    sample = seen.samples[0] if seen.samples else None
    if sample is None or isinstance(sample, Missing):
        return None, None
    return sum(sample.values.values()) if isinstance(sample, PodSamples) else sample.value, sample.at


def _pod_size(seen: Observation) -> Size:
    """What one pod requests: of its containers where they are known, else of its youngest pod."""
    if seen.sizes:
        sizes = [size.requests for size in seen.sizes.values()]
        return Size(
            cpu_cores=_sum([size.cpu_cores for size in sizes]), memory_bytes=_sum([size.memory_bytes for size in sizes])
        )
    return seen.pods[-1].requests if seen.pods else Size()


def _sum(amounts: list[float | None]) -> float | None:
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if known else None


def _forecast(policy: Policy, seen: Observation) -> tuple[float | None, float | None, float | None, float | None]:
    """Lowest, chosen and highest quantile of the first signal's demand, and how far ahead they lie."""
    found = seen.forecasts[0] if seen.forecasts else None
    if policy.forecast is None or not isinstance(found, Forecast) or found.per_pod:
        return None, None, None, None
    chosen = found.at_quantile(policy.forecast.quantile)
    return found.demand[0].value, chosen, found.demand[-1].value, _horizon_s(policy.forecast, seen)


def _horizon_s(choice: ForecastChoice, seen: Observation) -> float | None:
    if choice.horizon_s is not None or isinstance(seen.startup, Missing):
        return choice.horizon_s
    return seen.startup.quantiles[-1].value


def held_by(decision: Decision) -> str:
    """The last rule that stood between a wish and the pods, in words; empty where nothing did."""
    steps = [step for step in decision.steps if step.axis is Axis.REPLICAS and _holds(step)]
    return rule_text(steps[-1]) if steps and (decision.change is None or decision.change.replicas is None) else ""


def _holds(step: Step) -> bool:
    return step.before != step.after or step.until is not None or bool(step.veto) or bool(step.detail)
