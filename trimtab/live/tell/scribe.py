"""scribe: writes an object's status and its events, and only when there is something new to say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trimtab.core.explain import DecisionCondition
from trimtab.live.act.pen import Pen
from trimtab.live.tell.conditions import FIELDS_IGNORED
from trimtab.live.tell.events import Happening, tell
from trimtab.live.tell.status import loud, with_conditions
from trimtab.wire.objects import Custom
from trimtab.wire.resources import Resource

MEASURED_EVERY_S = 30.0  # measurements alone are written this often at most
BAD = ("Conflict", "Reverted", "ResizeBlocked", "ResizePending")  # where True is the trouble
NEUTRAL = ("ScalingLimited", "ScaledToZero", "PredictionReady")


class Scribe:
    """Remembers what it last said of each object."""

    def __init__(self, pen: Pen) -> None:
        self.pen = pen
        self._said: dict[str, tuple[float, dict[str, Any]]] = {}

    def forget(self, uids: set[str]) -> None:
        self._said = {uid: said for uid, said in self._said.items() if uid in uids}

    def before(self, about: Custom) -> dict[str, Any]:
        """What the status says now, as far as we know."""
        return self._said.get(about.metadata.uid, (0.0, about.status))[1]

    async def say(
        self,
        resource: Resource,
        about: Custom,
        status: dict[str, Any],
        conditions: Sequence[DecisionCondition],
        at: float,
    ) -> None:
        """Server-side apply of the status where it changed; a Warning for each condition that turned bad."""
        uid = about.metadata.uid
        written_at, before = self._said.get(uid, (0.0, about.status))
        now = with_conditions(status, conditions, before, at)
        if now == before or (loud(now) == loud(before) and at - written_at < MEASURED_EVERY_S):
            return
        meta = {"name": about.metadata.name, "namespace": about.metadata.namespace}
        body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, "status": now}
        await self.pen.apply(Custom, resource, body, "status")
        self._said[uid] = (at, now)
        for one in conditions:
            if _turned_bad(one, before):
                await tell(self.pen, resource, about, Happening(one.reason, one.message, warning=True))


def _turned_bad(one: DecisionCondition, before: dict[str, Any]) -> bool:
    bad = one.status if one.type in BAD else (not one.status and one.type not in NEUTRAL)
    bad = bad or one.reason == FIELDS_IGNORED  # served, but not as its author may think
    reasons = {old["type"]: (old["status"] == "True", old.get("reason")) for old in before.get("conditions") or []}
    return bad and reasons.get(one.type) != (one.status, one.reason)
