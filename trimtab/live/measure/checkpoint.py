"""checkpoint: what was seen outlives the operator in a ConfigMap per object: usage in VPA's own format, and demand.

They are in the operator's own namespace, where no tenant writes; when an object is gone, or Prometheus is known to
remember all that would be in it, so is its ConfigMap. All of it happens in the background, a few objects at a time and
namespaces in turns: a tick waits for none. What cannot be read or written for one object is said and tried again; the
others' are not touched by it.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

import msgspec

from trimtab.core.demand import remembers_demand
from trimtab.core.forecast.demand_forecasts import DemandForecasts
from trimtab.core.usage import histogram_checkpoint
from trimtab.core.usage.histograms import UsageHistograms
from trimtab.errors import InvalidInput, NotLeading, Refused, TrimtabError
from trimtab.kinds.annotations import OBJECT_NAMESPACE, OBJECT_TARGET, OBJECT_UID
from trimtab.live.look.subject import Subject
from trimtab.live.measure.background import Background, Lane, Lanes
from trimtab.live.measure.past_demand import PastDemand
from trimtab.live.measure.usage import UsageWatch
from trimtab.live.object_tick import ObjectTick
from trimtab.policy import Policy
from trimtab.wire.kube import METADATA, Kube
from trimtab.wire.objects import ConfigMap, ObjectMeta, PartialObject
from trimtab.wire.resources import CONFIG_MAPS

DEMAND = "demand.json"  # beside the containers, whose names have no dot
FEW = 20  # are asked for one by one; of more, those that are there
LONGEST_BYTES = 256 * 1024  # of one container; a histogram has a few hundred buckets
READ_AGAIN_S = 60.0  # after a checkpoint could not be read
LONGEST_NAME = 253
log = logging.getLogger(__name__)


class Checkpoints(Background):
    """Call `follow` in every tick: each object's is read once, then all of them are written every `every_s`."""

    def __init__(
        self,
        writer: Kube,
        usage: UsageWatch,
        every_s: float,
        home: str,
        demand: DemandForecasts | None = None,
        past: PastDemand | None = None,
        lane: Lane | None = None,
    ) -> None:
        super().__init__()
        self.lane = lane or Lanes.new().checkpoints
        self.stored, self.usage, self.every_s = StoredCheckpoints(writer, home), usage, every_s
        self.demand, self.past = demand or DemandForecasts(), past  # without a Prometheus there is no past but this
        self._read: set[str] = set()  # by uid; one that was not read is not written over
        self._failed: set[str] = set()
        self._found: set[str] = set()  # with demand in it
        self._read_again_at = self._written_at = float("-inf")

    def follow(self, ticks: Sequence[ObjectTick], at: float) -> None:
        if self._written_at == float("-inf"):
            self._written_at = at
        ticks = [tick for tick in ticks if tick.subject.policy.vertical or _has_demand(tick.subject.policy)]
        uids = {tick.subject.uid for tick in ticks}
        self._read &= uids
        self._failed &= uids
        self._found &= uids
        if not self.idle:
            return
        unread = [tick for tick in ticks if tick.subject.uid not in self._read and self._may_read(tick, at)]
        due = at - self._written_at >= self.every_s
        if unread or due:
            self.start(self._run(unread, ticks if due else None, at))

    def take_over(self) -> None:
        """Another leader may have written them meanwhile: all are read again before any is written.

        Nor is it time to write: what Prometheus remembers of them is being asked.
        """
        self.close()
        self._read.clear()
        self._found.clear()
        self._read_again_at = self._written_at = float("-inf")

    def has_read(self, uid: str) -> bool:
        """Whether it is known what was kept of this object."""
        return uid in self._read

    def has_found(self, uid: str) -> bool:
        """Whether demand of this object was kept."""
        return uid in self._found

    def clock_set(self, by_s: float) -> None:
        self._written_at += by_s
        self._read_again_at += by_s

    def _may_read(self, tick: ObjectTick, at: float) -> bool:
        return tick.subject.uid not in self._failed or at >= self._read_again_at

    async def _run(self, unread: Sequence[ObjectTick], due: Sequence[ObjectTick] | None, at: float) -> None:
        """`due` are all of them when it is time to write: none, when the last one is gone."""
        troubles = await self._load_all(unread)
        self._read |= {tick.subject.uid for tick in unread} - troubles.keys()
        if troubles:
            self._read_again_at = at + READ_AGAIN_S
        if due is not None:
            self._written_at = at
            read = [tick for tick in due if tick.subject.uid in self._read]
            troubles |= await self._save_all([tick for tick in read if self._is_needed(tick)], at)
            await self._drop({name_of(tick.subject) for tick in read if not self._is_needed(tick)})
        self._say(troubles)
        self._failed = self._failed - {tick.subject.uid for tick in (*unread, *(due or ()))} | troubles.keys()

    async def _each(self, verb: Callable[[ObjectTick], Awaitable[None]], ticks: Sequence[ObjectTick]) -> dict[str, str]:
        """What went wrong, by uid; a history that cannot be kept is a pity, not a failure of the object."""
        troubles = dict[str, str]()

        async def guarded(tick: ObjectTick) -> None:
            try:
                await self.lane.do(tick.subject.name.namespace, lambda: verb(tick))
            except NotLeading as error:  # the new leader goes on; nobody needs to hear of it
                log.debug("%s: %s", tick.subject.name, error)
            except TrimtabError as error:
                troubles[tick.subject.uid] = f"{tick.subject.name}: {error}"
            except Exception as error:
                log.exception("%s: what was seen is not kept: a bug of trimtab", tick.subject.name)
                troubles[tick.subject.uid] = f"{tick.subject.name}: {error!r}"

        await asyncio.gather(*(guarded(tick) for tick in ticks))
        return troubles

    def _say(self, troubles: dict[str, str]) -> None:
        """One line for all that are new in it."""
        if new := [text for uid, text in troubles.items() if uid not in self._failed]:
            log.warning(
                "what was seen of %d objects is not kept over restarts until this is mended; %s", len(new), new[0]
            )

    async def _load_all(self, ticks: Sequence[ObjectTick]) -> dict[str, str]:
        """At a start nearly all of them may have none."""
        if len(ticks) <= FEW:
            return await self._each(self._load, ticks)
        try:
            there = await self.stored.all()
        except TrimtabError as error:
            return {tick.subject.uid: f"{tick.subject.name}: {error}" for tick in ticks}
        return await self._each(self._load, [tick for tick in ticks if name_of(tick.subject) in there])

    async def _load(self, tick: ObjectTick) -> None:
        subject, book = tick.subject, UsageHistograms(self.usage.book.settings)
        data = await self.stored.read(tick)
        self._load_demand(subject, data.pop(DEMAND, ""))
        for container, text in data.items():
            try:
                status = msgspec.json.decode(text[:LONGEST_BYTES], type=dict[str, Any])
                histogram_checkpoint.load(book, tick.target.uid, container, status, container)
            except (InvalidInput, OverflowError, msgspec.DecodeError) as error:
                log.warning("%s: the checkpoint of container %s starts afresh: %s", subject.name, container, error)
        self.usage.take_up(book, since=0.0)

    def _load_demand(self, subject: Subject, text: str) -> None:
        if not text or not _has_demand(subject.policy):
            return
        try:
            self.demand.load(subject.uid, subject.policy, text.encode())
            self._found.add(subject.uid)
        except InvalidInput as error:
            log.warning("%s: its demand starts afresh: %s", subject.name, error)
        if self.past is not None:
            self.past.doubt(subject.uid)

    def _keeps_demand(self, subject: Subject) -> bool:
        """Until Prometheus is known to remember it."""
        return _has_demand(subject.policy) and not (self.past and self.past.remembers(subject))

    def _is_needed(self, tick: ObjectTick) -> bool:
        return tick.subject.policy.vertical is not None or self._keeps_demand(tick.subject)

    async def _save_all(self, ticks: Sequence[ObjectTick], at: float) -> dict[str, str]:
        containers: dict[str, list[str]] = defaultdict(list)
        rows = self.usage.book.keys()
        for workload, container in rows:
            containers[workload].append(container)
        seen = [tick for tick in ticks if tick.target.uid in containers or self._keeps_demand(tick.subject)]
        return await self._each(lambda tick: self._save(tick, containers[tick.target.uid], at), seen)

    async def _save(self, tick: ObjectTick, containers: Sequence[str], at: float) -> None:
        subject, book = tick.subject, self.usage.book
        known = [name for name in containers if book.row(tick.target.uid, name) is not None]  # some may be forgotten
        saved = {name: histogram_checkpoint.save(book, tick.target.uid, name, at) for name in known}
        data = {name: msgspec.json.encode(status).decode() for name, status in saved.items()}
        if self._keeps_demand(subject):
            data[DEMAND] = self.demand.save(subject.uid, subject.policy, at).decode()
        await self.stored.write(tick, data)

    async def _drop(self, unneeded: set[str]) -> None:
        """Those, and of objects that are gone; of those that we do not follow, nobody's."""
        cluster = self.usage.cluster
        feeds = (*cluster.ours.values(), cluster.hpas)  # annotated HPAs have demand, too
        if not all(feed.settled for feed in feeds):
            return
        alive = {found.metadata.uid for feed in feeds for found in feed.store}
        try:
            for name, meta in (await self.stored.all()).items():
                labels = meta.labels or {}
                whose = labels.get(OBJECT_NAMESPACE, "")
                ours = cluster.namespace in ("", whose) and cluster.shard.owns(whose)
                if ours and (labels[OBJECT_UID] not in alive or name in unneeded):
                    await self.stored.drop(meta)
        except TrimtabError as error:
            log.debug("checkpoints of objects that are gone stay: %s", error)


def _has_demand(policy: Policy) -> bool:
    return remembers_demand(policy) and bool(policy.signals)


class StoredCheckpoints:
    """The ConfigMaps that hold checkpoints, one per object, in the operator's own namespace."""

    def __init__(self, kube: Kube, home: str) -> None:
        self.kube, self.home = kube, home

    async def all(self) -> dict[str, ObjectMeta]:
        """Return the metadata of all by name, without their data: of ten thousand objects that is 200 MB."""
        found = (await self.kube.list(PartialObject, CONFIG_MAPS, self.home, labels=OBJECT_UID, accept=METADATA)).items
        return {each.metadata.name: each.metadata for each in found if OBJECT_UID in (each.metadata.labels or {})}

    async def read(self, tick: ObjectTick) -> dict[str, str]:
        """What is in the one of this very object and target; nothing, if there is none."""
        try:
            found = await self.kube.get(ConfigMap, CONFIG_MAPS, self.home, name_of(tick.subject))
        except Refused as refusal:
            if refusal.status != HTTPStatus.NOT_FOUND:
                raise
            return {}
        if (found.metadata.labels or {}).get(OBJECT_UID) != tick.subject.uid:
            return {}  # of an object of the same name that is no more
        if found.metadata.notes.get(OBJECT_TARGET, tick.target.ref) != tick.target.ref:
            return {}  # it was edited to scale something else
        return dict(found.data)

    async def write(self, tick: ObjectTick, data: Mapping[str, str]) -> None:
        subject = tick.subject
        labels = {OBJECT_UID: subject.uid, OBJECT_NAMESPACE: subject.name.namespace}
        await self.put(name_of(subject), data, labels=labels, annotations={OBJECT_TARGET: tick.target.ref})

    async def data(self, name: str) -> dict[str, str]:
        """Of a ConfigMap by its name; nothing, if there is none."""
        try:
            return dict((await self.kube.get(ConfigMap, CONFIG_MAPS, self.home, name)).data)
        except Refused as refusal:
            if refusal.status != HTTPStatus.NOT_FOUND:
                raise
            return {}

    async def put(self, name: str, data: Mapping[str, str], **metadata: dict[str, str]) -> None:
        meta = {"name": name, "namespace": self.home} | metadata
        await self.kube.apply(
            ConfigMap, CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}
        )

    async def drop(self, found: ObjectMeta) -> None:
        await self.kube.delete(CONFIG_MAPS, self.home, found.name, uid=found.uid)


def name_of(subject: Subject) -> str:
    """Unique, as neither a kind nor a namespace has a dot; one that would be too long ends with a digest."""
    kind, namespace, name = subject.name
    whole = f"trimtab-usage.{kind.lower()}.{namespace}.{name}"
    digest = hashlib.sha256(whole.encode()).hexdigest()[:16]
    return whole if len(whole) <= LONGEST_NAME else f"{whole[: LONGEST_NAME - 17].rstrip('.-')}-{digest}"
