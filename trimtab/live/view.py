"""view: one object and its target in one tick, and what was seen, decided and done about them."""

from __future__ import annotations

from typing import NamedTuple

from trimtab.core.model import Decision, Observation, Pod
from trimtab.live.look import conflict
from trimtab.live.look.kept import Kept
from trimtab.live.look.subject import Subject
from trimtab.live.look.world import Target
from trimtab.policy import Axis


class View(NamedTuple):
    """One object and its target as they stand now."""

    subject: Subject
    target: Target
    pods: tuple[Pod, ...]
    kept: Kept
    claims: dict[Axis, conflict.Claim]


class Case(NamedTuple):
    """A view, what was seen and decided, and after acting what became of it."""

    view: View
    seen: Observation
    decision: Decision
    outcome: str = ""
    kept: Kept | None = None  # after the act
