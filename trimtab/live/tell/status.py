"""status: what an object says about itself; one function per kind, HPA's words where HPA has them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from trimtab.core.blend.weights import share_at
from trimtab.core.explain import DecisionCondition, sentence
from trimtab.core.explain.tuning import settings_text
from trimtab.core.figures import Figures
from trimtab.core.model import (
    ContainerSize,
    Decision,
    Missing,
    Observation,
    PodSamples,
    Proposal,
    QueueSample,
    RuleName,
    Samples,
    Startup,
    Step,
)
from trimtab.core.nights import TuningEvidence
from trimtab.live.look.memory import ObjectMemory, written
from trimtab.live.object_tick import ObjectTick
from trimtab.policy import Apply, Axis, MetricKind, PodAverage, Policy, Signal, TuningMode, Utilization, Weights
from trimtab.quantity import format_cpu, format_memory, format_number
from trimtab.wire.from_kubernetes import amounts, conditions_in, rfc3339, selector_of

AS_WRITTEN = "as written"


def _every(tick: ObjectTick) -> dict[str, Any]:
    """What every kind of ours remembers and explains."""
    return (
        {
            "observedGeneration": tick.subject.object.metadata.generation,
            "mode": str(tick.subject.policy.admit.mode),
            "lastDecision": sentence(tick.subject.policy, tick.seen, tick.memory.core, tick.decision),
            "memory": written(tick.after),
        }
        | _bridge(tick)
        | _tuning(tick)
    )


def _bridge(tick: ObjectTick) -> dict[str, Any]:
    """Beside the sizes, never among them."""
    if tick.subject.policy.bridge is None:
        return {}
    said: dict[str, Any] = {"factor": f"{tick.after.core.bridge:g}", "pods": tick.bridged.pods}
    left_out = tick.bridged.left_out
    return {"bridge": said | ({"leftOut": list(left_out)} if left_out else {})}


def _tuning(tick: ObjectTick) -> dict[str, Any]:
    """What is in force and why, where somebody asked for tuning."""
    found, tuning = tick.after.tuning, tick.subject.policy.tuning
    if tuning.mode is TuningMode.OFF:
        return {}
    if found is None:
        reasons = [f"the first night begins at 02:00, {tuning.timezone}", *_unearned(tick)]
        return {"tuning": {"inForce": AS_WRITTEN, "verdict": "Waiting", "reason": "; ".join(reasons)}}
    said: dict[str, Any] = {"inForce": AS_WRITTEN, "verdict": str(found.verdict), "lastNight": rfc3339(found.at)}
    if reasons := [reason for reason in (found.reason, *_unearned(tick)) if reason]:
        said["reason"] = "; ".join(reasons)
    if found.in_force is not None:
        said |= {
            "inForce": settings_text(found.in_force.settings),
            "replaced": settings_text(found.in_force.replaced),
            "since": rfc3339(found.in_force.since),
            "promisedJ": f"{found.in_force.promise.j:.3f}",
        }
        if found.judged:
            said["realizedJ"] = f"{found.judged[-1].j:.3f}"
    if found.advice is not None:
        said["advice"] = settings_text(found.advice)
    return {"tuning": said | ({"evidence": _evidence(found.evidence)} if found.evidence else {})}


def _unearned(tick: ObjectTick) -> list[str]:
    waits = tick.subject.policy.objective is None and "objective" in tick.subject.object.spec
    return ["the target steers until a night finds the objective better"] if waits else []


def _evidence(found: TuningEvidence) -> dict[str, Any]:
    return {"days": found.days, "before": _tuning_figures(found.before), "after": _tuning_figures(found.after)}


def _tuning_figures(found: Figures) -> dict[str, str]:
    return {
        "j": f"{found.j:.3f}",
        "violations": f"{found.violations:.2f}%",
        "cost": f"{found.cost:.3f}",
        "churnPerDay": f"{found.churn_per_day:.1f}",
    }


def _sized(tick: ObjectTick) -> str:
    """Return how many pods have the size in force, such as "3/5"; sizes that are only advice are on none."""
    vertical = tick.subject.policy.vertical
    if vertical is None or vertical.apply is Apply.NEVER:
        return "Advice"
    return f"{tick.resizing.sized}/{tick.resizing.pods}"


def _last_scale(memory: ObjectMemory) -> dict[str, Any]:
    return {} if memory.core.scaled_at is None else {"lastScaleTime": rfc3339(memory.core.scaled_at)}


def autoscaler(tick: ObjectTick) -> dict[str, Any]:
    """HPA's field names, and ours."""
    policy, seen, decision = tick.subject.policy, tick.seen, tick.decision
    status = _every(tick) | _last_scale(tick.after)
    status |= {
        "currentReplicas": seen.spec_replicas,
        "desiredReplicas": decision.plan.replicas,
        "currentMetrics": current_metrics(policy, seen, decision),
        "targets": targets(policy, decision),
    }
    if policy.vertical is not None:
        status["sizes"] = [_size(name, size) for name, size in sorted(decision.plan.sizes.items())]
        status["sized"] = _sized(tick)
    if isinstance(seen.startup, Startup):
        status["startupSeconds"] = round(seen.startup.quantiles[-1].value, 1)
    return status


def effective_hpa(tick: ObjectTick) -> dict[str, Any]:
    """Crane's field names."""
    replicas = {"expectReplicas": tick.decision.plan.replicas, "currentReplicas": tick.seen.spec_replicas}
    return _every(tick) | _last_scale(tick.after) | replicas


def hvpa(tick: ObjectTick) -> dict[str, Any]:
    """HVPA's field names: the weights in force, the last scaling, and what is blocked now and why."""
    seen, memory = tick.seen, tick.after
    status = _every(tick) | {"replicas": seen.spec_replicas, "overrideScaleUpStabilization": memory.core.overloaded}
    if tick.subject.policy.vertical is not None:
        status["sized"] = _sized(tick)
    if tick.target.workload is not None:
        status["targetSelector"] = selector_of(tick.target.workload)
    if isinstance(tick.subject.policy.blend, Weights):
        share = round(100 * share_at(tick.subject.policy.blend.stages, seen.spec_replicas, seen.spec_replicas))
        status |= {"hpaWeight": 100 - share, "vpaWeight": share}
    if memory.core.scaled_at is not None:
        status["lastScaling"] = {"lastScaleTime": rfc3339(memory.core.scaled_at)} | _last_scaling(memory)
    if blocked := _blocked(tick.decision.steps, seen):
        status["lastBlockedScaling"] = blocked
    return status


def _last_scaling(memory: ObjectMemory) -> dict[str, Any]:
    """What our last word on each axis was, where it is still known."""
    found: dict[str, Any] = {}
    if memory.wrote is not None:
        found["hpaStatus"] = {"currentReplicas": memory.wrote.was, "desiredReplicas": memory.wrote.replicas}
    if sizes := memory.sizes or (memory.patched.sizes if memory.patched else {}):
        found["vpaStatus"] = {"containerResources": [_size(name, size) for name, size in sorted(sizes.items())]}
    return found


def _blocked(steps: Sequence[Step], seen: Observation) -> list[dict[str, Any]]:
    """One entry per reason, with what was wanted on each axis: the rules that left a number as it is."""
    found: dict[str, dict[str, Any]] = {}
    for step in steps:
        if step.rule not in BLOCKING or step.after != _present(seen, step):
            continue
        wanted = found.setdefault(BLOCKING[step.rule], {})
        if step.axis is Axis.REPLICAS:
            wanted["hpaStatus"] = {"currentReplicas": seen.spec_replicas, "desiredReplicas": int(step.before)}
            continue
        size = wanted.setdefault("vpaStatus", {}).setdefault(step.container, {"container": step.container})
        size[str(step.axis)] = format_cpu(step.before) if step.axis is Axis.CPU else format_memory(step.before)
    for wanted in found.values():
        if "vpaStatus" in wanted:
            wanted["vpaStatus"] = {"containerResources": list(wanted["vpaStatus"].values())}
    return [{"reason": reason, "scalingStatus": wanted} for reason, wanted in found.items()]


def _present(seen: Observation, step: Step) -> float:
    if step.axis is Axis.REPLICAS:
        return seen.spec_replicas
    size = seen.sizes[step.container].requests
    return size.amount(step.axis) or 0.0


STATUS: dict[str, Callable[[ObjectTick], dict[str, Any]]] = {
    "Autoscaler": autoscaler,
    "EffectiveHorizontalPodAutoscaler": effective_hpa,
    "Hvpa": hvpa,
}
BLOCKING = {
    RuleName.REST: "StabilizationWindow",
    RuleName.MAINTENANCE_WINDOW: "MaintenanceWindow",
    RuleName.UPDATE_MODE: "UpdatePolicy",
    RuleName.WEIGHTS: "Weight",
    RuleName.MIN_CHANGE: "MinChange",
    RuleName.PARADOX: "ParadoxicalScaling",
}


def _size(name: str, size: ContainerSize) -> dict[str, str]:
    return {"container": name} | amounts(size.requests)


# --- conditions and change -------------------------------------------------------------------------------------------

QUIET = ("currentMetrics", "targets", "lastDecision", "startupSeconds")  # measured: they change with every look


def with_conditions(
    status: dict[str, Any], conditions: Sequence[DecisionCondition], before: dict[str, Any], at: float
) -> dict[str, Any]:
    """The status with these conditions; those of other types stay, a status that stays keeps its time."""
    old = conditions_in(before)
    new = {condition.type: _condition(condition, old.get(condition.type), at) for condition in conditions}
    return status | {"conditions": list((old | new).values())}


def _condition(new: DecisionCondition, old: dict[str, Any] | None, at: float) -> dict[str, Any]:
    status = "True" if new.status else "False"
    since = (
        old["lastTransitionTime"]
        if old and old.get("status") == status and "lastTransitionTime" in old
        else rfc3339(at)
    )
    return {
        "type": new.type,
        "status": status,
        "reason": new.reason,
        "message": new.message[:32000],
        "lastTransitionTime": since,
    }


def worth_writing(status: dict[str, Any]) -> dict[str, Any]:
    """What is worth a write by itself: not measurements, not the wording of a message."""
    lasting = {key: value for key, value in status.items() if key not in (*QUIET, "conditions")}
    reasons = {kind: (one.get("status"), one.get("reason")) for kind, one in conditions_in(status).items()}
    return lasting | {"conditions": reasons}


def current_metrics(policy: Policy, seen: Observation, decision: Decision) -> list[dict[str, Any]]:
    """autoscaling/v2 MetricStatus of each signal that has a value."""
    found = []
    for signal, sample, proposal in zip(policy.signals, seen.samples, decision.proposals, strict=False):
        if not isinstance(sample, Missing) and proposal.value is not None:
            found.append(_metric_status(signal, sample, proposal))
    return found


def _metric_status(signal: Signal, sample: Samples, proposal: Proposal) -> dict[str, Any]:
    metric, value = signal.metric, proposal.value or 0.0
    if isinstance(sample, QueueSample):
        return {"type": "Backlog", "backlog": {"name": metric.label, "current": _queue_status(sample)}}
    current = {"averageValue" if isinstance(sample, PodSamples) else "value": format_number(value)}
    if isinstance(signal, Utilization) and isinstance(sample, PodSamples):
        mean = sum(sample.values.values()) / len(sample.values)
        written_mean = format_cpu(mean) if metric.name == "cpu" else format_memory(mean)
        current = {"averageUtilization": int(value), "averageValue": written_mean}  # type: ignore[dict-item]
    if metric.kind is MetricKind.RESOURCE:
        return {"type": "Resource", "resource": {"name": metric.name, "current": current}}
    if metric.kind is MetricKind.CONTAINER:
        named = {"name": metric.name, "container": metric.container, "current": current}
        return {"type": "ContainerResource", "containerResource": named}
    if metric.kind is MetricKind.OBJECT:
        api_version, kind, name = metric.object.rsplit("/", 2)
        described = {"apiVersion": api_version, "kind": kind, "name": name}
        named_object = {"metric": {"name": metric.name}, "describedObject": described, "current": current}
        return {"type": "Object", "object": named_object}
    if metric.kind is MetricKind.PROMETHEUS:
        return {"type": "Prometheus", "prometheus": {"name": metric.label, "current": current}}
    key = metric.kind.lower()
    return {"type": str(metric.kind), key: {"metric": {"name": metric.name}, "current": current}}


def _queue_status(sample: QueueSample) -> dict[str, str]:
    waiting = {} if isinstance(sample.waiting, Missing) else {"waiting": format_number(sample.waiting)}
    return {"arrivalsPerSecond": format_number(sample.value), **waiting}


def targets(policy: Policy, decision: Decision) -> str:
    """ "cpu: 62%/80%, 12/50", as `kubectl get hpa` prints it."""
    parts = []
    for signal, proposal in zip(policy.signals, decision.proposals, strict=False):
        percent = "%" if isinstance(signal, Utilization) else ""
        now = "<unknown>" if proposal.value is None else f"{format_number(proposal.value)}{percent}"
        written = signal.percent if isinstance(signal, Utilization) else getattr(signal, "target", proposal.target)
        average = " (avg)" if isinstance(signal, PodAverage) else ""
        parts.append(f"{signal.metric.label}: {now}/{format_number(written or 0.0)}{percent}{average}")
    return ", ".join(parts)
