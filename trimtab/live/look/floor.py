"""The floor of a predictive HPA: its user's own minReplicas, and the one that we put in its place."""

from __future__ import annotations

import re
from typing import NamedTuple

from trimtab.errors import InvalidInput
from trimtab.kinds.annotations import FORECAST_NOTE, ORIGINAL_FLOOR, PREDICTIVE, RAISED_FLOOR, RAISED_FLOOR_UNTIL
from trimtab.kinds.meta import predictive
from trimtab.wire.objects import Custom

WHOLE_NUMBER = re.compile(r"[0-9]{1,18}")


class Floor(NamedTuple):
    """What an HPA says: the user's own minimum, and ours where we raised it."""

    original: int
    ours: int | None
    until: float


def read(found: Custom) -> Floor:
    """From spec and annotations; a minReplicas that is not ours is the user's new word."""
    notes, given = found.metadata.annotations or {}, found.spec.get("minReplicas")
    now = 1 if given is None else int(given)
    original, ours = _number(notes.get(ORIGINAL_FLOOR)), _number(notes.get(RAISED_FLOOR))
    if original is None or ours != now:
        return Floor(now, None, 0.0)
    return Floor(original, ours, float(_number(notes.get(RAISED_FLOOR_UNTIL)) or 0))


def _number(text: str | None) -> int | None:
    """Of an annotation that anybody may have written."""
    return int(text) if text and WHOLE_NUMBER.fullmatch(text) else None


def is_predictive(found: Custom) -> bool:
    return speaks_of_forecasts(found) is True


def speaks_of_forecasts(found: Custom) -> bool | None:
    """Whether it asks for one; None: its annotation says neither, which is told to its user."""
    try:
        return predictive(found.metadata.notes.get(PREDICTIVE), "")
    except InvalidInput:
        return None


def is_ours(found: Custom) -> bool:
    """It has a floor or a note of ours, annotated still or not."""
    return ORIGINAL_FLOOR in found.metadata.notes or FORECAST_NOTE in found.metadata.notes


def owner(found: Custom) -> str:
    """Who manages this HPA, if somebody does: it would undo our change, so it is left alone."""
    controller = found.metadata.controller
    return f"{controller.kind}/{controller.name}" if controller else ""
