"""A policy with other settings: what tuning chose is put in the place of what was written, and nothing else moves."""

from __future__ import annotations

from msgspec.structs import replace

from trimtab.errors import InvalidPolicy
from trimtab.policy import (
    PodAverage,
    Policy,
    Rate,
    Rule,
    Signal,
    Stabilise,
    StabiliseMax,
    Tolerance,
    TotalAverage,
    TunedSettings,
    UpLimit,
    Utilization,
)

LEARNED = "learned"
Tunable = Utilization | PodAverage | TotalAverage


def tunable(policy: Policy) -> Tunable:
    """The one signal that can be tuned, or why there is none."""
    if len(policy.signals) != 1 or not isinstance(policy.signals[0], Utilization | PodAverage | TotalAverage):
        kinds = ", ".join(type(signal).__name__ for signal in policy.signals) or "none"
        raise InvalidPolicy("metrics", kinds, "tuning needs exactly one metric with a target for each pod")
    return policy.signals[0]


def settings_of(policy: Policy) -> TunedSettings:
    """What a policy has now."""
    signal = tunable(policy)
    return TunedSettings(
        target=float(signal.percent) if isinstance(signal, Utilization) else signal.target,
        tolerance=max(signal.tolerance.up, signal.tolerance.down),
        window_s=_window_s(policy.settle),
        ceiling=policy.bridge.ceiling if policy.bridge else None,
        priced=policy.objective is not None,
    )


def tuned(policy: Policy, settings: TunedSettings) -> Policy:
    """The policy with these settings; a stabilisation window is added where it had none."""
    rules = tuple(_restabilised(rule, settings.window_s) for rule in policy.settle)
    if not any(isinstance(rule, Stabilise | StabiliseMax) for rule in rules):
        rules = (Stabilise(down_s=settings.window_s), *rules)
    bridge = policy.bridge
    if bridge is not None:
        bridge = None if settings.ceiling is None else replace(bridge, ceiling=settings.ceiling)
    new = replace(policy, signals=(_retargeted(tunable(policy), settings),), settle=rules, bridge=bridge)
    return new if settings.priced else by_target(new)


def may_be_tuned(policy: Policy) -> bool:
    """Whether its target and its objective can be compared: a forecast that was written beside both belongs to both."""
    return policy.objective is None or (policy.forecast is not None and policy.forecast.model == LEARNED)


def by_target(policy: Policy) -> Policy:
    """The policy steered by its target: without its objective, and the forecast that came with it."""
    came_with_it = policy.objective is not None and policy.forecast is not None and policy.forecast.model == LEARNED
    return replace(policy, objective=None, forecast=None if came_with_it else policy.forecast)


def _retargeted(signal: Tunable, settings: TunedSettings) -> Signal:
    tolerance = Tolerance(up=settings.tolerance, down=settings.tolerance)
    if isinstance(signal, Utilization):
        return replace(signal, percent=round(settings.target), tolerance=tolerance)
    return replace(signal, target=settings.target, tolerance=tolerance)


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
