"""A policy with other settings: what tuning chose is put in the place of what was written, and nothing else moves."""

from __future__ import annotations

from math import isclose

from msgspec.structs import replace

from trimtab.errors import InvalidPolicy
from trimtab.policy import (
    BRIDGED_START_SHARE,
    START_SHARE,
    Backlog,
    MetricKind,
    Objective,
    PodAverage,
    Policy,
    PricedBand,
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
    is_cpu,
)

LEARNED = "learned"
Tunable = Utilization | PodAverage | TotalAverage | Backlog


def tunable(policy: Policy) -> Tunable:
    """The one signal that can be tuned, or why there is none."""
    if len(policy.signals) != 1 or not isinstance(policy.signals[0], Tunable):
        kinds = ", ".join(type(signal).__name__ for signal in policy.signals) or "none"
        raise InvalidPolicy("metrics", kinds, "tuning needs exactly one metric with a target for each pod")
    return policy.signals[0]


def settings_of(policy: Policy) -> TunedSettings:
    """What a policy has now."""
    signal = tunable(policy)
    return TunedSettings(
        target=_target(signal),
        tolerance=max(signal.tolerance.up, signal.tolerance.down),
        window_s=down_window(policy.settle),
        ceiling=policy.bridge.ceiling if policy.bridge else None,
        priced=policy.objective is not None,
    )


def by_percent(signal: Signal) -> bool:
    """Return whether the target is a percentage: of a request, or of the items that a pod works on at once."""
    return isinstance(signal, Utilization | Backlog)


def _target(signal: Tunable) -> float:
    if isinstance(signal, Utilization):
        return float(signal.percent)
    return 100.0 * signal.share if isinstance(signal, Backlog) else signal.target


def tuned(policy: Policy, settings: TunedSettings) -> Policy:
    """Return the policy with these settings; a setting that does not move stays as it is written."""
    new = restated(policy, settings)
    if policy.bridge is not None:
        ceiling = settings.ceiling
        new = replace(new, bridge=None if ceiling is None else replace(policy.bridge, ceiling=ceiling))
        if ceiling is None and new.objective is not None:
            new = replace(new, objective=unbridged(new.objective))
    return _repriced(new, settings.band) if settings.priced else by_target(new)


def unbridged(objective: Objective) -> Objective:
    """With the usual share of its price for a start, where it had that of a bridge."""
    return objective if objective.start_share != BRIDGED_START_SHARE else replace(objective, start_share=START_SHARE)


def restated(policy: Policy, settings: TunedSettings) -> Policy:
    """Return the policy with this target, and with `behavior` where the tolerance or the window moves.

    HPA follows other rules with a `behavior` than without one, so a target alone adds none.
    """
    own, signal = settings_of(policy), tunable(policy)
    if not isclose(own.target, settings.target, rel_tol=1e-9):
        signal = _retargeted(signal, settings.target)
    if not moves_behavior(own, settings):
        return replace(policy, signals=(signal,))
    if own.tolerance != settings.tolerance:
        signal = replace(signal, tolerance=Tolerance(up=settings.tolerance, down=settings.tolerance))
    rules = tuple(_restabilised(rule, settings.window_s) for rule in policy.settle)
    if not any(isinstance(rule, Stabilise | StabiliseMax) for rule in rules):
        rules = (Stabilise(down_s=settings.window_s), *rules)
    return replace(policy, signals=(signal,), settle=rules)


def moves_behavior(was: TunedSettings, now: TunedSettings) -> bool:
    """Return whether the tolerance or the window moves, which `behavior` says."""
    return (was.tolerance, was.window_s) != (now.tolerance, now.window_s)


def _repriced(policy: Policy, band: PricedBand | None) -> Policy:
    """With other prices for starting and keeping a pod; what a violation is worth stays as it is written."""
    own = policy.objective
    if own is None or band is None:
        return policy
    return replace(policy, objective=replace(own, start_share=band.start / own.price, keep_share=band.keep / own.price))


def check_tunable(policy: Policy) -> None:
    """Raise what no backtest can be made of; a forecast that is written beside an objective belongs to the target too,
    so that the two cannot be compared."""
    metric = tunable(policy).metric
    if metric.kind in (MetricKind.RESOURCE, MetricKind.CONTAINER) and not is_cpu(metric):
        raise InvalidPolicy("spec.metrics", metric.name, "it does not follow the load: tuning needs cpu, or a rate")
    if policy.objective is not None and (policy.forecast is None or policy.forecast.model != LEARNED):
        fix = "tuning compares a target with the learned forecast: leave forecast out, or tuning"
        raise InvalidPolicy("spec.forecast", "beside an objective", fix)


def may_be_tuned(policy: Policy) -> bool:
    """Return whether nights can tune it; a queue is tuned by `trimtab tune` alone."""
    if any(isinstance(signal, Backlog) for signal in policy.signals):
        return False
    try:
        check_tunable(policy)
    except InvalidPolicy:
        return False
    return True


def by_target(policy: Policy) -> Policy:
    """The policy steered by its target: without its objective, and the forecast that came with it."""
    came_with_it = policy.objective is not None and policy.forecast is not None and policy.forecast.model == LEARNED
    return replace(policy, objective=None, forecast=None if came_with_it else policy.forecast)


def _retargeted(signal: Tunable, target: float) -> Tunable:
    if isinstance(signal, Utilization):
        return replace(signal, percent=round(target))
    return replace(signal, share=target / 100.0) if isinstance(signal, Backlog) else replace(signal, target=target)


def _restabilised(rule: Rule, window_s: float) -> Rule:
    """Tuned settings are written as `behavior`, with which HPA follows other rules than without."""
    if isinstance(rule, Stabilise):
        return replace(rule, down_s=window_s)
    if isinstance(rule, StabiliseMax):
        return Stabilise(down_s=window_s)
    return Rate() if isinstance(rule, UpLimit) else rule


def down_window(rules: tuple[Rule, ...]) -> float:
    """How long decreases are held back by these rules; 0 where none of them looks back."""
    spans = [rule.window_s for rule in rules if isinstance(rule, StabiliseMax)]
    return max([*spans, *(rule.down_s for rule in rules if isinstance(rule, Stabilise))], default=0.0)
