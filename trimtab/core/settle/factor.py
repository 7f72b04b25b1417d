"""Document 002's factors: how large a step may be, and how large it must be to be worth it.

capped = clamp(factor, 1 - max_down, 1 + max_up); refused when 1 - min_down <= factor <= 1 + min_up.
"""

from __future__ import annotations

from trimtab.core.settle.context import SettleContext, Wish
from trimtab.policy import MaxFactor, MinFactor


def cap(rule: MaxFactor, wish: Wish, context: SettleContext) -> tuple[Wish, float | None]:
    capped = capped_factor(wish.ratio, rule.up, rule.down)
    return (wish if capped == wish.ratio else Wish(context.current * capped, capped)), None


def worth_it(rule: MinFactor, wish: Wish, context: SettleContext) -> tuple[Wish, float | None]:
    kept = Wish(float(context.current), 1.0)
    return (wish if large_enough(wish.ratio, rule.up, rule.down) else kept), None


def capped_factor(factor: float, up: float, down: float) -> float:
    return min(factor, 1.0 + up) if factor > 1.0 else max(factor, 1.0 - down)


def large_enough(factor: float, up: float, down: float) -> bool:
    return factor > 1.0 + up if factor > 1.0 else factor < 1.0 - down
