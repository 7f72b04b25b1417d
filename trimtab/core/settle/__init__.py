"""settle: the ordered rules between a wish and a plan; one module a rule, every rule a function of the same shape.

A rule takes its policy record, the wish and the context, and returns the wish and until when it holds (None: no date).
To add one: its record in `policy.Rule`, its module here, a line in RULES, a sentence in `explain`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trimtab.core.model import RuleName
from trimtab.core.settle import cooldown, delay, factor, limit, rate, round_up, stabilise, velocity
from trimtab.core.settle.context import SettleContext, Wish
from trimtab.policy import (
    Cooldown,
    Delay,
    MaxFactor,
    MinFactor,
    Rate,
    RoundUp,
    Stabilise,
    StabiliseMax,
    UpLimit,
    Velocity,
)

Settled = tuple[Wish, float | None]

RULES: dict[type, tuple[RuleName, Callable[[Any, Wish, SettleContext], Settled]]] = {
    StabiliseMax: (RuleName.STABILISE, stabilise.highest),
    Stabilise: (RuleName.STABILISE, stabilise.between),
    UpLimit: (RuleName.UP_LIMIT, limit.doubling),
    Rate: (RuleName.RATE, rate.limit),
    Velocity: (RuleName.VELOCITY, velocity.limit),
    MaxFactor: (RuleName.MAX_FACTOR, factor.cap),
    MinFactor: (RuleName.MIN_FACTOR, factor.worth_it),
    Cooldown: (RuleName.COOLDOWN, cooldown.rest),
    Delay: (RuleName.DELAY, delay.patience),
    RoundUp: (RuleName.ROUND_UP, round_up.whole),
}

__all__ = ["RULES", "SettleContext", "Settled", "Wish"]
