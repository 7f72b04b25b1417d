"""floor: what a predictive HPA (document 003) says: its user's own minReplicas, and the one we put in its place."""

from __future__ import annotations

from typing import NamedTuple

from trimtab.errors import InvalidInput
from trimtab.kinds.annotations import ORIGINAL_FLOOR, PREDICTIVE, RAISED_FLOOR, RAISED_FLOOR_UNTIL
from trimtab.kinds.meta import predictive
from trimtab.wire.objects import Custom


class Floor(NamedTuple):
    """What an HPA says: the user's own minimum, and ours where we raised it."""

    original: int
    ours: int | None
    until: float


def read(found: Custom) -> Floor:
    """From spec and annotations; a minReplicas that is not ours is the user's new word."""
    notes, now = found.metadata.annotations or {}, int(found.spec.get("minReplicas", 1))
    ours = notes.get(RAISED_FLOOR, "")
    if not ours.isdecimal() or int(ours) != now or not notes.get(ORIGINAL_FLOOR, "").isdecimal():
        return Floor(now, None, 0.0)
    until = notes.get(RAISED_FLOOR_UNTIL, "0")
    return Floor(int(notes[ORIGINAL_FLOOR]), int(ours), float(until) if until.replace(".", "").isdecimal() else 0.0)


def is_predictive(found: Custom) -> bool:
    return speaks_of_forecasts(found) is True


def speaks_of_forecasts(found: Custom) -> bool | None:
    """Whether it asks for one; None: its annotation says neither, which is told to its user."""
    try:
        return predictive((found.metadata.annotations or {}).get(PREDICTIVE), "")
    except InvalidInput:
        return None


def is_ours(found: Custom) -> bool:
    """It has a floor of ours, annotated still or not."""
    return ORIGINAL_FLOOR in (found.metadata.annotations or {})


def owner(found: Custom) -> str:
    """Who manages this HPA, if somebody does: it would undo our change, so it is left alone."""
    controller = found.metadata.controller
    return f"{controller.kind}/{controller.name}" if controller else ""
