"""object_tick: one object in one tick; every verb of the tick adds what it found."""

from __future__ import annotations

from typing import NamedTuple

from trimtab.acts import AxisOutcome, Fate, Outcome
from trimtab.core.model import Decision, Observation
from trimtab.live.look import conflict
from trimtab.live.look.cluster import ScaleTarget
from trimtab.live.look.memory import ObjectMemory
from trimtab.live.look.sizes import NO_BRIDGE, BridgeInForce, ResizeProgress
from trimtab.live.look.subject import Subject
from trimtab.policy import Axis


class ObjectTick(NamedTuple):
    """What the object asks for, what was seen, decided and done. Until then nothing is to change."""

    subject: Subject
    target: ScaleTarget
    claims: dict[Axis, conflict.Claim]  # of others on the same target
    memory: ObjectMemory  # that the decision is made with
    after: ObjectMemory  # what is remembered when the tick is over
    seen: Observation
    decision: Decision
    outcome: Outcome = ()
    bridged: BridgeInForce = NO_BRIDGE
    resizing: ResizeProgress = ResizeProgress()  # where sizes or a bridge may be written
    clock_trouble: str = ""  # which clock is wrong

    def wrote(self, axis: str) -> bool:
        return any(part.axis == axis and part.fate is Fate.WRITTEN for part in self.outcome)

    @property
    def refused(self) -> AxisOutcome | None:
        """The first refusal; another may only be its consequence."""
        return next((part for part in self.outcome if part.fate is Fate.REFUSED), None)
