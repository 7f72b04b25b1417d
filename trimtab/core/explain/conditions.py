"""The conditions of a decision, with the types and reasons that HPA users know."""

from __future__ import annotations

from trimtab.core.explain.sentence import rule_text, sentence
from trimtab.core.model import Decision, Memory, Missing, Observation, Reason, RuleName, Step
from trimtab.core.remember import is_our_zero
from trimtab.policy import Axis, MetricKind, Policy, Record


class DecisionCondition(Record, frozen=True):
    """One condition of an object's status, with the words HPA users know."""

    type: str
    status: bool
    reason: str
    message: str


_FAILED_GET = {
    MetricKind.RESOURCE: "FailedGetResourceMetric",
    MetricKind.CONTAINER: "FailedGetContainerResourceMetric",
    MetricKind.PODS: "FailedGetPodsMetric",
    MetricKind.OBJECT: "FailedGetObjectMetric",
    MetricKind.EXTERNAL: "FailedGetExternalMetric",
    MetricKind.PROMETHEUS: "FailedGetPrometheusMetric",
}


def conditions(policy: Policy, seen: Observation, memory: Memory, decision: Decision) -> tuple[DecisionCondition, ...]:
    """The conditions that this decision sets, assuming its change was written; others keep what they had."""
    rules = {step.rule for step in decision.steps}
    text = sentence(policy, seen, memory, decision)
    if RuleName.PAUSED in rules:
        return (_of("ScalingActive", False, "Paused", text),)
    if RuleName.SWITCHED_OFF in rules:
        return (_got_scale(), _of("ScalingActive", False, "ScalingDisabled", text))
    if RuleName.METRICS_MISSING in rules and RuleName.FALLBACK not in rules:
        return (_got_scale(), _of("ScalingActive", False, _failure(policy, decision), text))
    found = [_able(decision)]
    if decision.proposals:
        found.append(_of("ScalingActive", True, "ValidMetricFound", text))
        found.append(limited(decision.steps, policy))
    if decision.change is not None and decision.change.replicas is not None:
        zero = is_our_zero(policy, decision.change.replicas, seen.at)
        found.append(_of("ScaledToZero", zero, "ScaledToZero" if zero else "NotScaledToZero", text))
    return tuple(found)


def _of(kind: str, status: bool, reason: str, message: str) -> DecisionCondition:
    return DecisionCondition(type=kind, status=status, reason=reason, message=message)


def _got_scale() -> DecisionCondition:
    return _of("AbleToScale", True, "SucceededGetScale", "the target's current scale is known")


def _failure(policy: Policy, decision: Decision) -> str:
    """HPA's reason for the first signal that failed."""
    for signal, proposal in zip(policy.signals, decision.proposals, strict=False):
        if isinstance(proposal.replicas, Missing):
            unknown = proposal.replicas.reason is Reason.UNSUPPORTED
            return "InvalidMetricSourceType" if unknown else _FAILED_GET[signal.metric.kind]
    return "FailedComputeMetricsReplicas"


def _able(decision: Decision) -> DecisionCondition:
    if decision.change is not None and decision.change.replicas is not None:
        return _of("AbleToScale", True, "SucceededRescale", f"the new size is {decision.change.replicas}")
    for step in decision.steps:
        if step.axis is Axis.BRIDGE:  # it holds up no scaling
            continue
        if step.rule is RuleName.STABILISE:
            reason = "ScaleDownStabilized" if step.after > step.before else "ScaleUpStabilized"
            return _of("AbleToScale", True, reason, rule_text(step))
        if step.rule in (RuleName.COOLDOWN, RuleName.DELAY, RuleName.VETO, RuleName.REST):
            return _of("AbleToScale", False, step.reason, rule_text(step))
    return _of("AbleToScale", True, "ReadyForNewScale", "the recommended size matches the current size")


def limited(steps: tuple[Step, ...], policy: Policy) -> DecisionCondition:
    """The last rule that held the replicas back; a rate that ends exactly at a bound counts as the bound, as in HPA."""
    reasons = {
        RuleName.UP_LIMIT: "ScaleUpLimit",
        RuleName.RATE: "",
        RuleName.VELOCITY: "",
        RuleName.MIN_REPLICAS: "TooFewReplicas",
        RuleName.MAX_REPLICAS: "TooManyReplicas",
        RuleName.SCHEDULE: "Schedule",
    }
    for step in reversed(steps):
        if step.axis is Axis.REPLICAS and step.rule in reasons:
            reason = reasons[step.rule]
            if step.rule in (RuleName.UP_LIMIT, RuleName.RATE, RuleName.VELOCITY):
                reason = _limit_reason(step, policy)
            return _of("ScalingLimited", True, reason, rule_text(step))
    return _of("ScalingLimited", False, "DesiredWithinRange", "the desired count is within the acceptable range")


def _limit_reason(step: Step, policy: Policy) -> str:
    if step.after < step.before:
        return "TooManyReplicas" if step.after >= policy.bounds.max_replicas else "ScaleUpLimit"
    return "TooFewReplicas" if step.after <= policy.bounds.min_replicas else "ScaleDownLimit"
