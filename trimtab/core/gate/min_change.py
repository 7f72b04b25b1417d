"""minimum change (HVPA weights): |change| must reach the smaller of an amount and a percentage of what it is now.

200 millicores or 200 MB where neither is given. A container that uses more than its request never waits for a larger
change: its lower bound, where known, above the request opens the gate (else a full node starves it for ever).
"""

from __future__ import annotations

from trimtab.core.gate.move import GateContext, Hold, Move
from trimtab.core.model import Missing, RuleName
from trimtab.policy import Axis, Direction, MinChange

DEFAULT = {Axis.CPU: 0.2, Axis.MEMORY: 200e6, Axis.REPLICAS: 0.0}
_NOISE = 1e-9


def check(gate: MinChange, move: Move, context: GateContext) -> Hold | None:
    if abs(move.after - move.before) >= threshold(gate, move.before) * (1.0 - _NOISE):
        return None
    return None if context.lifted(move) or _starves(move, context) else Hold(RuleName.MIN_CHANGE)


def threshold(gate: MinChange, now: float) -> float:
    """The smaller one counts: a change passes when it reaches either."""
    ways = [] if gate.value is None else [gate.value]
    ways += [] if gate.percent is None else [gate.percent / 100.0 * now]
    return min(ways, default=DEFAULT[gate.axis])


def _starves(move: Move, context: GateContext) -> bool:
    usage = context.seen.usage
    if move.direction is Direction.DOWN or isinstance(usage, Missing) or usage.expires_at <= context.seen.at:
        return False
    estimate = usage.containers.get(move.container)
    return estimate is not None and (estimate.lower.amount(move.axis) or 0.0) > move.before
