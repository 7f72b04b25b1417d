"""What a settling rule may look at: where the workload stands, when it is, and what is remembered."""

from __future__ import annotations

from typing import NamedTuple

from trimtab.core.model import Memory


class Wish(NamedTuple):
    """Wanted replicas, and what was asked for as a multiple of the current ones, before any rounding."""

    replicas: float
    ratio: float


class SettleContext(NamedTuple):
    at: float
    current: int
    ready: int
    min_replicas: int
    max_replicas: int
    memory: Memory
    converging: bool = False  # the wish comes from inside the watermarks' quiet zone


def wish_of(replicas: float, current: int) -> Wish:
    return Wish(replicas, ratio_to(replicas, current))


def ratio_to(replicas: float, current: int) -> float:
    """The ratio of replicas to the current ones; scaling up from zero counts as 2, staying there as 1."""
    if current:
        return replicas / current
    return 2.0 if replicas > 0 else 1.0
