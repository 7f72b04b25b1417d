"""Watermarks' delay: a mark must have been crossed for a while before anything happens."""

from __future__ import annotations

from trimtab.core.settle.context import SettleContext, Wish
from trimtab.policy import Delay


def patience(rule: Delay, wish: Wish, context: SettleContext) -> tuple[Wish, float | None]:
    if wish.replicas == context.current or context.converging:
        return wish, None
    up = wish.replicas > context.current
    since = context.memory.above_since if up else context.memory.below_since
    wait_s = rule.above_s if up else rule.below_s
    if wait_s <= 0 or (since is not None and context.at - since >= wait_s):
        return wish, None
    return Wish(float(context.current), 1.0), (context.at if since is None else since) + wait_s
