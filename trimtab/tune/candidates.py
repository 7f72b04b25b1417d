"""The family of reactive settings that tuning chooses from: target, tolerance and stabilisation, 135 of them.

A target is a share of what one pod carries at 100 %. Everything else of the policy stays as its owner wrote it.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

from msgspec.structs import replace

from trimtab.errors import InvalidPolicy
from trimtab.policy import (
    Admit,
    PodAverage,
    Policy,
    Rate,
    Rule,
    Signal,
    Stabilise,
    StabiliseMax,
    Tolerance,
    TotalAverage,
    UpLimit,
    Utilization,
)

TOLERANCES = (0.0, 0.05, 0.1)
WINDOWS_S = (0.0, 60.0, 300.0, 900.0, 1800.0)
TARGETS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8)

Tunable = Utilization | PodAverage | TotalAverage


class Setting(NamedTuple):
    """Three knobs; `target` is the share of a pod's capacity."""

    target: float
    tolerance: float
    stabilise_s: float


def settings() -> list[Setting]:
    """All of them, in the order that breaks ties."""
    return [Setting(target, *others) for *others, target in product(TOLERANCES, WINDOWS_S, TARGETS)]


def setting_of(policy: Policy, pod_capacity: float) -> Setting:
    """What a policy has now."""
    signal = tunable(policy)
    tolerance = max(signal.tolerance.up, signal.tolerance.down)
    return Setting(target_share(signal, pod_capacity), tolerance, _window_s(policy.settle))


def tunable(policy: Policy) -> Tunable:
    """The one signal that can be tuned, or why there is none."""
    if len(policy.signals) != 1 or not isinstance(policy.signals[0], Utilization | PodAverage | TotalAverage):
        kinds = ", ".join(type(signal).__name__ for signal in policy.signals) or "none"
        raise InvalidPolicy("metrics", kinds, "tuning needs exactly one metric with a target for each pod")
    return policy.signals[0]


def target_share(signal: Tunable, pod_capacity: float) -> float:
    return signal.percent / 100.0 if isinstance(signal, Utilization) else signal.target / pod_capacity


def with_setting(policy: Policy, setting: Setting, pod_capacity: float) -> Policy:
    """The policy with these three knobs; a stabilisation window is added where it had none."""
    signal = _retargeted(tunable(policy), setting, pod_capacity)
    rules = tuple(_restabilised(rule, setting.stabilise_s) for rule in policy.settle)
    if not any(isinstance(rule, Stabilise | StabiliseMax) for rule in rules):
        rules = (Stabilise(down_s=setting.stabilise_s), *rules)
    return replace(policy, signals=(signal,), settle=rules)


def on_demand(policy: Policy, pod_capacity: float) -> Policy:
    """A policy on the total of the load, forecast and schedules included: the compiled lane's form of it.

    It differs where pods are unready or saturated, for a total shows the whole demand at once; `scored` says what else.
    """
    signal = tunable(policy)
    target = target_share(signal, pod_capacity) * pod_capacity
    total = TotalAverage(metric=signal.metric, target=target, tolerance=signal.tolerance)
    return replace(
        policy,
        signals=(total,),
        admit=Admit(),
        bounds=replace(policy.bounds, min_replicas=max(1, policy.bounds.min_replicas)),
        forecast=replace(policy.forecast, exact=False) if policy.forecast else None,
        vertical=policy.vertical if policy.blend else None,
    )


def scored(policy: Policy) -> tuple[str, ...]:
    """What every candidate was scored with and without, where that is not the policy to the letter."""
    forecast, said = policy.forecast, []
    if not isinstance(tunable(policy), TotalAverage):
        said.append("simulated on the total load; what pods report may lag behind it")
    if forecast is not None:
        exact = ", without the quirks of its source" if forecast.exact else ""
        said.append(f"every setting was scored with the {forecast.model} forecast{exact}")
    if policy.bounds.spans:
        said.append("every setting was scored with the schedules")
    if policy.vertical is not None:
        said.append("settings were scored at the present size of pods: the vertical part is left out")
    if policy.admit != Admit():
        said.append("settings were scored as if the policy were on, neither paused nor pinned")
    if policy.bounds.min_replicas == 0:
        said.append("settings were scored with one replica at least, not zero")
    return tuple(said)


def _retargeted(signal: Tunable, setting: Setting, pod_capacity: float) -> Signal:
    tolerance = Tolerance(up=setting.tolerance, down=setting.tolerance)
    if isinstance(signal, Utilization):
        return replace(signal, percent=round(setting.target * 100), tolerance=tolerance)
    return replace(signal, target=setting.target * pod_capacity, tolerance=tolerance)


def _restabilised(rule: Rule, window_s: float) -> Rule:
    """Tuned settings are written as `behavior`, with which HPA follows other rules than without."""
    if isinstance(rule, Stabilise):
        return replace(rule, down_s=window_s)
    if isinstance(rule, StabiliseMax):
        return Stabilise(down_s=window_s)
    return Rate() if isinstance(rule, UpLimit) else rule


def _window_s(rules: tuple[Rule, ...]) -> float:
    windows = [rule.down_s for rule in rules if isinstance(rule, Stabilise)]
    windows += [rule.window_s for rule in rules if isinstance(rule, StabiliseMax)]
    return max(windows, default=0.0)
