"""move: one number of a plan that differs from now; what each gate looks at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from trimtab.core.model import Memory, Observation, Plan, RuleName
from trimtab.policy import RESOURCES, Axis, Direction, Size


class Move(NamedTuple):
    axis: Axis
    direction: Direction
    before: float
    after: float
    container: str = ""


class Hold(NamedTuple):
    """Why a move may not happen now, and until when."""

    rule: RuleName
    until: float | None = None
    detail: str = ""
    veto: str = ""


class GateContext(NamedTuple):
    seen: Observation
    memory: Memory

    def lifted(self, move: Move) -> bool:
        """After an OOM kill or an eviction nothing waits that helps."""
        return self.memory.overloaded and move.direction is Direction.UP


def moves(seen: Observation, plan: Plan) -> Iterator[Move]:
    """Replicas first, then the requests of each container; a request that is not set counts as 0."""
    if plan.replicas != seen.spec_replicas:
        yield move(Axis.REPLICAS, seen.spec_replicas, plan.replicas)
    for name, size in plan.sizes.items():
        now = seen.sizes[name].requests if name in seen.sizes else Size()
        for axis in RESOURCES:
            before, after = now.amount(axis) or 0.0, size.requests.amount(axis) or 0.0
            if before != after:
                yield move(axis, before, after, name)


def move(axis: Axis, before: float, after: float, container: str = "") -> Move:
    return Move(axis, Direction.UP if after > before else Direction.DOWN, before, after, container)
