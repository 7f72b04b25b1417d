"""The bridge: ready pods carry more for a while, because a resize in place is faster than a new pod.

Only where the limit sets the level of pods (`core.overload`): elsewhere they can burst already, and a larger size
carries no more.

need = load now / ceiling / ready pods. Levels are quarters from 1 up to the largest factor allowed. Up at once; down
when none of the last five minutes needed it.
"""

from __future__ import annotations

from msgspec.structs import replace

from trimtab.core.model import (
    RUNNING,
    Memory,
    Missing,
    Observation,
    Plan,
    Pod,
    PodSamples,
    Proposal,
    RuleName,
    Step,
    Veto,
)
from trimtab.core.overload import bridge_counts
from trimtab.core.tally import tally
from trimtab.policy import Axis, Bridge, Direction, Metric, Policy, is_cpu

HOUR_S = 3600.0
LARGEST = 2.0  # factor of any bridge
LEVEL = 0.25  # from one level to the next
CALM_S = 300.0

Needed = tuple[tuple[float, float], ...]  # levels above 1 in descending order, each with when it was last needed


def level_needed(load: float, ready: float, ceiling: float, max_factor: float) -> float:
    """The lowest level at which the ready pods carry the load, the highest where none is enough.

    Load is counted in what one pod of the written size carries at 100 %.
    """
    need = load / ceiling / ready - 1e-9 if ready > 0.0 else 0.0
    level = 1.0
    while level < need and level < max_factor:
        level += LEVEL
    return min(level, max_factor)


def still_needed(needed: Needed, level: float, at: float) -> Needed:
    """What is remembered after this moment needed `level`: higher levels until they have been calm, then this one."""
    higher = tuple((other, when) for other, when in needed if other > level and when > at - CALM_S)
    lower = tuple((other, when) for other, when in needed if other < level and when > at - CALM_S)
    return (*higher, (level, at), *lower) if level > 1.0 else higher


def factor_of(needed: Needed) -> float:
    """The size of ready pods, in sizes as written."""
    return needed[0][0] if needed else 1.0


def bridge(
    policy: Policy, seen: Observation, memory: Memory, proposals: list[Proposal], plan: Plan, steps: list[Step]
) -> tuple[Plan, Memory]:
    """The plan with the factor of ready pods, all else as it was. While the load is unknown the factor stays."""
    wanted, ready = 1.0, _ready(seen.pods)
    if policy.bridge is None or not bridge_counts(policy, seen.pods):
        memory = replace(memory, bridge_needed=())
    else:
        level = _level_now(policy.bridge, policy, seen, proposals, ready)
        if level is None:
            return replace(plan, bridge=in_force(policy.bridge, memory)), memory
        memory = replace(memory, bridge_needed=still_needed(memory.bridge_needed, level, seen.at))
        wanted = min(factor_of(memory.bridge_needed), policy.bridge.max_factor)
    held = _held(policy.bridge, seen, memory, wanted) if wanted != memory.bridge else None
    if held is not None:
        steps.append(held)
    factor = wanted if held is None else in_force(policy.bridge, memory)
    if factor > 1.0:
        steps.append(
            Step(rule=RuleName.BRIDGE, axis=Axis.BRIDGE, before=memory.bridge, after=factor, detail=str(len(ready)))
        )
    return replace(plan, bridge=factor), memory


def in_force(rule: Bridge | None, memory: Memory) -> float:
    """What is remembered, within what is allowed now: a status can be written by others, too."""
    return min(max(1.0, memory.bridge), rule.max_factor if rule is not None else LARGEST)


def _ready(pods: tuple[Pod, ...]) -> list[Pod]:
    return [pod for pod in pods if pod.ready and pod.phase == RUNNING and not pod.deleting]


def _level_now(
    rule: Bridge, policy: Policy, seen: Observation, proposals: list[Proposal], ready: list[Pod]
) -> float | None:
    """By the first signal on cpu, against the written requests; None when the load is not known."""
    for signal, proposal, samples in zip(policy.signals, proposals, seen.samples, strict=False):
        if not is_cpu(signal.metric):
            continue
        if isinstance(proposal.replicas, Missing) or not isinstance(samples, PodSamples):
            return None
        totals = tally(seen.pods, samples, signal.metric, policy.pods, seen.at, needs_request=True)
        if isinstance(totals, Missing) or totals.ready == 0:
            return None
        carried = sum(_request(pod, signal.metric) for pod in ready if pod.name in samples.values)
        return level_needed(totals.usage, carried, rule.ceiling, rule.max_factor)
    return None


def _request(pod: Pod, metric: Metric) -> float:
    size = pod.containers.get(metric.container) if metric.container else pod.requests
    return (size.cpu_cores or 0.0) if size is not None else 0.0


def _held(rule: Bridge | None, seen: Observation, memory: Memory, wanted: float) -> Step | None:
    """What keeps the factor as it is: a veto, or too many resizes within the hour. The last one is kept for growing."""
    grows = wanted > memory.bridge
    veto = next((veto for veto in seen.vetoes if _forbids(veto, grows, seen.at)), None)
    if veto is not None:
        detail = veto.detail or veto.reason
        return _hold(RuleName.VETO, memory.bridge, wanted, veto.until, detail, veto.reason)
    most = rule.resizes_per_hour if rule is not None else None
    moves = [moved for moved in memory.bridge_moves if moved > seen.at - HOUR_S]
    if most is None or len(moves) < (most if grows else most - 1):
        return None
    return _hold(RuleName.BRIDGE_LIMIT, memory.bridge, wanted, moves[0] + HOUR_S, str(most))


def _forbids(veto: Veto, grows: bool, at: float) -> bool:
    """What forbids larger requests forbids the bridge; taking it back is only in the way of its own vetoes."""
    axes = (Axis.BRIDGE, Axis.CPU) if grows else (Axis.BRIDGE,)
    direction = Direction.UP if grows else Direction.DOWN
    lasts = veto.until is None or veto.until > at
    return lasts and veto.axis in axes and veto.direction in (None, direction)


def _hold(rule: RuleName, now: float, wanted: float, until: float | None, detail: str, veto: str = "") -> Step:
    return Step(rule=rule, axis=Axis.BRIDGE, before=wanted, after=now, until=until, detail=detail, veto=veto)
