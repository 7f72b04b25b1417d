"""joint plan: what happens to the rest of a joint plan when a part of it is held.

More, smaller replicas or fewer, larger ones are a trade. When the half that adds is held, the half that gives up is
held too, or the workload would get less than both now and planned. When the half that gives up is held, the half that
adds is held unless the total must grow, or the workload would get more than anybody asked for. Sizes held only because
they are too small a change or too soon after another go along with a plan that happens anyway (hvpa-v2).
"""

from __future__ import annotations

from trimtab.core.gate.move import Hold, Move
from trimtab.core.model import ContainerSize, Observation, Plan, RuleName
from trimtab.policy import RESOURCES, Axis, Direction

_PATIENCE = (RuleName.MIN_CHANGE, RuleName.REST)
_NOISE = 1.0 + 1e-9


def hold_jointly(plan: Plan, seen: Observation, holds: dict[Move, Hold | None]) -> dict[Move, Hold | None]:
    holds = _go_along(holds)
    out = next((move for move in holds if move.axis is Axis.REPLICAS), None)
    if out is None:
        return holds
    blocked = holds[out] or _held_with_sizes(plan, seen, out, holds)
    if blocked is None:
        return holds
    rest = {move: hold or _held_with_replicas(plan, seen, out, move, blocked) for move, hold in holds.items()}
    return rest | {out: blocked}


def _go_along(holds: dict[Move, Hold | None]) -> dict[Move, Hold | None]:
    if not any(hold is None for hold in holds.values()):
        return holds
    return {
        move: None if hold and hold.rule in _PATIENCE and move.axis is not Axis.REPLICAS else hold
        for move, hold in holds.items()
    }


def _held_with_replicas(plan: Plan, seen: Observation, out: Move, move: Move, hold: Hold) -> Hold | None:
    """Scaling out is held: nothing shrinks. Scaling in is held: nothing grows that has enough already."""
    if out.direction is Direction.UP:
        return hold if move.direction is Direction.DOWN else None
    return hold if move.direction is Direction.UP and _enough(plan, seen, move.axis) else None


def _held_with_sizes(plan: Plan, seen: Observation, out: Move, holds: dict[Move, Hold | None]) -> Hold | None:
    """A size that may not grow holds scaling in; one that may not shrink holds scaling out that nothing needs."""
    counter = Direction.DOWN if out.direction is Direction.UP else Direction.UP
    held = [hold for move, hold in holds.items() if hold and move.direction is counter]
    if not held or (out.direction is Direction.UP and not all(_enough(plan, seen, axis) for axis in RESOURCES)):
        return None
    return held[0]


def _enough(plan: Plan, seen: Observation, axis: Axis) -> bool:
    """What is there now holds the planned total."""
    now, planned = _sum(seen.sizes, axis) * seen.spec_replicas, _sum(plan.sizes, axis) * plan.replicas
    return planned <= now * _NOISE


def _sum(sizes: dict[str, ContainerSize], axis: Axis) -> float:
    return sum(size.requests.amount(axis) or 0.0 for size in sizes.values())
