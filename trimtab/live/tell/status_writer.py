"""status_writer: writes an object's status and its events, and only when there is something new to say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trimtab.core.explain import DecisionCondition
from trimtab.live.tell.conditions import FIELDS_IGNORED
from trimtab.live.tell.events import Happening, tell
from trimtab.live.tell.status import loud, with_conditions
from trimtab.wire.facts import conditions_in
from trimtab.wire.objects import Custom
from trimtab.wire.resources import Resource
from trimtab.wire.writer import Writer

MEASURED_EVERY_S = 30.0  # measurements alone are written this often at most
BAD = ("Conflict", "Reverted", "ResizeBlocked", "ResizePending")  # where True is the trouble
NEUTRAL = ("ScalingLimited", "ScaledToZero", "PredictionReady")


class StatusWriter:
    """Remembers what it last said of each object."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self._said: dict[str, tuple[float, dict[str, Any]]] = {}

    def forget(self, uids: set[str]) -> None:
        self._said = {uid: said for uid, said in self._said.items() if uid in uids}

    def before(self, about: Custom) -> dict[str, Any]:
        """What the status says now, as far as we know."""
        return self._said.get(about.metadata.uid, (0.0, about.status))[1]

    def is_news(
        self, about: Custom, status: dict[str, Any], conditions: Sequence[DecisionCondition], at: float
    ) -> bool:
        """Something changed since it was last said; measurements alone may wait."""
        written_at, before = self._said.get(about.metadata.uid, (0.0, about.status))
        now = with_conditions(status, conditions, before, at)
        return now != before and (loud(now) != loud(before) or at - written_at >= MEASURED_EVERY_S)

    async def say(
        self,
        resource: Resource,
        about: Custom,
        status: dict[str, Any],
        conditions: Sequence[DecisionCondition],
        at: float,
    ) -> None:
        """Server-side apply of the status where it changed; a Warning for each condition that turned bad."""
        if not self.is_news(about, status, conditions, at):
            return
        uid, before = about.metadata.uid, self.before(about)
        now = with_conditions(status, conditions, before, at)
        meta = {"name": about.metadata.name, "namespace": about.metadata.namespace}
        body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, "status": now}
        await self.writer.apply(Custom, resource, body, "status")
        self._said[uid] = (at, now)
        for happening in _news(conditions, before):
            await tell(self.writer, resource, about, happening, at)


def _news(conditions: Sequence[DecisionCondition], before: dict[str, Any]) -> list[Happening]:
    """What turned bad, each reason once: one trouble may turn several conditions."""
    bad = [condition for condition in conditions if _turned_bad(condition, before)]
    first = {condition.reason: condition for condition in reversed(bad)}
    return [Happening(reason, condition.message, warning=True) for reason, condition in first.items()]


def _turned_bad(now: DecisionCondition, before: dict[str, Any]) -> bool:
    bad = now.status if now.type in BAD else (not now.status and now.type not in NEUTRAL)
    bad = bad or now.reason == FIELDS_IGNORED  # served, but not as its author may think
    reasons = {kind: (old.get("status") == "True", old.get("reason")) for kind, old in conditions_in(before).items()}
    return bad and reasons.get(now.type) != (now.status, now.reason)
