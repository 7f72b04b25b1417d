"""Cooldown: blocked while now is strictly before last + cooldown (nanit custom-hpa: of the same direction)."""

from __future__ import annotations

from trimtab.core.settle.context import SettleContext, Wish
from trimtab.policy import Cooldown


def rest(rule: Cooldown, wish: Wish, context: SettleContext) -> tuple[Wish, float | None]:
    up = wish.ratio > 1.0
    if wish.replicas == context.current and wish.ratio == 1.0:
        return wish, None
    last = _last(rule, context, up)
    until = None if last is None else last + (rule.up_s if up else rule.down_s)
    if until is None or context.at >= until:
        return wish, None
    return Wish(float(context.current), 1.0), until


def _last(rule: Cooldown, context: SettleContext, up: bool) -> float | None:
    if rule.any_direction:
        return max((at for at in (context.memory.up_at, context.memory.down_at) if at is not None), default=None)
    return context.memory.up_at if up else context.memory.down_at
