"""floor: an HPA annotated `predictive: "true"` (document 003) keeps scaling by itself; the forecast raises its floor.

minReplicas becomes what the forecast needs, never above maxReplicas and as fast as its own rules allow; it falls back
to the user's value, kept in an annotation, when the forecast asks for less and its date has passed. An edit by the user
is the new original.
"""

from __future__ import annotations

from math import ceil
from typing import Any, NamedTuple

from trimtab.core.forecast.horizon import horizon_s
from trimtab.core.model import Decision, Missing, Observation
from trimtab.errors import Refused
from trimtab.kinds.annotations import ORIGINAL_FLOOR, RAISED_FLOOR, RAISED_FLOOR_UNTIL
from trimtab.live.look.floor import Floor, owner, read
from trimtab.policy import Policy
from trimtab.wire.kube import Kube, Patch
from trimtab.wire.objects import Custom
from trimtab.wire.resources import HPAS

LASTS_S = 60.0  # a raised floor stays at least this long: pods that were asked for should not go before they serve


def wanted(floor: Floor, decision: Decision, at: float) -> int:
    """The floor from now on: what a forecast asks for beyond the present load, as far as the HPA's rules let it grow.

    Not the plan itself: that holds the highest wish of the window, which for pods in being is the HPA's own business.
    """
    known = [proposal for proposal in decision.proposals if not isinstance(proposal.replicas, Missing)]
    ahead = [_number(proposal) for proposal in known if proposal.forecast]
    present = [_number(proposal) for proposal in known if not proposal.forecast]
    raised = floor.original
    if ahead and present and max(ahead) > max(present):
        raised = max(floor.original, min(ceil(max(ahead)), decision.plan.replicas))
    if floor.ours is not None and raised < floor.ours and at < floor.until:
        return floor.ours
    return raised


class Moved(NamedTuple):
    """A floor that should move: to where, and the sentence for it."""

    floor: Floor
    value: int
    lasts_s: float

    @property
    def text(self) -> str:
        return text(self.floor, self.value, self.lasts_s)


def moved(found: Custom, policy: Policy, seen: Observation, decision: Decision) -> Moved | None:
    """Where the decision wants the floor; None when it is there already."""
    if boss := owner(found):
        raise Refused(f"this HPA belongs to {boss}, which would undo a change of its floor: it is left alone")
    floor = read(found)
    value = wanted(floor, decision, seen.at)
    if value == (floor.original if floor.ours is None else floor.ours):
        return None
    assert policy.forecast is not None
    return Moved(floor, value, horizon_s(policy.forecast, seen))


async def restore(writer: Kube, found: Custom) -> None:
    """The user's own floor, and no trace of ours."""
    floor = read(found)
    await write(writer, found, Moved(floor, floor.original, 0.0), 0.0)


async def write(writer: Kube, found: Custom, moved: Moved, at: float) -> None:
    """Raise it, lower it, or put the user's own back and take our annotations away."""
    floor, value, lasts_s = moved
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
    await writer.patch(Custom, HPAS, found.metadata.namespace, found.metadata.name, body, Patch.MERGE)


def text(floor: Floor, value: int, ahead_s: float) -> str:
    if value <= floor.original:
        return f"minReplicas is {floor.original} again, as written"
    when = f"in {ahead_s:.0f} s, when pods started now are ready"
    return f"minReplicas raised from {floor.original} to {value}: the load will need it {when}"


def _number(proposal: Any) -> float:
    return float(proposal.replicas)
