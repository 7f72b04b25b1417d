"""Follow one collection of the API server: an Informer keeps a Store equal to it, which tells listeners of changes.

The first content comes as a stream (`sendInitialEvents`, where the server has it), else as a paged list; then
events from that version on. 410 Gone, as a status or inside the stream, means: list again.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from http import HTTPStatus
from typing import Any, Generic, TypeVar

import msgspec

from trimtab.errors import ClusterUnavailable, TrimtabError
from trimtab.kinds.annotations import INITIAL_EVENTS_END
from trimtab.wire.budget import Backoff
from trimtab.wire.decode import decode
from trimtab.wire.http import Request, Status
from trimtab.wire.kube import Kube, refused, selectors
from trimtab.wire.objects import HasMeta, ObjectMeta, PartialObject
from trimtab.wire.resources import Resource

T = TypeVar("T", bound=HasMeta)
Anything = TypeVar("Anything")
Key = tuple[str, str]
OnChange = Callable[[Key, "T | None", "T | None"], None]
log = logging.getLogger(__name__)


class Store(Generic[T]):
    """The objects as last seen, by (namespace, name); of what is not to be kept, none.

    Callbacks get (key, new or None, old or None).
    """

    def __init__(self, keep: Callable[[T], bool] | None = None) -> None:
        self.keep = keep
        self.items: dict[Key, T] = {}
        self.synced = asyncio.Event()
        self.heard_at = float("-inf")  # by the clock since boot; how fresh the content is
        self.unreadable = 0
        self.trouble: TrimtabError | None = None  # why it is not being followed right now
        self._listeners: list[OnChange[T]] = []

    def in_trouble(self, why: TrimtabError) -> bool:
        """Whether this is news: what stays wrong is said once."""
        known, self.trouble = self.trouble, why
        return str(known) != str(why)

    def on_change(self, listener: OnChange[T]) -> None:
        self._listeners.append(listener)

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[T]:
        return iter(self.items.values())

    def get(self, namespace: str, name: str) -> T | None:
        return self.items.get((namespace, name))

    def put(self, item: T) -> None:
        if self.keep is not None and not self.keep(item):
            return
        key = key_of(item)
        old = self.items.get(key)
        self.items[key] = item
        self._tell(key, item, old)

    def drop(self, key: Key) -> None:
        old = self.items.pop(key, None)
        if old is not None:
            self._tell(key, None, old)

    def replace(self, fresh: dict[Key, T]) -> None:
        """A new list: tell only what differs from what was known."""
        for key in self.items.keys() - fresh.keys():
            self.drop(key)
        for key, item in fresh.items():
            known = self.items.get(key)
            if known is None or known.metadata.resource_version != item.metadata.resource_version:
                self.put(item)
        self.synced.set()

    def _tell(self, key: Key, new: T | None, old: T | None) -> None:
        """An object that somebody cannot make sense of costs nobody the others."""
        for listener in self._listeners:
            try:
                listener(key, new, old)
            except Exception as error:
                self.unreadable += 1
                log.warning("%s/%s could not be understood and is left out: %s", *key, error)


def key_of(item: HasMeta) -> Key:
    return item.metadata.namespace, item.metadata.name


SILENCE_S = 90.0  # after this long the connection may be dead: a new one is made
BRIEF_S = 1.0  # servers end a watch after minutes
UNKNOWN_OPTION = (HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY)  # how an older server says it
LINE_BYTES = 16 * 2**20  # of one event; etcd itself holds no object of more than a tenth of it


class Gone(Exception):
    """The version we continue from is no longer known: 410 in either form."""


class Event(msgspec.Struct, Generic[Anything], frozen=True):
    type: str
    object: Anything


class Informer(Generic[T]):
    """Keeps `store` equal to one collection; `run()` returns only by cancellation."""

    def __init__(
        self, kube: Kube, kind: type[T], resource: Resource, namespace: str = "", *, labels: str = "", fields: str = ""
    ) -> None:
        self.kube, self.kind, self.resource, self.namespace = kube, kind, resource, namespace
        self.store: Store[T] = Store()
        self._labels, self._fields = labels, fields
        self._version = ""
        self._connected = False  # the server took up the watch that is under way, or was last
        self._streams_lists = True  # until the server says otherwise
        self._event = Event[kind]  # type: ignore[valid-type]

    async def run(self) -> None:
        backoff = Backoff(first_s=0.5, most_s=5.0)  # a restarted API server should be noticed soon
        while True:
            started = self.kube.clock.since_boot()
            try:
                await self._follow()
            except Gone:
                self._version = ""
            except TrimtabError as trouble:
                if not self._fell_silent(trouble) and self.store.in_trouble(trouble):
                    log.warning("watch of %s: %s", self.resource.plural, trouble)
            except Exception as bug:  # one collection never stops the others
                log.exception("watch of %s: a bug of trimtab; it is listed anew", self.resource.plural)
                self._version, self.store.trouble = "", ClusterUnavailable(f"a bug of trimtab: {bug!r}")
            if self.kube.clock.since_boot() - started > SILENCE_S / 3:
                backoff.reset()
            await backoff.pause()

    def _fell_silent(self, trouble: TrimtabError) -> bool:
        """Of a collection in which nothing changes nothing is heard, not even bookmarks: connecting again will tell."""
        return self._connected and isinstance(trouble.__cause__, TimeoutError)

    async def _follow(self) -> None:
        """One connection: from an empty hand, or from the last version."""
        self._connected = False
        initial = not self._version
        if initial and not self._streams_lists:
            await self._list()
            initial = False
        fresh: dict[Key, T] | None = {} if initial else None
        path, params = self.resource.path(self.namespace), self._params(initial)
        request = Request("watch", self.resource.plural, "GET", path, params)
        async with self.kube.http.stream(request, SILENCE_S) as (answer, chunks):
            if answer.status == HTTPStatus.GONE:
                raise Gone
            if initial and answer.status in UNKNOWN_OPTION:
                self._streams_lists = False
                return
            if answer.status != HTTPStatus.OK:
                raise refused(answer, f"watch {self.resource.plural}")
            self._connected, connected_at, spoke = True, self.kube.clock.since_boot(), False
            if not initial:
                self._heard()  # from the last version on, everything will come
            async for line in lines(chunks, LINE_BYTES):
                fresh, spoke = self._take(line, fresh), True
        if fresh is not None:  # it ended before it said that the list was whole: ask for a plain list
            self._streams_lists = False
        elif not spoke and self.kube.clock.since_boot() - connected_at < BRIEF_S:
            raise ClusterUnavailable("the watch ended at once, without a word: does something in between cut it?")

    async def _list(self) -> None:
        listing = await self.kube.list(
            self.kind, self.resource, self.namespace, labels=self._labels, fields=self._fields
        )
        self.store.unreadable += listing.unreadable
        self.store.replace({key_of(item): item for item in listing.items})
        self._version = listing.resource_version
        self._heard()

    def _params(self, initial: bool) -> Mapping[str, str]:
        params = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(random.randint(240, 480)),  # noqa: S311 (jitter, no secret)
        }
        params |= selectors(self._labels, self._fields)
        if initial:
            return params | {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        return params | {"resourceVersion": self._version}

    def _take(self, line: bytes, fresh: dict[Key, T] | None) -> dict[Key, T] | None:
        """One event; `fresh` collects the initial ones until the bookmark that ends them, then it is None."""
        kind, item = self._decode(line)
        if kind == "ERROR":
            raise _error(line)
        self._heard()
        if kind == "BOOKMARK":
            return self._bookmark(item.metadata if item is not None else _meta(line), fresh)
        if item is None:
            return fresh
        if fresh is not None:
            fresh[key_of(item)] = item
            if kind == "DELETED":
                del fresh[key_of(item)]
            return fresh
        self._version = item.metadata.resource_version
        if kind == "DELETED":
            self.store.drop(key_of(item))
        else:
            self.store.put(item)
        return None

    def _decode(self, line: bytes) -> tuple[str, T | None]:
        try:
            event: Event[T] = decode(line, self._event)
            return event.type, event.object
        except msgspec.MsgspecError as error:
            rough: Event[Any] = _decode(line, Event[msgspec.Raw])
            if rough.type not in ("ERROR", "BOOKMARK"):
                self.store.unreadable += 1
                log.warning("watch of %s: an object could not be read and is left out: %s", self.resource.plural, error)
            return rough.type, None

    def _bookmark(self, meta: ObjectMeta, fresh: dict[Key, T] | None) -> dict[Key, T] | None:
        if fresh is None:
            self._version = meta.resource_version
            return None
        if meta.notes.get(INITIAL_EVENTS_END) != "true":
            return fresh
        self.store.replace(fresh)
        self._version = meta.resource_version
        return None

    def _heard(self) -> None:
        self.store.heard_at, self.store.trouble = self.kube.clock.since_boot(), None


def _error(line: bytes) -> Exception:
    status = _decode(line, Event[Status]).object
    if status.code == HTTPStatus.GONE or status.reason in ("Expired", "Gone"):
        return Gone()
    return ClusterUnavailable(f"the watch ended with {status.code} {status.reason}: {status.message}")


def _meta(line: bytes) -> ObjectMeta:
    event: Event[PartialObject] = _decode(line, Event[PartialObject])
    return event.object.metadata


def _decode(line: bytes, kind: type[Any]) -> Any:
    try:
        return decode(line, kind)
    except msgspec.MsgspecError as error:
        raise ClusterUnavailable(f"a watch event that cannot be read: {error}") from error


async def lines(chunks: AsyncIterator[bytes], most_bytes: int) -> AsyncIterator[bytes]:
    """Split on b"\\n" and nothing else: text splitting would also break at a U+0085 inside an annotation."""
    held: list[bytes] = []
    size = 0
    async for chunk in chunks:
        first, *rest = chunk.split(b"\n")
        held.append(first)
        size += len(first)
        for part in rest:
            if line := b"".join(held):
                yield line
            held, size = [part], len(part)
        if size > most_bytes:
            raise ClusterUnavailable(f"a watch sent an event of more than {most_bytes:,} bytes")
    if any(held):
        raise ClusterUnavailable("a watch ended in the middle of an event")
