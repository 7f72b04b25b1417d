"""latency_level: the level that was learned from a latency promise, in the place where users write one.

A pod is overloaded above the level. For a share of CPU that is the service level of its objective; for another metric
8/7 of the target. So the target becomes 7/8 of the level, and everything that asks for the level gets this one.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isclose

from msgspec.structs import replace

from trimtab.core.latency import TARGET_SHARE
from trimtab.core.model import Missing, Pod
from trimtab.core.requests import mean_request
from trimtab.policy import Bridge, Objective, PodAverage, Policy, Signal, TotalAverage, Utilization, is_cpu

GUARD = 0.9375  # of the level: ready pods grow a little before they carry too much


def at_level(policy: Policy, level: float | None, text: str, pods: Sequence[Pod]) -> Policy:
    """Return the policy by this level of usage for each ready pod; None: as it is written, until one is learned."""
    objective = policy.objective
    if objective is None or objective.latency is None or not policy.signals:
        return policy
    objective = replace(objective, latency=replace(objective.latency, level=level, text=text))
    if level is None:
        return replace(policy, objective=objective)
    signal, leveled = _leveled(policy.signals[0], objective, level, pods)
    policy = replace(policy, signals=(signal, *policy.signals[1:]), objective=leveled)
    bridge, share = policy.bridge, leveled.service_level
    if bridge is None or share is None or not isclose(bridge.ceiling, Bridge().ceiling):
        return policy  # a ceiling that is written stays
    return replace(policy, bridge=replace(bridge, ceiling=min(0.99, GUARD * share)))


def _leveled(signal: Signal, objective: Objective, level: float, pods: Sequence[Pod]) -> tuple[Signal, Objective]:
    target = TARGET_SHARE * level
    if isinstance(signal, PodAverage | TotalAverage):
        return replace(signal, target=target), objective
    request = mean_request(tuple(pods), signal) if isinstance(signal, Utilization) else None
    if request is None or isinstance(request, Missing):
        return signal, objective
    assert isinstance(signal, Utilization)
    share = level / request
    return replace(signal, percent=max(1, round(100.0 * TARGET_SHARE * share))), replace(objective, service_level=share)


def usage_unit(policy: Policy) -> str:
    """What the usage counts, as it follows a number; empty where the metric has no name."""
    metric = policy.signals[0].metric
    name = "cores" if is_cpu(metric) else metric.name
    return f" {name}" if name else ""
