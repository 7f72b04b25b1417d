"""update mode (HVPA weights): an axis and direction that is switched off, or open in the maintenance window only."""

from __future__ import annotations

from trimtab.core.gate import maintenance_window
from trimtab.core.gate.move import GateContext, Hold, Move
from trimtab.core.model import RuleName
from trimtab.policy import Update, UpdateMode


def check(gate: Update, move: Move, context: GateContext) -> Hold | None:
    return closed(gate, context.seen.at)


def closed(gate: Update, at: float) -> Hold | None:
    """Whether nothing at all may pass now, whatever it is."""
    if gate.mode is UpdateMode.OFF:
        return Hold(RuleName.UPDATE_MODE)
    if gate.mode is UpdateMode.WINDOW and not maintenance_window.contains(gate.window, at):
        return Hold(RuleName.MAINTENANCE_WINDOW, maintenance_window.next_begin(gate.window, at))
    return None
