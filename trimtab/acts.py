"""Acts: decisions with all four of their values, and what became of each part of their change."""

from __future__ import annotations

import enum
from typing import Literal, NamedTuple

from trimtab.core.model import Change, Decision, Memory, Observation
from trimtab.policy import Policy, Record
from trimtab.ticks import ObjectName

HELD = "held"


class Fate(enum.StrEnum):
    WRITTEN = "written"
    REFUSED = "refused"  # by the API server, or because the other axis was
    SHADOW = "shadow"  # decided, and not to be written
    ADVISED = "advised"  # sizes with `apply: Never`


class AxisOutcome(Record, frozen=True):
    """What became of one part of a change; of a refusal, why."""

    axis: Literal["replicas", "sizes", "bridge", "floor"]
    fate: Fate
    reason: str = ""


Outcome = tuple[AxisOutcome, ...]  # one for each part of a change; empty: there was nothing to do


class Act(NamedTuple):
    """A decision that changes something, all four values of it, and what became of each part of the change."""

    name: ObjectName
    policy: Policy
    seen: Observation
    memory: Memory
    decision: Decision
    outcome: Outcome = ()


def fate_of(outcome: Outcome) -> str:
    """The worst that became of a change, in a word or a sentence; a wish that a rule left nothing of was held."""
    if not outcome:
        return HELD
    for fate in (Fate.REFUSED, Fate.SHADOW, Fate.ADVISED):
        if found := next((part for part in outcome if part.fate is fate), None):
            return f"{fate}: {found.reason}" if found.reason else str(fate)
    return str(Fate.WRITTEN)


def changed_axes(change: Change | None) -> tuple[Literal["replicas", "sizes", "bridge"], ...]:
    """Which parts a change has."""
    if change is None:
        return ()
    replicas: tuple[Literal["replicas"], ...] = () if change.replicas is None else ("replicas",)
    sizes: tuple[Literal["sizes"], ...] = ("sizes",) if change.sizes else ()
    return (*replicas, *sizes) if change.bridge is None else (*replicas, *sizes, "bridge")


def describe(outcome: Outcome) -> str:
    """ "replicas written, sizes refused: why"."""
    said = [f"{part.axis} {part.fate}" + (f": {part.reason}" if part.reason else "") for part in outcome]
    return ", ".join(said) or "nothing to do"
