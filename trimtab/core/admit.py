"""admit: the cases that need no metrics: paused, switched off, pinned, outside the bounds."""

from __future__ import annotations

from typing import NamedTuple

from trimtab.core.bounds_in_force import BoundsInForce
from trimtab.core.model import Memory, Observation, RuleName
from trimtab.policy import Admit, Mode, Policy, sees_without_pods


class AdmitVerdict(NamedTuple):
    """Why the metrics are not asked, and what the replicas become."""

    rule: RuleName
    replicas: int
    until: float | None = None


def admit(policy: Policy, seen: Observation, memory: Memory, bounds: BoundsInForce) -> AdmitVerdict | None:
    """The verdict, or None to go on to the metrics."""
    rules, current = policy.admit, seen.spec_replicas
    if paused(rules, seen.at):
        return AdmitVerdict(RuleName.PAUSED, current, rules.paused_until)
    if pinned(rules, seen.at):
        assert rules.pin is not None
        return AdmitVerdict(RuleName.PIN, rules.pin, rules.pin_until)
    if current == 0:
        return _from_zero(policy, memory, bounds)
    if current > bounds.most:
        return AdmitVerdict(RuleName.ABOVE_MAX, bounds.most)
    if current < bounds.least:
        return AdmitVerdict(RuleName.BELOW_MIN, bounds.least)
    return None


def _from_zero(policy: Policy, memory: Memory, bounds: BoundsInForce) -> AdmitVerdict | None:
    """Zero means off, unless we went there ourselves: then go by the signals, or at least by a floor that has risen."""
    if not memory.zeroed:
        return AdmitVerdict(RuleName.SWITCHED_OFF, 0)
    if sees_without_pods(policy):
        return None
    return (
        AdmitVerdict(RuleName.BELOW_MIN, bounds.least) if bounds.least > 0 else AdmitVerdict(RuleName.SWITCHED_OFF, 0)
    )


def paused(rules: Admit, at: float) -> bool:
    return rules.mode is Mode.PAUSED or (rules.paused_until is not None and at < rules.paused_until)


def pinned(rules: Admit, at: float) -> bool:
    return rules.pin is not None and (rules.pin_until is None or at < rules.pin_until)


def writes(rules: Admit, at: float) -> bool:
    """Whether a decision may be carried out: Auto is, Shadow only its pin, and nothing while it is paused."""
    return not paused(rules, at) and (rules.mode is Mode.AUTO or pinned(rules, at))
