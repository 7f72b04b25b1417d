"""veto: a fact from outside forbids a direction now: a conflict, a rollout, a quota, the fleet breaker."""

from __future__ import annotations

from trimtab.core.gate.move import GateContext, Hold, Move
from trimtab.core.model import RuleName


def check(move: Move, context: GateContext) -> Hold | None:
    for veto in context.seen.vetoes:
        expired = veto.until is not None and veto.until <= context.seen.at
        if veto.axis is move.axis and veto.direction in (None, move.direction) and not expired:
            return Hold(RuleName.VETO, veto.until, veto.detail or veto.reason, veto.reason)
    return None
