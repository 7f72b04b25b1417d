"""rest (HVPA's stabilisation): nothing within window_s of the last scaling of any kind; equality passes."""

from __future__ import annotations

from trimtab.core.gate.move import GateContext, Hold, Move
from trimtab.core.model import RuleName
from trimtab.policy import Rest


def check(gate: Rest, move: Move, context: GateContext) -> Hold | None:
    last = context.memory.scaled_at
    if last is None or context.lifted(move) or context.seen.at >= last + gate.window_s:
        return None
    return Hold(RuleName.REST, last + gate.window_s)
