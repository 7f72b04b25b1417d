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
    """The policy with these settings; target, tolerance and window that they do not move stay as they are written."""
    new = restated(policy, settings) if _moves(policy, settings) else policy
    if policy.bridge is not None:
        ceiling = settings.ceiling
        new = replace(new, bridge=None if ceiling is None else replace(policy.bridge, ceiling=ceiling))
        new = new if new.bridge else replace(new, objective=_unbridged(new.objective))
    return _repriced(new, settings.band) if settings.priced else by_target(new)


def _unbridged(objective: Objective | None) -> Objective | None:
    """With the usual share of its price for a start, where it had that of a bridge."""
    if objective is None or objective.start_share != BRIDGED_START_SHARE:
        return objective
    return replace(objective, start_share=START_SHARE)


def restated(policy: Policy, settings: TunedSettings) -> Policy:
    """With this target, tolerance and window as `behavior` writes them; a window is added where there was none."""
    rules = tuple(_restabilised(rule, settings.window_s) for rule in policy.settle)
    if not any(isinstance(rule, Stabilise | StabiliseMax) for rule in rules):
        rules = (Stabilise(down_s=settings.window_s), *rules)
    return replace(policy, signals=(_retargeted(tunable(policy), settings),), settle=rules)


def _moves(policy: Policy, settings: TunedSettings) -> bool:
    own = settings_of(policy)
    knobs = ((own.target, settings.target), (own.tolerance, settings.tolerance), (own.window_s, settings.window_s))
    return not all(isclose(has, gets, rel_tol=1e-9) for has, gets in knobs)


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


def _retargeted(signal: Tunable, settings: TunedSettings) -> Signal:
    tolerance = Tolerance(up=settings.tolerance, down=settings.tolerance)
    if isinstance(signal, Utilization):
        return replace(signal, percent=round(settings.target), tolerance=tolerance)
    if isinstance(signal, Backlog):
        return replace(signal, share=settings.target / 100.0, tolerance=tolerance)
    return replace(signal, target=settings.target, tolerance=tolerance)


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
