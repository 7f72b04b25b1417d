"""floor: an HPA annotated `predictive: "true"` (document 003) keeps scaling by itself; the forecast raises its floor.

minReplicas becomes what the forecast needs, never above maxReplicas and as fast as its own rules allow; it falls back
to the user's value, kept in trimtab.dev/min-replicas, when the forecast asks for less and its date has passed. An edit
by the user is the new original.
"""

from __future__ import annotations

from math import ceil
from typing import Any, NamedTuple

from trimtab.core.model import Decision, Missing, Observation
from trimtab.errors import Refused
from trimtab.kinds.annotations import ORIGINAL_FLOOR, PREDICTIVE, RAISED_FLOOR, RAISED_FLOOR_UNTIL
from trimtab.live.act.pen import Pen
from trimtab.live.measure.horizon import horizon_s
from trimtab.live.tell.events import Happening, tell
from trimtab.policy import Policy
from trimtab.wire.kube import Patch
from trimtab.wire.objects import Custom
from trimtab.wire.resources import HPAS

LASTS_S = 60.0  # a raised floor stays at least this long: pods that were asked for should not go before they serve


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
    return (found.metadata.annotations or {}).get(PREDICTIVE) == "true"


def is_ours(found: Custom) -> bool:
    """It has a floor of ours, annotated still or not."""
    return ORIGINAL_FLOOR in (found.metadata.annotations or {})


def owner(found: Custom) -> str:
    """Who manages this HPA, if somebody does: it would undo our change, so it is left alone."""
    controller = found.metadata.controller
    return f"{controller.kind}/{controller.name}" if controller else ""


def wanted(floor: Floor, decision: Decision, at: float) -> int:
    """The floor from now on: what a forecast asks for beyond the present load, as far as the HPA's rules let it grow.

    Not the plan itself: that holds the highest wish of the window, which for pods in being is the HPA's own business.
    """
    ahead = [_number(one) for one in decision.proposals if one.forecast and not isinstance(one.replicas, Missing)]
    present = [_number(one) for one in decision.proposals if not one.forecast and not isinstance(one.replicas, Missing)]
    raised = floor.original
    if ahead and present and max(ahead) > max(present):
        raised = max(floor.original, min(ceil(max(ahead)), decision.plan.replicas))
    if floor.ours is not None and raised < floor.ours and at < floor.until:
        return floor.ours
    return raised


async def follow(pen: Pen, found: Custom, policy: Policy, seen: Observation, decision: Decision, writes: bool) -> str:
    """Move the floor to where the decision wants it; what became of that."""
    if boss := owner(found):
        raise Refused(f"this HPA belongs to {boss}, which would undo a change of its floor: it is left alone")
    floor = read(found)
    value = wanted(floor, decision, seen.at)
    if value == (floor.original if floor.ours is None else floor.ours):
        return "idle"
    if not writes:
        return "shadow"
    assert policy.forecast is not None
    ahead_s = horizon_s(policy.forecast, seen.startup)
    await write(pen, found, floor, value, seen.at, ahead_s)
    await tell(pen, HPAS, found, Happening("ForecastFloor", text(floor, value, ahead_s)))
    return "written"


async def restore(pen: Pen, found: Custom) -> None:
    """The user's own floor, and no trace of ours."""
    floor = read(found)
    await write(pen, found, floor, floor.original, 0.0, 0.0)


async def write(pen: Pen, found: Custom, floor: Floor, value: int, at: float, lasts_s: float) -> None:
    """Raise it, lower it, or put the user's own back and take our annotations away."""
    back = value <= floor.original
    notes: dict[str, Any] = {ORIGINAL_FLOOR: None, RAISED_FLOOR: None, RAISED_FLOOR_UNTIL: None}
    if not back:
        notes = {
            ORIGINAL_FLOOR: str(floor.original),
            RAISED_FLOOR: str(value),
            RAISED_FLOOR_UNTIL: f"{at + max(LASTS_S, lasts_s):.0f}",
        }
    meta = {"resourceVersion": found.metadata.resource_version, "annotations": notes}
    body = {"metadata": meta, "spec": {"minReplicas": floor.original if back else value}}
    await pen.patch(Custom, HPAS, found.metadata.namespace, found.metadata.name, body, Patch.MERGE)


def text(floor: Floor, value: int, ahead_s: float) -> str:
    if value <= floor.original:
        return f"minReplicas is {floor.original} again, as written"
    when = f"in {ahead_s:.0f} s, when pods started now are ready"
    return f"minReplicas raised from {floor.original} to {value}: the load will need it {when}"


def _number(proposal: Any) -> float:
    return float(proposal.replicas)
