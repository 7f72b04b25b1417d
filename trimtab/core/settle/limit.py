"""HPA without `behavior`: one step up ends at max(factor x current, minimum)."""

from __future__ import annotations

from trimtab.core.settle.context import SettleContext, Wish, wish_of
from trimtab.policy import UpLimit


def doubling(rule: UpLimit, wish: Wish, context: SettleContext) -> tuple[Wish, float | None]:
    most = up_limit(context.current, rule.factor, rule.minimum)
    return (wish_of(most, context.current) if wish.replicas > most else wish), None


def up_limit(current: int, factor: float, minimum: float) -> int:
    return int(max(factor * current, minimum))
