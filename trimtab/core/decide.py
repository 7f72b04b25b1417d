"""decide(policy, seen, memory) -> Decision: the stages in order. Read this first.

admit -> propose (tally) + propose_ahead -> propose_priced -> combine -> settle -> resize -> blend -> bound -> gate
-> bridge -> change
"""

from __future__ import annotations

from math import ceil

from msgspec.structs import replace

from trimtab.core.admit import AdmitVerdict, admit
from trimtab.core.blend import AxisWishes, blend, joint_vote, speaks_for
from trimtab.core.blend.asks import held_by_rules, horizontal_asks, margins_of, mean_requests
from trimtab.core.blend.vertical_first import vertical_first
from trimtab.core.bound import bound
from trimtab.core.bounds_in_force import BoundsInForce, bounds_at
from trimtab.core.bridge import bridge
from trimtab.core.combine import combine
from trimtab.core.demand import is_per_pod
from trimtab.core.gate import gate, may_grow, smallest_changes
from trimtab.core.model import (
    Change,
    ContainerSize,
    Decision,
    Memory,
    Missing,
    Observation,
    Plan,
    Proposal,
    RuleName,
    Step,
)
from trimtab.core.propose import propose
from trimtab.core.propose_ahead import propose_ahead
from trimtab.core.propose_priced import propose_priced
from trimtab.core.resize import resize
from trimtab.core.settle import SettleContext, Wish, settle, stabilise
from trimtab.core.settle.context import wish_of
from trimtab.core.tally import serves
from trimtab.core.watermark import note_marks
from trimtab.policy import Axis, Policy, Rule, Watermark, Weights


def decide(policy: Policy, seen: Observation, memory: Memory) -> Decision:
    """What the workload should become, and why. Pure: the same three values give the same decision, for ever."""
    bounds = bounds_at(policy.bounds, seen.at)
    verdict = admit(policy, seen, memory, bounds)
    if verdict is not None:
        return _without_metrics(policy, seen, memory, verdict)
    steps: list[Step] = []
    proposals, rules = propose(policy, seen) + propose_ahead(policy, seen), policy.settle
    if policy.objective is not None:
        proposals, rules = propose_priced(policy, policy.objective, seen, proposals)
    memory = note_marks(policy, seen, memory, proposals)
    chosen = combine(policy.combine, _candidates(policy, proposals), seen.spec_replicas)
    if isinstance(chosen, Missing):
        wanted, wish, memory = _without_signal(policy, seen, memory, chosen, steps)
        ahead = _forecast_above(policy, proposals, max(wanted, seen.spec_replicas))
        if ahead is not None:
            context, since = _settle_context(policy, seen, memory, bounds), memory.failing_since
            more, wish, memory = _with_signal(policy, rules, context, ahead, steps)
            wanted, memory = max(wanted, more), replace(memory, failing_since=since)
    else:
        context = _settle_context(policy, seen, memory, bounds)
        wanted, wish, memory = _with_signal(policy, rules, context, chosen, steps)
    plan, memory = _plan(policy, seen, memory, proposals, chosen, wanted, bounds, steps)
    if policy.gates or seen.vetoes:
        plan = gate(policy.gates, seen, memory, plan, steps)
    if policy.bridge is not None or memory.bridge > 1.0:
        plan, memory = bridge(policy, seen, memory, proposals, plan, steps)
    change = _change(policy, seen, memory, plan, insists=wish.ratio if policy.replays_noop else 1.0)
    return Decision(plan=plan, change=change, proposals=tuple(proposals), steps=tuple(steps), memory=memory)


def _without_metrics(policy: Policy, seen: Observation, memory: Memory, verdict: AdmitVerdict) -> Decision:
    steps = [_replicas_step(verdict.rule, seen.spec_replicas, verdict.replicas, verdict.until)]
    if verdict.rule in (RuleName.PAUSED, RuleName.PIN):  # nobody looks at metrics: a window passes afterwards
        wishes = stabilise.hold_without_metrics(policy.settle, memory.wanted, seen.at, verdict.replicas, lowers=False)
        memory = replace(memory, wanted=wishes)
    plan = gate((), seen, memory, Plan(replicas=verdict.replicas, sizes=seen.sizes, bridge=memory.bridge), steps)
    return Decision(plan=plan, change=_change(policy, seen, memory, plan), steps=tuple(steps), memory=memory)


def _candidates(policy: Policy, proposals: list[Proposal]) -> list[Proposal]:
    """A forecast only adds; in exact mode the predictive HPA's line replaces the present, as its program does."""
    present, ahead = proposals[: len(policy.signals)], proposals[len(policy.signals) :]
    if not is_per_pod(policy) or not ahead:
        return proposals
    return [
        now if isinstance(line.replicas, Missing) else replace(line, forecast=False)
        for now, line in zip(present, ahead, strict=True)
    ]


def _without_signal(
    policy: Policy, seen: Observation, memory: Memory, missing: Missing, steps: list[Step]
) -> tuple[int, Wish, Memory]:
    """Keep the size; after a while take the fallback, which is a floor unless the user allows a decrease."""
    current, absence = seen.spec_replicas, policy.absence
    if not policy.signals:  # vertical only: nothing is missing
        return current, Wish(current, 1.0), memory
    since = memory.failing_since if memory.failing_since is not None else seen.at
    memory = replace(memory, failing_since=since)
    steps.append(_replicas_step(RuleName.METRICS_MISSING, current, current, detail=missing.reason))
    wanted = current
    if absence.then_replicas is not None and seen.at >= since + absence.hold_s:
        wanted = absence.then_replicas if absence.allow_decrease else max(current, absence.then_replicas)
    if wanted != current:
        steps.append(_replicas_step(RuleName.FALLBACK, current, wanted))
    wishes = stabilise.hold_without_metrics(policy.settle, memory.wanted, seen.at, wanted, absence.allow_decrease)
    return wanted, wish_of(wanted, current), replace(memory, wanted=wishes)


def _forecast_above(policy: Policy, proposals: list[Proposal], replicas: int) -> Proposal | None:
    """Return what a forecast that is still dated asks for beyond this, where metrics are lost, as in a ramp."""
    if policy.forecast is None or policy.forecast.exact:
        return None
    usable = [proposal for proposal in proposals if proposal.forecast and not isinstance(proposal.replicas, Missing)]
    highest = max(usable, key=Proposal.number, default=None)
    return highest if highest is not None and highest.number() > replicas else None


def _with_signal(
    policy: Policy, rules: tuple[Rule, ...], context: SettleContext, chosen: Proposal, steps: list[Step]
) -> tuple[int, Wish, Memory]:
    """The wish after the ordered rules; the raw one is remembered for the next time, whichever rules hold then."""
    raw = _first_wish(chosen, context.current)
    wish = settle(rules, raw, context, steps)
    wanted, window_s = context.memory.wanted, stabilise.window(policy.settle + rules)
    if window_s is not None:
        wanted = stabilise.remember(wanted, context.at, _whole(raw), window_s)
    return _whole(wish), wish, replace(context.memory, failing_since=None, wanted=wanted)


def _first_wish(chosen: Proposal, current: int) -> Wish:
    """Custom-hpa's factor is what was asked for before rounding; its edges are inclusive to the last bit."""
    if chosen.ratio is not None:
        return Wish(chosen.number(), chosen.ratio)
    return wish_of(chosen.number(), current)


def _whole(wish: Wish) -> int:
    return ceil(wish.replicas - 1e-9)


def _settle_context(policy: Policy, seen: Observation, memory: Memory, bounds: BoundsInForce) -> SettleContext:
    marks = any(isinstance(signal, Watermark) for signal in policy.signals)
    ready = sum(1 for pod in seen.pods if serves(pod, policy.pods, seen.at)) if marks else seen.spec_replicas
    calm = marks and memory.above_since is None and memory.below_since is None
    return SettleContext(seen.at, seen.spec_replicas, ready, bounds.least, bounds.most, memory, calm)


def _plan(
    policy: Policy,
    seen: Observation,
    memory: Memory,
    proposals: list[Proposal],
    chosen: Proposal | Missing,
    wanted: int,
    bounds: BoundsInForce,
    steps: list[Step],
) -> tuple[Plan, Memory]:
    """resize, blend, bound: both axes in one plan; without a vertical policy it is the replicas alone."""
    if policy.vertical is None:
        return Plan(replicas=bound(wanted, bounds, steps), sizes=seen.sizes), memory
    targets = resize(policy.vertical, seen, memory, steps)
    usage = None if isinstance(seen.usage, Missing) or seen.usage.expires_at <= seen.at else seen.usage
    recent = usage.recent if usage is not None else None
    window_s = stabilise.window(policy.settle)
    wishes = AxisWishes(
        current=seen.spec_replicas,
        wanted=wanted,
        sizes=seen.sizes,
        targets=targets,
        min_replicas=bounds.least,
        max_replicas=bounds.most,
        overloaded=memory.overloaded,
        speaks_for=speaks_for(policy.signals),
        stuck=_stuck(policy, seen, chosen, bounds),
        smallest=smallest_changes(policy.gates, seen, memory, targets),
        blind=isinstance(chosen, Missing) and bool(policy.signals),
        asked=horizontal_asks(policy, seen, proposals, chosen, wanted),
        recent={} if recent is None else recent.totals,
        recent_margin=margins_of(policy) if isinstance(policy.blend, Weights) else {},
        complete=usage is not None and (recent is None or recent.complete),
        held=max(held_by_rules(chosen, wanted), stabilise.highest_of(memory.planned, seen.at, window_s)),
        written=seen.written_for,
        requested=mean_requests(seen),
    )
    if isinstance(policy.blend, Weights):
        wishes, memory = vertical_first(policy.blend, policy.vertical, wishes, seen, memory)
    vote = joint_vote(policy.blend, policy.vertical, wishes)
    if vote is not None and window_s is not None:
        memory = replace(memory, planned=stabilise.remember(memory.planned, seen.at, vote, window_s))
    plan = blend(policy.blend, policy.vertical, wishes, steps)
    return replace(plan, replicas=bound(plan.replicas, bounds, steps)), memory


def _stuck(policy: Policy, seen: Observation, chosen: Proposal | Missing, bounds: BoundsInForce) -> bool:
    """Replicas cannot grow: there is no signal, the update mode forbids it, or more than maxReplicas are wanted."""
    if not policy.signals or not may_grow(policy.gates, seen.at):
        return True
    return not isinstance(chosen, Missing) and chosen.number() > bounds.most


def _change(policy: Policy, seen: Observation, memory: Memory, plan: Plan, insists: float = 1.0) -> Change | None:
    """What differs from now; a factor that `insists` repeats the same number, as custom-hpa's program does."""
    replicas = plan.replicas if plan.replicas != seen.spec_replicas or insists != 1.0 else None
    sizes: dict[str, ContainerSize] = {name: size for name, size in plan.sizes.items() if size != seen.sizes.get(name)}
    factor = plan.bridge if plan.bridge != memory.bridge else None
    if replicas is None and not sizes and factor is None:
        return None
    return Change(seen.spec_replicas, replicas, sizes or None, factor, upward=insists > 1.0)


def _replicas_step(rule: RuleName, before: float, after: float, until: float | None = None, detail: str = "") -> Step:
    return Step(rule=rule, axis=Axis.REPLICAS, before=before, after=after, until=until, detail=detail)
