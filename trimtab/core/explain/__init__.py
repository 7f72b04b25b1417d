"""explain: a decision's four values -> sentence, conditions, table: all that people read about a decision."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache

from trimtab.core.explain.sizes import SizeChange, size_changes
from trimtab.core.model import Decision, Memory, Missing, Observation, Proposal, Reason, RuleName, Step
from trimtab.core.remember import is_our_zero
from trimtab.policy import Axis, Policy, Record
from trimtab.quantity import describe_memory, format_cpu, format_number

PODS_START = ("pod starts", "pods start")


class ExplanationRow(Record, frozen=True):
    """One line of the table: a proposal, or a rule that changed a number."""

    what: str
    before: str
    after: str
    why: str


# What each rule did, for people; {name} is filled from the step.
_RULES = {
    RuleName.PAUSED: "paused{until}",
    RuleName.SWITCHED_OFF: "scaled to zero by hand, which means off",
    RuleName.PIN: "pinned{until}",
    RuleName.ABOVE_MAX: "above maxReplicas",
    RuleName.BELOW_MIN: "below minReplicas",
    RuleName.METRICS_MISSING: "metrics are missing ({detail}), the size is kept",
    RuleName.FALLBACK: "metrics stayed missing, onMetricFailure asks for {after}",
    RuleName.STABILISE: "stabilisation{until} allows {after}",
    RuleName.UP_LIMIT: "at most a doubling in one step allows {after}",
    RuleName.RATE: "the rate policy allows {after}",
    RuleName.VELOCITY: "the velocity limit allows {after}",
    RuleName.MAX_FACTOR: "the maximum factor allows {after}",
    RuleName.MIN_FACTOR: "the step is below the minimum factor",
    RuleName.COOLDOWN: "cooldown{until} allows {after}",
    RuleName.DELAY: "the mark must stay crossed{until}",
    RuleName.ROUND_UP: "rounded up to {after}",
    RuleName.SETTLING: "{detail} allows {after}",
    RuleName.WEIGHTS: "the stage's weight makes it {after}",
    RuleName.VERTICAL_FIRST: "sizes come first: usage of this load, or pods of the new size, are awaited{until}",
    RuleName.BUCKETS: "the bucket makes it {after}",
    RuleName.CAPACITY: "capacity makes it {after}",
    RuleName.WARM_UP: "too little history to change it",
    RuleName.PEAK: "kept above the peak of the last eight days",
    RuleName.OOM_NEED: "{after} would have survived the last OOM kill",
    RuleName.OOM_REST: "not lowered after an OOM kill{until}",
    RuleName.KEEP_MEMORY: "memory of this image is never lowered by itself",
    RuleName.ADVISED: "only advised: the container has no requests, and setting one would change its QoS class",
    RuleName.WHOLE_CORES: "rounded up to whole cores",
    RuleName.FLOOR: "the smallest size allowed is {after}",
    RuleName.ALLOWED: "minAllowed/maxAllowed allow {after}",
    RuleName.CAPPED_BY_BUCKET: "the bucket's maximum for so many replicas is {after}",
    RuleName.BUCKET_MINIMUM: "the bucket's minimum is {after}",
    RuleName.PARADOX: "fewer but larger replicas for a smaller total: kept as it is",
    RuleName.UPDATE_MODE: "the update mode forbids it",
    RuleName.MAINTENANCE_WINDOW: "outside the maintenance window",
    RuleName.REST: "it rests after the last scaling{until}",
    RuleName.MIN_CHANGE: "the change is below the minimum",
    RuleName.VETO: "{detail}{ends}",
    RuleName.SCHEDULE: "schedule {detail} asks for {after}",
    RuleName.MIN_REPLICAS: "minReplicas is {after}",
    RuleName.MAX_REPLICAS: "maxReplicas is {after}",
    RuleName.BRIDGE: "{detail} ready pods have {after} times their cpu",
    RuleName.BRIDGE_LIMIT: "a pod is resized at most {detail} times per hour: next{until}",
}

_REASONS = {
    Reason.ABSENT: "the source has no value",
    Reason.UNREACHABLE: "the source does not answer",
    Reason.STALE: "the newest sample is too old",
    Reason.NOT_FINITE: "the sample is not a number",
    Reason.NEGATIVE: "the sample is negative",
    Reason.ZERO: "the sample is zero, which counts as no answer here",
    Reason.AMBIGUOUS: "the query gives more than one series",
    Reason.PARTIAL: "the source says its answer is incomplete",
    Reason.NO_REQUEST: "a container has no request to compare with",
    Reason.NO_READY_PODS: "no pod counts yet",
    Reason.UNSUPPORTED: "this metric type is not known",
    Reason.NOT_ENOUGH_HISTORY: "there is not enough history",
    Reason.NOT_PREDICTABLE: "the series is not predictable",
    Reason.BEING_READ: "its history is being read",
    Reason.EXPIRED: "the forecast has expired",
    Reason.NOT_CONFIGURED: "nothing is configured",
    Reason.NOT_ALLOWED: "this namespace may not ask for it",
}


def sentence(policy: Policy, seen: Observation, memory: Memory, decision: Decision) -> str:
    """One sentence a person can act on: "4 replicas: cpu wants 6, cooldown until 12:03 allows 4"."""
    first = _priced_load(seen, decision) or _loudest(decision)
    clauses = [first] if first else []
    clauses += [
        rule_text(step) for step in decision.steps if step.axis is Axis.REPLICAS and step.rule is not RuleName.ROUND_UP
    ]
    vertical = _resizes(seen, decision)
    count = decision.plan.replicas
    text = f"{count} {'replica' if count == 1 else 'replicas'}: {', '.join(clauses) or 'no signal asks for a change'}"
    bridge = _bridged(decision)
    if bridge and text.endswith(PODS_START):
        return f"{text}, {bridge}"
    return "; ".join(part for part in (text, vertical, bridge) if part)


def _priced_load(seen: Observation, decision: Decision) -> str:
    """ "now 12.3 pods of load; +8 % is usual at this hour; 2 pods start"; empty where no load has a price."""
    now = [proposal for proposal in decision.proposals if proposal.load_pods is not None and not proposal.forecast]
    if not now:
        return ""
    top = max(now, key=Proposal.number)
    load, later = top.load_pods or 0.0, _expected(top, decision)
    said = [f"now {load:.1f} pods of load"]
    if later is not None and load > 0.0:
        said.append(f"{100.0 * (later / load - 1.0):+.0f} % is usual at this hour")
    return "; ".join(said + _moves(seen, decision.plan.replicas))


def _expected(now: Proposal, decision: Decision) -> float | None:
    """The median of what the same source expects, in pods."""
    source = f"{now.source} forecast"
    return next((later.load_pods for later in decision.proposals if later.forecast and later.source == source), None)


def _moves(seen: Observation, planned: int) -> list[str]:
    ready = sum(1 for pod in seen.pods if pod.ready and not pod.deleting)
    starting, leaving = planned - ready, seen.spec_replicas - planned
    if seen.pods and starting > 0:
        return [f"{starting} {PODS_START[starting > 1]}"]
    return [f"{leaving} {'pod goes' if leaving == 1 else 'pods go'}"] if leaving > 0 else []


def _bridged(decision: Decision) -> str:
    """What ready pods have until the others are ready, and what keeps them from more."""
    said = []
    for step in decision.steps:
        if step.rule is RuleName.BRIDGE:
            then = "until then the" if decision.plan.replicas > int(step.detail) else "the"
            said.append(f"{then} {step.detail} ready ones have {amount_text(step, step.after)} times their cpu")
        elif step.axis is Axis.BRIDGE:
            said.append(f"they do not get {amount_text(step, step.before)} times their cpu: {rule_text(step)}")
    return ", ".join(said)


def _loudest(decision: Decision) -> str:
    """The proposal that asked for most; failures only when nothing else spoke."""
    good = [proposal for proposal in decision.proposals if not isinstance(proposal.replicas, Missing)]
    if good:
        top = max(good, key=Proposal.number)
        return f"{top.source} wants {_count(top.number())}"
    failed = [proposal for proposal in decision.proposals if isinstance(proposal.replicas, Missing)]
    return f"{failed[0].source}: {missing_text(failed[0].replicas)}" if failed else ""


def _resizes(seen: Observation, decision: Decision) -> str:
    return ", ".join(change.amounts for change in resizes(seen, decision))


def resizes(seen: Observation, decision: Decision) -> tuple[SizeChange, ...]:
    """Every request that this decision changes, and why."""
    return tuple(size_changes(seen, decision, rule_text))


def rule_text(step: Step) -> str:
    """What one rule did, with its date where it has one."""
    until = f"until {clock(step.until)}" if step.until is not None else ""
    return _RULES[step.rule].format(
        after=amount_text(step, step.after),
        until=until and f" {until}",
        ends=until and f" ({until})",
        detail=step.detail or "unknown",
    )


def missing_text(missing: object) -> str:
    """Why there is no value, and who is to blame where that is known."""
    assert isinstance(missing, Missing)
    return f"{_REASONS[missing.reason]} ({missing.detail})" if missing.detail else _REASONS[missing.reason]


@lru_cache(maxsize=1000)  # all objects of a tick speak of the same few times
def clock(at: float) -> str:
    """ "12:03 UTC"."""
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M UTC")


def table(decision: Decision) -> tuple[ExplanationRow, ...]:
    """Every proposal, then every rule that changed something, in the order in which it happened."""
    proposals = tuple(_proposal_row(proposal) for proposal in decision.proposals)
    steps = tuple(
        ExplanationRow(
            what=f"{step.container} {step.axis}".strip(),
            before=amount_text(step, step.before),
            after=amount_text(step, step.after),
            why=rule_text(step),
        )
        for step in decision.steps
    )
    return proposals + steps


def _proposal_row(proposal: Proposal) -> ExplanationRow:
    if isinstance(proposal.replicas, Missing):
        return ExplanationRow(what=proposal.source, before="", after="", why=missing_text(proposal.replicas))
    value = "" if proposal.value is None else format_number(proposal.value)
    target = "" if proposal.target is None else format_number(proposal.target)
    return ExplanationRow(
        what=proposal.source,
        before=f"{value}/{target}",
        after=_count(proposal.replicas),
        why=_why(proposal),
    )


def _why(proposal: Proposal) -> str:
    if proposal.load_pods is None:
        return "value/target asks for this"
    if proposal.forecast:
        return f"{proposal.load_pods:.1f} pods of load are expected; so many are worth it at this price"
    return f"{proposal.load_pods:.1f} pods of load need this at the service level"


def amount_text(step: Step, amount: float) -> str:
    if step.axis is Axis.CPU:
        return format_cpu(amount)
    if step.axis is Axis.BRIDGE:
        return f"{amount:g}"
    return describe_memory(amount) if step.axis is Axis.MEMORY else _count(amount)


def _count(replicas: float) -> str:
    return str(int(replicas)) if replicas == int(replicas) else f"{replicas:.2f}"


# --- conditions, with the types and reasons that HPA users know -------------------------------------------------------


class DecisionCondition(Record, frozen=True):
    """One condition of an object's status, with the words HPA users know."""

    type: str
    status: bool
    reason: str
    message: str


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
            return "InvalidMetricSourceType" if unknown else f"FailedGet{signal.metric.kind}Metric"
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
