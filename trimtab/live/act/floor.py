"""floor: raise the minReplicas of an HPA annotated `predictive: "true"`, which keeps scaling by itself.

minReplicas becomes what the forecast needs, never above maxReplicas and no faster than the HPA's own rules allow. When
the forecast asks for less and the raise has expired, minReplicas returns to the user's value, which is kept in an
annotation. An edit by the user replaces that value.
"""

from __future__ import annotations

from math import ceil
from typing import Any, NamedTuple

from trimtab.core.explain import missing_text
from trimtab.core.forecast.horizon import horizon_s
from trimtab.core.model import Decision, Missing, Observation, Reason
from trimtab.errors import Refused
from trimtab.kinds.annotations import FORECAST_NOTE, ORIGINAL_FLOOR, RAISED_FLOOR, RAISED_FLOOR_UNTIL
from trimtab.live.look.cluster import WatchedCluster
from trimtab.live.look.floor import Floor, is_ours, is_predictive, owner, read
from trimtab.policy import Policy
from trimtab.wire.kube import Kube, Patch
from trimtab.wire.objects import Custom
from trimtab.wire.resources import HPAS, Resource

NOTED_EVERY_S = 300.0  # what a forecast asks for moves all the time
LASTS_S = 60.0  # a raised floor stays at least this long: pods that were asked for should not go before they serve


def wanted(floor: Floor, decision: Decision, at: float) -> int:
    """Return the floor from now on: what a forecast asks for beyond the present load, limited by the HPA's rules.

    Not the plan itself: that holds the highest recommendation of the window, which is the HPA's own business.
    """
    known = [proposal for proposal in decision.proposals if not isinstance(proposal.replicas, Missing)]
    ahead = [proposal.number() for proposal in known if proposal.forecast]
    present = [proposal.number() for proposal in known if not proposal.forecast]
    raised = floor.original
    if ahead and present and max(ahead) > max(present):
        raised = max(floor.original, min(ceil(max(ahead)), decision.plan.replicas))
    if floor.ours is not None and raised < floor.ours and at < floor.until:
        return floor.ours
    return raised


class Moved(NamedTuple):
    """A minReplicas that should change: to what, and the sentence for it."""

    floor: Floor
    value: int
    lasts_s: float

    @property
    def text(self) -> str:
        if self.value <= self.floor.original:
            return f"minReplicas is {self.floor.original} again, as written"
        when = f"in {self.lasts_s:.0f} s, when pods started now are ready"
        return f"minReplicas raised from {self.floor.original} to {self.value}: the load will need it {when}"


def moved(found: Custom, policy: Policy, seen: Observation, decision: Decision) -> Moved | None:
    """Return where the decision wants the floor, or None when it is there already, or what it needs is being read."""
    if any(isinstance(each, Missing) and each.reason is Reason.BEING_READ for each in seen.forecasts):
        return None
    if boss := owner(found):
        raise Refused(f"this HPA belongs to {boss}, which would undo a change of its floor: it is left alone")
    floor = read(found)
    value = wanted(floor, decision, seen.at)
    if value == (floor.original if floor.ours is None else floor.ours):
        return None
    assert policy.forecast is not None
    return Moved(floor, value, horizon_s(policy.forecast, seen))


def unwanted_floors(cluster: WatchedCluster) -> list[tuple[Resource, Custom]]:
    """Return the HPAs whose floor we raised and that do not ask for a forecast any more."""
    hpas = (hpa for hpa in cluster.hpas.store if is_ours(hpa) and not is_predictive(hpa))
    return [(HPAS, hpa) for hpa in hpas if cluster.enabled(hpa.metadata.namespace)]


async def restore(writer: Kube, found: Custom) -> None:
    """Put the user's own minReplicas back and remove our annotations."""
    floor = read(found)
    await write(writer, found, Moved(floor, floor.original, 0.0), 0.0)


def forecast_note(decision: Decision) -> str:
    """Say whether the forecast works and what it asks for, where an HPA's owner looks."""
    asked = [proposal.replicas for proposal in decision.proposals if proposal.forecast]
    known = [replicas for replicas in asked if not isinstance(replicas, Missing)]
    if known:
        return f"works: it asks for {ceil(max(known))} replicas"
    silent = next((missing for missing in asked if isinstance(missing, Missing)), None)
    return f"silent: {missing_text(silent)}" if silent else ""


class ForecastNotes:
    """Tells which notes to write: soon where a forecast begins to work or falls silent, else every five minutes."""

    def __init__(self) -> None:
        self._noted: dict[str, tuple[float, str]] = {}  # by HPA: when, and whether it worked then

    def forget(self, uids: set[str]) -> None:
        self._noted = {uid: noted for uid, noted in self._noted.items() if uid in uids}

    def is_news(self, found: Custom, note: str, at: float) -> bool:
        if not note or note == found.metadata.notes.get(FORECAST_NOTE):
            return False
        state, uid = note.partition(":")[0], found.metadata.uid
        since, before = self._noted.get(uid, (float("-inf"), ""))
        if at - since < (NOTED_EVERY_S if state == before else LASTS_S):
            return False  # also where somebody takes the note away again and again
        self._noted[uid] = at, state
        return True


async def write_note(writer: Kube, found: Custom, note: str) -> None:
    body = {"metadata": {"annotations": {FORECAST_NOTE: note}}}
    await writer.patch(Custom, HPAS, found.metadata.namespace, found.metadata.name, body, Patch.MERGE)


async def write(writer: Kube, found: Custom, moved: Moved, at: float, note: str | None = None) -> None:
    """Write the floor; at the user's own value, remove our annotations."""
    floor, value, lasts_s = moved
    back = value <= floor.original
    notes: dict[str, Any] = {ORIGINAL_FLOOR: None, RAISED_FLOOR: None, RAISED_FLOOR_UNTIL: None}
    if not back:
        notes = {
            ORIGINAL_FLOOR: str(floor.original),
            RAISED_FLOOR: str(value),
            RAISED_FLOOR_UNTIL: f"{at + max(LASTS_S, lasts_s):.0f}",
        }
    meta = {"resourceVersion": found.metadata.resource_version, "annotations": notes | {FORECAST_NOTE: note}}
    body: dict[str, Any] = {"metadata": meta}
    if floor.ours is not None or not back:  # else the floor is its user's, and there was only a note
        body["spec"] = {"minReplicas": floor.original if back else value}
    await writer.patch(Custom, HPAS, found.metadata.namespace, found.metadata.name, body, Patch.MERGE)
