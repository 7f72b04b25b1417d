"""resize: how large each container should be, from its usage estimate, its bounds and the vertical safety rules."""

from __future__ import annotations

from trimtab.core.model import Memory, Observation, Step
from trimtab.policy import Size, Vertical


def resize(vertical: Vertical, seen: Observation, memory: Memory, steps: list[Step]) -> dict[str, Size]:
    """The recommended requests of each container that may move; empty when nothing is known."""
    return {}
