"""settle: the ordered rules between a wish and a plan; one module per rule, every rule a function of the same shape.

A rule takes its policy record, the wish and the context, and returns the wish and until when it holds (None: no date).
To add one: its record in `policy.Rule`, its module here, a line in RULES, a sentence in `explain`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trimtab.core.model import RuleName, Step
from trimtab.core.settle import cooldown, delay, factor, limit, rate, round_up, stabilise, velocity
from trimtab.core.settle.context import SettleContext, Wish
from trimtab.policy import (
    Axis,
    Cooldown,
    Delay,
    MaxFactor,
    MinFactor,
    Rate,
    RoundUp,
    Rule,
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


def settle(rules: tuple[Rule, ...], wish: Wish, context: SettleContext, steps: list[Step]) -> Wish:
    """Fold the wish through the rules in order; each that changes it leaves a step."""
    for rule in rules:
        name, apply = RULES[type(rule)]
        settled, until = apply(rule, wish, context)
        if settled.replicas != wish.replicas:
            before, after = wish.replicas, settled.replicas
            steps.append(Step(rule=name, axis=Axis.REPLICAS, before=before, after=after, until=until))
        wish = settled
    return wish


__all__ = ["RULES", "SettleContext", "Settled", "Wish", "settle"]
