"""rest (document 001's stabilisation): nothing within window_s of the last scaling of any kind; equality passes."""

from __future__ import annotations

from trimtab.core.gate.move import GateContext, Hold, Move
from trimtab.core.model import RuleName
from trimtab.policy import Rest


def check(gate: Rest, move: Move, scene: GateContext) -> Hold | None:
    last = scene.memory.scaled_at
    if last is None or scene.lifted(move) or scene.seen.at >= last + gate.window_s:
        return None
    return Hold(RuleName.REST, last + gate.window_s)
