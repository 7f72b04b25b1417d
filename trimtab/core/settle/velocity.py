"""Watermarks' velocity: at most a percentage of the current replicas per step, at least one pod; 0 % disables."""

from __future__ import annotations

from math import floor

from trimtab.core.settle.context import SettleContext, Wish, wish_of
from trimtab.policy import Velocity


def limit(rule: Velocity, wish: Wish, context: SettleContext) -> tuple[Wish, float | None]:
    current = context.current
    least, most = down_limit(current, rule.down_percent), up_limit(current, rule.up_percent)
    # Fewer pods ready than one step would leave: the workload is not settled enough to shrink further.
    if wish.replicas < current and context.ready < least:
        return wish_of(current, current), None
    settled = min(max(wish.replicas, least), most)
    return (wish if settled == wish.replicas else wish_of(settled, current)), None


def up_limit(current: int, percent: float) -> int:
    return current + _step(current, percent)


def down_limit(current: int, percent: float) -> int:
    return current - _step(current, percent)


def _step(current: int, percent: float) -> int:
    return max(1, floor(percent * current / 100 + 1e-9)) if percent > 0 else 0
