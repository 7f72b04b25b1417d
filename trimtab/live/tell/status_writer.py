"""status_writer: writes an object's status and its events, and only when there is something new to say."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, NamedTuple

from trimtab.core.explain import DecisionCondition
from trimtab.errors import NotLeading, Refused, TrimtabError
from trimtab.live.tell.conditions import CLOCK_WRONG, FIELDS_IGNORED
from trimtab.live.tell.status import with_conditions, worth_writing
from trimtab.wire.from_kubernetes import conditions_in, rfc3339
from trimtab.wire.kube import Kube
from trimtab.wire.objects import Custom
from trimtab.wire.resources import EVENTS, Resource

log = logging.getLogger(__name__)
LONGEST = 1000  # characters of an event's message: the API server refuses longer ones
MEASURED_EVERY_S = 30.0  # measurements alone are written this often at most
BAD = ("Conflict", "Reverted", "ResizeBlocked", "ResizePending", "PodsUnschedulable")  # where True is the trouble
NEUTRAL = ("ScalingLimited", "ScaledToZero", "PredictionReady")


class Happening(NamedTuple):
    """Something to tell in an Event on the object, as `kubectl describe` shows it."""

    reason: str
    message: str
    warning: bool = False


class Said(NamedTuple):
    """Our last word on an object, of which version it was, and which it made."""

    at: float
    status: dict[str, Any]
    based_on: str = ""
    version: str = ""

    def version_of(self, about: Custom) -> str:
        """The newest that we know: our own, until the watch tells of it or of a later one."""
        seen = about.metadata.resource_version
        return self.version if seen == self.based_on and self.version else seen


class MadeFrom(NamedTuple):
    """What a status was made from that says, word for word, what is said already."""

    status: dict[str, Any]
    matter: object


class StatusWriter:
    """Remembers what it last said of each object."""

    def __init__(self, writer: Kube) -> None:
        self.writer = writer
        self._said: dict[str, Said] = {}
        self._made_from: dict[str, MadeFrom] = {}

    def forget(self, uids: set[str]) -> None:
        self._said = {uid: said for uid, said in self._said.items() if uid in uids}
        self._made_from = {uid: made for uid, made in self._made_from.items() if uid in uids}

    def before(self, about: Custom) -> dict[str, Any]:
        """What the status says now, as far as we know."""
        return self._last(about).status

    def _last(self, about: Custom) -> Said:
        return self._said.get(about.metadata.uid, Said(0.0, about.status))

    def has_said(self, about: Custom, matter: object) -> bool:
        """The status that is made from this is the one of now."""
        known = self._made_from.get(about.metadata.uid)
        return known is not None and known.status is self.before(about) and known.matter == matter

    def is_news(
        self,
        about: Custom,
        status: dict[str, Any],
        conditions: Sequence[DecisionCondition],
        at: float,
        matter: object = None,
    ) -> bool:
        """Saying this, which is made from `matter`, would write something now."""
        written_at, before, *_ = self._last(about)
        now = with_conditions(status, conditions, before, at)
        if now == before:
            self._made_from[about.metadata.uid] = MadeFrom(before, matter)
            return False
        return worth_writing(now) != worth_writing(before) or at - written_at >= MEASURED_EVERY_S

    async def say(
        self,
        resource: Resource,
        about: Custom,
        status: dict[str, Any],
        conditions: Sequence[DecisionCondition],
        at: float,
    ) -> None:
        """Server-side apply of the status where it changed; a Warning for each condition that turned bad.

        It bears the version it was based on: what comes late overwrites neither a new leader's word nor that on an
        object made since under the same name.
        """
        if not self.is_news(about, status, conditions, at):
            return
        last = self._last(about)
        now = with_conditions(status, conditions, last.status, at)
        try:
            written = await self._apply(resource, about, now, last.version_of(about))
        except Refused as refusal:
            if refusal.status != HTTPStatus.CONFLICT:
                raise
            version = await self._version_with(last.status, resource, about)
            if not version:
                raise
            written = await self._apply(resource, about, now, version)
        seen = about.metadata
        self._said[seen.uid] = Said(at, now, seen.resource_version, written.metadata.resource_version)
        for happening in _news(conditions, last.status):
            await tell(self.writer, resource, about, happening, at)

    async def _apply(self, resource: Resource, about: Custom, status: dict[str, Any], version: str) -> Custom:
        meta = {name: getattr(about.metadata, name) for name in ("name", "namespace", "uid")}
        body = {"apiVersion": resource.api_version, "kind": resource.kind, "status": status}
        body |= {"metadata": meta | {"resourceVersion": version}}
        return await self.writer.apply(Custom, resource, body, "status")

    async def _version_with(self, said: dict[str, Any], resource: Resource, about: Custom) -> str:
        """The version of now, if only its owner changed it since: the same object, and nobody led but us."""
        meta = about.metadata
        found = await self.writer.get(Custom, resource, meta.namespace, meta.name)
        ours = found.metadata.uid == meta.uid and found.status.get("memory") == said.get("memory")
        return found.metadata.resource_version if ours else ""


def _news(conditions: Sequence[DecisionCondition], before: dict[str, Any]) -> list[Happening]:
    """What turned bad, each reason once: one trouble may turn several conditions."""
    bad = [condition for condition in conditions if _turned_bad(condition, before)]
    first = {condition.reason: condition for condition in reversed(bad)}
    return [Happening(reason, condition.message, warning=True) for reason, condition in first.items()]


def _turned_bad(now: DecisionCondition, before: dict[str, Any]) -> bool:
    bad = now.status if now.type in BAD else (not now.status and now.type not in NEUTRAL)
    bad = bad or now.reason in (FIELDS_IGNORED, CLOCK_WRONG)  # served, but not as its author may think
    reasons = {kind: (old.get("status") == "True", old.get("reason")) for kind, old in conditions_in(before).items()}
    return bad and reasons.get(now.type) != (now.status, now.reason)


async def tell(writer: Kube, resource: Resource, about: Custom, what: Happening, at: float) -> None:
    """Best effort: an event that cannot be written must not undo what it speaks of."""
    try:
        await writer.create(Custom, EVENTS, about.metadata.namespace, body(resource, about, what, at))
    except NotLeading:
        raise
    except TrimtabError as error:
        log.warning("event %s for %s/%s: %s", what.reason, about.metadata.namespace, about.metadata.name, error)


def body(resource: Resource, about: Custom, what: Happening, at: float) -> dict[str, Any]:
    meta, now = about.metadata, rfc3339(at)
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": f"{meta.name[:200]}.", "namespace": meta.namespace},
        "involvedObject": {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "namespace": meta.namespace,
            "name": meta.name,
            "uid": meta.uid,
        },
        "reason": what.reason,
        "message": what.message[:LONGEST],
        "type": "Warning" if what.warning else "Normal",
        "source": {"component": "trimtab"},
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }
