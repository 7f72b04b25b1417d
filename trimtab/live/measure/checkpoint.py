"""checkpoint: what usage has been seen outlives the operator in a ConfigMap of each object, in VPA's own format.

It belongs to its object, so it goes with it. Without the right to read or write ConfigMaps the operator goes on and
says so once: histories then start again with every restart.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from http import HTTPStatus
from typing import NamedTuple

import msgspec

from trimtab.core.usage import histogram_checkpoint
from trimtab.core.usage.histograms import UsageHistograms
from trimtab.errors import InvalidInput, NotLeading, Refused, TrimtabError
from trimtab.live.act.pen import Pen
from trimtab.live.look.subject import Subject
from trimtab.wire.objects import ConfigMap
from trimtab.wire.resources import CONFIG_MAPS

log = logging.getLogger(__name__)


class Watched(NamedTuple):
    """An object and the uid of the workload whose usage is seen for it."""

    subject: Subject
    workload: str


class Checkpoints:
    """Reads each object's once, writes all of them every `every_s`."""

    def __init__(self, pen: Pen, book: UsageHistograms, every_s: float) -> None:
        self.pen, self.book, self.every_s = pen, book, every_s
        self._read: set[str] = set()
        self._written_at = float("-inf")
        self._mute = False

    async def read(self, watched: list[Watched], at: float) -> None:
        """Take up where the last operator left off, for objects seen for the first time."""
        for one in watched:
            if one.subject.uid not in self._read:
                self._read.add(one.subject.uid)
                await self._guarded(self._load(one))
        self._read &= {one.subject.uid for one in watched}
        if self._written_at == float("-inf"):
            self._written_at = at

    async def write(self, watched: list[Watched], at: float) -> None:
        if at - self._written_at < self.every_s or self._mute:
            return
        self._written_at = at
        seen: dict[str, list[str]] = {}
        rows = self.book.keys()
        for workload, container in rows:
            seen.setdefault(workload, []).append(container)
        for one in watched:
            if one.workload in seen:
                await self._guarded(self._save(one, seen[one.workload], at))

    async def _load(self, one: Watched) -> None:
        try:
            found = await self.pen.kube.get(ConfigMap, CONFIG_MAPS, one.subject.name.namespace, name_of(one.subject))
        except Refused as refusal:
            if refusal.status != HTTPStatus.NOT_FOUND:
                raise
            return
        for container, text in found.data.items():
            try:
                histogram_checkpoint.load(self.book, one.workload, container, msgspec.json.decode(text), container)
            except (InvalidInput, msgspec.DecodeError) as error:
                log.warning("%s: the checkpoint of container %s starts afresh: %s", one.subject.name, container, error)

    async def _save(self, one: Watched, containers: list[str], at: float) -> None:
        saved = {name: histogram_checkpoint.save(self.book, one.workload, name, at) for name in containers}
        meta = one.subject.object.metadata
        owner = {
            "apiVersion": one.subject.resource.api_version,
            "kind": one.subject.name.kind,
            "name": meta.name,
            "uid": meta.uid,
        }
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name_of(one.subject), "namespace": meta.namespace, "ownerReferences": [owner]},
            "data": {name: msgspec.json.encode(status).decode() for name, status in saved.items()},
        }
        await self.pen.apply(ConfigMap, CONFIG_MAPS, body)

    async def _guarded(self, work: Awaitable[None]) -> None:
        """A history that cannot be kept is a pity, not a failure of the object."""
        try:
            await work
        except NotLeading:
            raise
        except TrimtabError as error:
            if not self._mute:
                log.warning("usage is not kept over restarts: %s", error)
            self._mute = True


def name_of(subject: Subject) -> str:
    return f"trimtab-usage-{subject.name.kind.lower()}-{subject.name.name}"[:253]
