"""Watermarks' delay: a mark must have been crossed for a while before anything happens."""

from __future__ import annotations

from trimtab.core.settle.context import SettleContext, Wish
from trimtab.policy import Delay


def patience(rule: Delay, wish: Wish, scene: SettleContext) -> tuple[Wish, float | None]:
    if wish.replicas == scene.current or scene.converging:
        return wish, None
    up = wish.replicas > scene.current
    since = scene.memory.above_since if up else scene.memory.below_since
    wait_s = rule.above_s if up else rule.below_s
    if wait_s <= 0 or (since is not None and scene.at - since >= wait_s):
        return wish, None
    return Wish(float(scene.current), 1.0), (scene.at if since is None else since) + wait_s
