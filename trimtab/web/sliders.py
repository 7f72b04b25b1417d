"""The sliders of what-if and the policy: where they stand now, and the policy they make where they are moved."""

from __future__ import annotations

from msgspec.structs import replace

from trimtab.core.tuned import restated, tunable
from trimtab.errors import InvalidInput
from trimtab.policy import Bridge, Objective, Policy, Rule, Signal, Stabilise, is_cpu
from trimtab.tune.candidates import Setting, setting_of, tuned_settings
from trimtab.web.journal_history import History
from trimtab.web.query import Knobs

NO_BRIDGE = 1.0


def present(known: History) -> Knobs:
    """The settings that are in force; violations have the price of the object's own objective, if it has one."""
    objective = known.policy.objective or Objective()
    setting, rules, bounds = setting_of(known.policy, known.capacity), known.policy.settle, known.policy.bounds
    up = max((rule.up_s for rule in rules if isinstance(rule, Stabilise)), default=0.0)
    return Knobs(
        setting.target,
        setting.tolerance,
        up,
        setting.stabilise_s,
        bounds.min_replicas,
        bounds.max_replicas,
        known.startup_s,
        objective.price,
        NO_BRIDGE if known.policy.bridge is None else known.policy.bridge.max_factor,
    )


def may_bridge(known: History) -> bool:
    """A bridge looks at the CPU of pods; an HPA's own controller would take it for idle pods."""
    signals = known.policy.signals
    return known.name.kind != "HorizontalPodAutoscaler" and any(is_cpu(signal.metric) for signal in signals)


def with_knobs(known: History, knobs: Knobs) -> Policy:
    """The policy in force, with these settings; nothing else of it is touched."""
    if knobs.least > knobs.most:
        raise InvalidInput("minReplicas", knobs.least, f"put it from 0 to maxReplicas ({knobs.most})")
    if knobs.bridge > NO_BRIDGE and not may_bridge(known):
        raise InvalidInput("bridge", knobs.bridge, "it needs a metric on cpu, and another kind than an HPA")
    policy = known.policy
    if policy.objective is not None:
        policy = replace(policy, objective=replace(policy.objective, price=knobs.price))
    bounds = replace(policy.bounds, min_replicas=knobs.least, max_replicas=knobs.most)
    policy = replace(policy, signals=(_signal(known, knobs),), settle=_rules(known, knobs), bounds=bounds)
    if knobs.bridge == present(known).bridge:
        return policy
    bridge = None if knobs.bridge <= NO_BRIDGE else replace(policy.bridge or Bridge(), max_factor=knobs.bridge)
    return replace(policy, bridge=bridge)


def _restated(known: History, knobs: Knobs) -> Policy:
    setting = Setting(knobs.target, knobs.tolerance, knobs.down_window_s)
    return restated(known.policy, tuned_settings(known.policy, setting, None, known.capacity))


def _signal(known: History, knobs: Knobs) -> Signal:
    """One slider moves the tolerance of both directions; left alone, each keeps its own."""
    now, own, new = present(known), tunable(known.policy), tunable(_restated(known, knobs))
    tolerance = own.tolerance if knobs.tolerance == now.tolerance else new.tolerance
    return replace(own if knobs.target == now.target else new, tolerance=tolerance)


def _rules(known: History, knobs: Knobs) -> tuple[Rule, ...]:
    if not behaves(known, knobs):
        return known.policy.settle
    rules = _restated(known, knobs).settle
    return tuple(replace(rule, up_s=knobs.up_window_s) if isinstance(rule, Stabilise) else rule for rule in rules)


def behaves(known: History, knobs: Knobs) -> bool:
    """Whether something moved that `behavior` says: an HPA without one follows other rules than one with it."""
    now = present(known)
    return (knobs.tolerance, knobs.up_window_s, knobs.down_window_s) != (
        now.tolerance,
        now.up_window_s,
        now.down_window_s,
    )
