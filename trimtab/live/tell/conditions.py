"""conditions: what an object's status says beyond the core's own words: conflicts, reverts, refusals, Shadow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

from trimtab.acts import Fate
from trimtab.core.explain import DecisionCondition, amount_text, conditions, missing_text
from trimtab.core.model import Decision, Forecast, Missing, Pod, Reason, RuleName, Veto
from trimtab.core.overload import bridge_counts
from trimtab.errors import InvalidInput, TrimtabError
from trimtab.kinds.ignored import Warned
from trimtab.live.headroom import BLOCKERS
from trimtab.live.look import conflict, revert
from trimtab.live.look.memory import ObjectMemory
from trimtab.live.look.sizes import StuckResize
from trimtab.live.object_tick import ObjectTick

FIELDS_IGNORED, CLOCK_WRONG = "FieldsIgnored", "ClockWrong"


def of_tick(tick: ObjectTick) -> tuple[DecisionCondition, ...]:
    """Return all conditions of one object."""
    found = _of_decision(tick)
    found["Conflict"] = _of_rivals(tick)
    found["Reverted"] = _of_revert(tick.after, tick.seen.at)
    found["PodsUnschedulable"] = _of_pods(tick.seen.pods)
    if tick.subject.policy.vertical is not None or tick.subject.policy.bridge is not None:
        found["ResizeBlocked"] = _of_blockers(tick.seen.vetoes, tick.decision)
        found["ResizePending"] = _of_stuck(tick.resizing.stuck)
    if tick.subject.policy.bridge is not None:
        found["BridgeApplies"] = _of_bridge(bridge_counts(tick.subject.policy, tick.seen.pods))
    return tuple(found.values())


def _of_decision(tick: ObjectTick) -> dict[str, DecisionCondition]:
    """The core's, by type; a refused write is not a success, and Shadow is not a rescale."""
    subject, decision = tick.subject, tick.decision
    core = conditions(subject.policy, tick.seen, tick.memory.core, decision)
    found = {condition.type: condition for condition in core}
    active = found.get("ScalingActive")
    if active is not None and not active.status and _ambiguous(decision):
        found["ScalingActive"] = _of("ScalingActive", False, "AmbiguousQuery", active.message)
    if not tick.wrote("replicas"):
        found.pop("ScaledToZero", None)  # it says what was done, not what is wished for
    if subject.policy.forecast is not None:
        found["PredictionReady"] = _of_forecasts(tick.seen.forecasts)
    if subject.policy.objective and (promise := subject.policy.objective.latency):
        learned = promise.level is not None
        found["CapacityKnown"] = _of("CapacityKnown", learned, "Learned" if learned else "NotLearned", promise.text)
    found["Ready"] = _of_ready(subject.ignored, tick.clock_trouble)
    if tick.refused is not None:
        found["AbleToScale"] = _of("AbleToScale", False, "FailedUpdateScale", tick.refused.reason)
    elif shadow := next((part for part in tick.outcome if part.fate is Fate.SHADOW), None):
        text = f"Shadow: nothing is written, {shadow.reason}; it would be {decision.plan.replicas} replicas"
        found["AbleToScale"] = _of("AbleToScale", True, "Shadow", text)
    return found


def _ambiguous(decision: Decision) -> bool:
    failed = [
        proposal.replicas
        for proposal in decision.proposals
        if isinstance(proposal.replicas, Missing) and not proposal.forecast
    ]
    return bool(failed) and failed[0].reason is Reason.AMBIGUOUS


def _of_ready(ignored: tuple[Warned, ...], clock_trouble: str) -> DecisionCondition:
    """Served; a wrong clock is named, and fields of other programs that mean nothing here: nobody relies on them."""
    if clock_trouble:
        return _of("Ready", True, CLOCK_WRONG, clock_trouble)
    if not ignored:
        return _of("Ready", True, "Running", "the object is understood and served")
    said = "; ".join(f"{field.path}: {field.why}" for field in ignored)
    return _of("Ready", True, FIELDS_IGNORED, f"the object is served; what changes nothing here: {said}")


def _of_forecasts(forecasts: tuple[Forecast | Missing, ...]) -> DecisionCondition:
    """Crane's words; a forecast that is silent says why, and the present load alone decides."""
    silent = [missing_text(forecast) for forecast in forecasts if isinstance(forecast, Missing)]
    if not silent:
        notes = {one.note for one in forecasts if isinstance(one, Forecast) and one.note}
        text = "; ".join(["every metric is looked ahead for", *sorted(notes)])
        return _of("PredictionReady", True, "PredictSucceed", text)
    if len(silent) < len(forecasts):
        return _of("PredictionReady", False, "PredictPartial", f"not every metric is predicted: {silent[0]}")
    return _of("PredictionReady", False, "PredictFailed", silent[0])


def _of_rivals(tick: ObjectTick) -> DecisionCondition:
    if not tick.claims:
        return _of("Conflict", False, "NoConflict", "nobody else moves the target")
    said = dict.fromkeys(conflict.text(axis, claim) for axis, claim in tick.claims.items())
    held = [step for step in tick.decision.steps if step.veto == "Conflict" and step.container]
    advised = [f"{step.container} {step.axis} {amount_text(step, step.before)}" for step in held]
    return _of("Conflict", True, "Conflict", "; ".join([*said, *([f"advised: {', '.join(advised)}"] if held else [])]))


def _of_revert(memory: ObjectMemory, at: float) -> DecisionCondition:
    rests = revert.resting(memory, at)
    if not rests:
        return _of("Reverted", False, "NotReverted", "nobody undoes our changes")
    return _of("Reverted", True, "Reverted", "; ".join(revert.text(what, quarrel) for what, quarrel in rests.items()))


def _of_pods(pods: Sequence[Pod]) -> DecisionCondition:
    """How many the scheduler finds no node for. They stay wanted: waiting pods tell a node autoscaler what to add."""
    waits = [(pod.waits_since, pod.waits_for) for pod in pods if pod.waits_since is not None]
    if not waits:
        return _of("PodsUnschedulable", False, "AllScheduled", "the scheduler has found a node for every pod")
    since = datetime.fromtimestamp(min(waits)[0], UTC)
    why = Counter(reason for _, reason in waits).most_common(1)[0][0]
    text = f"{len(waits)} of {len(pods)} pods unschedulable since {since:%Y-%m-%d %H:%M} UTC: {why}"
    return _of("PodsUnschedulable", True, "Unschedulable", text)


def _of_blockers(vetoes: tuple[Veto, ...], decision: Decision) -> DecisionCondition:
    """What keeps requests from their new size; each said once, though it may hold both axes."""
    blockers = [veto for veto in vetoes if veto.reason in BLOCKERS]
    if not blockers and (kept := _kept_by_stage(decision)):
        return _of("ResizeBlocked", True, "StageOfWeightZero", kept)
    if not blockers:
        return _of("ResizeBlocked", False, "NothingInTheWay", "nothing stands in the way of new sizes")
    return _of("ResizeBlocked", True, blockers[0].reason, "; ".join(dict.fromkeys(veto.detail for veto in blockers)))


def _kept_by_stage(decision: Decision) -> str:
    """Sizes more than half too large that a stage of weight 0 keeps: no replicas that leave it will shrink them."""
    steps = [step for step in decision.steps if step.rule is RuleName.WEIGHTS and step.container]
    kept = [step for step in steps if 0.0 < 1.5 * step.before < step.after]
    said = [f"{step.container} {step.axis} {amount_text(step, step.after)}" for step in kept]
    asked = [amount_text(step, step.before) for step in kept]
    text = f"this stage's weight is 0, so sizes do not shrink: {', '.join(said)} (recommended: {', '.join(asked)})"
    return f"{text}; write the stage above it first and without startReplicaCount" if kept else ""


def _of_stuck(waiting: Sequence[StuckResize]) -> DecisionCondition:
    if not waiting:
        return _of("ResizePending", False, "NothingPending", "every pod has its size, or soon will")
    first = waiting[0]
    return _of("ResizePending", True, first.reason, f"pod {first.pod}: {first.message or first.reason}")


def _of_bridge(counts: bool) -> DecisionCondition:
    if counts:
        return _of("BridgeApplies", True, "LimitSetsLevel", "the limit of pods sets what they carry: they may grow")
    text = (
        "not applied: pods may use more than they request, because their limit is higher or they have none, so a larger"
        " size carries no more; set limits to at most 1.25 times the requests, or remove the bridge"
    )
    return _of("BridgeApplies", False, "PodsMayBurst", text)


def of_trouble(error: Exception) -> tuple[DecisionCondition, ...]:
    """An object that could not be served: why, in HPA's words where it has them."""
    if isinstance(error, InvalidInput):
        return (_of("Ready", False, "InvalidSpec", str(error)),)
    reason = "FailedGetScale" if isinstance(error, TrimtabError) else "InternalError"
    message = str(error) if isinstance(error, TrimtabError) else f"a bug of trimtab: {error!r}"
    return (_of("Ready", False, reason, message), _of("AbleToScale", False, reason, message))


def _of(kind: str, status: bool, reason: str, message: str) -> DecisionCondition:
    return DecisionCondition(type=kind, status=status, reason=reason, message=message)


OF_FROZEN = _of("AbleToScale", False, "Frozen", "trimtab is frozen: nothing is scaled until `trimtab unfreeze`")
