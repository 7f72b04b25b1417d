"""gate: may it happen now? One module per gate; the first that holds a move is the reason.

Vetoes come first, then the gates in the order of the policy. To add one: its record in `policy.Gate`, its module here,
a line in GATES, a sentence in `explain`.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

from msgspec.structs import replace

from trimtab.core.gate import min_change, rest, update_mode, veto
from trimtab.core.gate.joint_plan import hold_jointly
from trimtab.core.gate.move import GateContext, Hold, Move, moves
from trimtab.core.model import ContainerSize, Memory, Observation, Plan, Step
from trimtab.policy import Axis, Direction, Gate, MinChange, Rest, Size, Update

GATES: dict[type, Callable[[Any, Move, GateContext], Hold | None]] = {
    Update: update_mode.check,
    Rest: rest.check,
    MinChange: min_change.check,
}


def gate(gates: tuple[Gate, ...], seen: Observation, memory: Memory, plan: Plan, steps: list[Step]) -> Plan:
    """The plan with every move that is held taken back to what is now."""
    context = GateContext(seen, memory)
    holds = {move: held(gates, move, context) for move in moves(seen, plan)}
    if plan.joint:
        holds = hold_jointly(plan, seen, holds)
    for move, hold in holds.items():
        if hold is not None:
            steps.append(_step(move, hold))
            plan = _taken_back(plan, seen, move)
    return plan


def held(gates: tuple[Gate, ...], move: Move, context: GateContext) -> Hold | None:
    """The first reason why this move may not happen now."""
    found = veto.check(move, context)
    for gate_rule in gates:
        if found is not None:
            break
        if gate_rule.axis is move.axis and gate_rule.direction is move.direction:
            found = GATES[type(gate_rule)](gate_rule, move, context)
    return found


def may_grow(gates: tuple[Gate, ...], at: float) -> bool:
    """Whether the update modes let replicas grow at all now."""
    return not any(
        isinstance(gate_rule, Update)
        and gate_rule.axis is Axis.REPLICAS
        and gate_rule.direction is Direction.UP
        and update_mode.closed(gate_rule, at)
        for gate_rule in gates
    )


def smallest_changes(
    gates: tuple[Gate, ...], seen: Observation, memory: Memory, targets: dict[str, Size]
) -> dict[tuple[str, Axis], float]:
    """What the change of each recommended request must reach to be carried out; inf where it may not be now.

    A rest that is running passes by itself, so it forbids nothing; a resource without a smallest change is left out.
    """
    context, lasting = GateContext(seen, memory), tuple(rule for rule in gates if not isinstance(rule, Rest))
    bounded = {(rule.axis, rule.direction) for rule in gates if isinstance(rule, MinChange)}
    found: dict[tuple[str, Axis], float] = {}
    for change in moves(seen, Plan(replicas=seen.spec_replicas, sizes=_with_requests(seen, targets))):
        if held(lasting, change, context) is not None:
            found[change.container, change.axis] = inf
        elif (change.axis, change.direction) in bounded:
            found[change.container, change.axis] = 0.0
    return found


def _with_requests(seen: Observation, targets: dict[str, Size]) -> dict[str, ContainerSize]:
    return {name: ContainerSize(requests=target) for name, target in targets.items() if name in seen.sizes}


def _taken_back(plan: Plan, seen: Observation, move: Move) -> Plan:
    if move.axis is Axis.REPLICAS:
        return replace(plan, replicas=seen.spec_replicas)
    now = seen.sizes.get(move.container, ContainerSize(requests=plan.sizes[move.container].requests))
    size, axis = plan.sizes[move.container], move.axis
    kept = ContainerSize(
        requests=size.requests.with_amount(axis, now.requests.amount(axis)),
        limits=size.limits.with_amount(axis, now.limits.amount(axis)),
    )
    return replace(plan, sizes=plan.sizes | {move.container: kept})


def _step(move: Move, hold: Hold) -> Step:
    return Step(
        rule=hold.rule,
        axis=move.axis,
        before=move.after,
        after=move.before,
        until=hold.until,
        container=move.container,
        detail=hold.detail,
        veto=hold.veto,
    )


__all__ = ["GATES", "gate", "held", "may_grow"]
