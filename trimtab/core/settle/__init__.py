"""settle: the ordered rules between a recommendation and a plan.

A rule that needs no history is a function of plain numbers in `stateless`; CONTRIBUTING.md says how to add one. A rule
that looks at memory takes its policy record, the recommendation and the context, and returns the recommendation and
until when it holds (None: no date).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import structs

from trimtab.core.model import RuleName, Step
from trimtab.core.settle import cooldown, delay, rate, stabilise, velocity
from trimtab.core.settle.context import SettleContext, Wish
from trimtab.core.settle.stateless import STATELESS, StatelessRule
from trimtab.policy import (
    Axis,
    Cooldown,
    Delay,
    Rate,
    Rule,
    Stabilise,
    StabiliseMax,
    Velocity,
)

Settled = tuple[Wish, float | None]

Apply = Callable[[Any, Wish, SettleContext], Settled]


def _apply_stateless(stateless: StatelessRule) -> Apply:
    def apply(rule: Any, wish: Wish, context: SettleContext) -> Settled:
        return Wish(*stateless.function(*wish, context.current, *structs.astuple(rule))), None

    return apply


RULES: dict[type, tuple[RuleName, Apply]] = {
    StabiliseMax: (RuleName.STABILISE, stabilise.highest),
    Stabilise: (RuleName.STABILISE, stabilise.between),
    Rate: (RuleName.RATE, rate.limit),
    Velocity: (RuleName.VELOCITY, velocity.limit),
    Cooldown: (RuleName.COOLDOWN, cooldown.rest),
    Delay: (RuleName.DELAY, delay.patience),
    **{kind: (stateless.name, _apply_stateless(stateless)) for kind, stateless in STATELESS.items()},
}


def settle(rules: tuple[Rule, ...], wish: Wish, context: SettleContext, steps: list[Step]) -> Wish:
    """Fold the wish through the rules in order; each that changes it leaves a step."""
    for rule in rules:
        name, apply = RULES[type(rule)]
        settled, until = apply(rule, wish, context)
        if settled.replicas != wish.replicas:
            before, after = wish.replicas, settled.replicas
            detail = STATELESS[type(rule)].sentence if type(rule) in STATELESS else ""
            steps.append(Step(rule=name, axis=Axis.REPLICAS, before=before, after=after, until=until, detail=detail))
        wish = settled
    return wish


__all__ = ["RULES", "SettleContext", "Settled", "Wish", "settle"]
