"""Whole pods: always up, so that a plan never asks for less than was wished."""

from __future__ import annotations

from math import ceil

from trimtab.core.settle.context import SettleContext, Wish
from trimtab.policy import RoundUp


def whole(rule: RoundUp, wish: Wish, context: SettleContext) -> tuple[Wish, float | None]:
    return Wish(float(ceil(wish.replicas - rule.epsilon)), wish.ratio), None
