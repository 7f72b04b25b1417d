"""blend: one plan from what both axes want; at most one of weights (001), buckets (004), capacity (ours)."""

from __future__ import annotations

from typing import NamedTuple

from trimtab.core.model import ContainerSize, Plan, Step
from trimtab.policy import Blend, Size, Vertical


class Ask(NamedTuple):
    """What both axes want, in one place; replicas are HPA's normalised number."""

    current: int
    wanted: int
    sizes: dict[str, ContainerSize]  # now
    targets: dict[str, Size]  # what vertical recommends, containers that may move only
    min_replicas: int
    max_replicas: int
    overloaded: bool


def blend(rule: Blend | None, vertical: Vertical, ask: Ask, steps: list[Step]) -> Plan:
    """Replicas and requests from the chosen rule, limits by the vertical policy."""
    return Plan(replicas=ask.wanted, sizes=ask.sizes)
