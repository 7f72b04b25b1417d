"""A thin client of the API server: get, list, create, patch, delete, into the types the caller gives.

Answers that say no become Refused with their status; everything that is no answer is ClusterUnavailable, and so is an
answer about another object than was asked for. No answer is read beyond its limit, and a long one is decoded in pieces
between which the event loop goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from trimtab.errors import ClusterUnavailable, Refused, quoted
from trimtab.wire.access import Access
from trimtab.wire.budget import Budget, Priority
from trimtab.wire.clock import SYSTEM, Clock
from trimtab.wire.decode import decode
from trimtab.wire.http import ANSWER_BYTES, Answer, Brake, Fence, Http, OverHttp, Request
from trimtab.wire.objects import FIELD_MANAGER
from trimtab.wire.resources import CONFIG_MAPS, EVENTS, POD_METRICS, Resource, ServedKinds

T = TypeVar("T")
PAGE_SIZE, PAGE_BYTES = 500, 16 * 2**20  # of pages with more bytes smaller ones are asked for
WHOLE_BYTES = 128 * 2**20  # of a list that comes in one piece: the metrics of 200,000 pods
LONG_BYTES, ITEMS_AT_ONCE = 2**20, 500  # a longer answer is decoded by so many objects at a time
JSON = "application/json"
METADATA = f"{JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,{JSON}"  # who does not know it sends all


class AnswerTooLong(ClusterUnavailable):
    """More bytes than anything we ask for: it was not read to its end."""


class Patch(StrEnum):
    """The four ways to say what should change, by their content types."""

    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    JSON = "application/json-patch+json"
    APPLY = "application/apply-patch+yaml"  # JSON is YAML


class ListMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class ListPage(msgspec.Struct, Generic[T], frozen=True):
    metadata: ListMeta = ListMeta()
    items: list[T] = []


class Asked(NamedTuple):
    """What a request is about: a collection, an object or a part of it."""

    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def path(self) -> str:
        return _path(*self)

    def priority(self, verb: str) -> Priority:
        if verb in ("get", "list"):
            return Priority.READ
        if self.resource == EVENTS:
            return Priority.EVENT
        if self.subresource == "status" or self.resource == CONFIG_MAPS:  # both only keep what we know
            return Priority.STATUS
        return Priority.SCALE if self.subresource == "scale" else Priority.CHANGE


@lru_cache(maxsize=10_000)  # the same few are asked for in every tick, and a Lease every other second
def _path(resource: Resource, namespace: str, name: str, subresource: str) -> str:
    return resource.path(namespace, name, subresource)


class Listing(msgspec.Struct, Generic[T], frozen=True):
    """A whole list, the version it is of, and how many of its objects could not be read."""

    items: list[T]
    resource_version: str
    unreadable: int = 0


class Kube(OverHttp):
    """The API server. Requests are counted in `counts` (verb, resource, status) and paid from `budget`.

    `fence` says for how many seconds we may still write: no write leaves after that, and none is waited for. While
    somebody holds the `brake`, only status is written.
    """

    def __init__(
        self,
        access: Access,
        budget: Budget | None = None,
        timeout_s: float = 30.0,
        fence: Fence | None = None,
        clock: Clock = SYSTEM,
        brake: Brake = lambda: False,
    ) -> None:
        self.access, self.clock = access, clock
        self.http = Http(access, ClusterUnavailable, AnswerTooLong, budget, timeout_s, fence, brake)
        self.counts, self.budget = self.http.counts, self.http.budget
        self._kinds = ServedKinds(lambda path, asker: self.raw(path, namespace=asker), clock)

    def may_write(self) -> bool:
        """A write would leave if it were sent now."""
        return not self.http.brake() and (self.http.fence is None or self.http.fence() > 0)

    async def get(self, kind: type[T], resource: Resource, namespace: str, name: str, subresource: str = "") -> T:
        asked = Asked(resource, namespace, name, subresource)
        answer = await self._ask("get", asked, "GET")
        return self._about(asked, self.decode(answer.body, kind))

    async def list(
        self,
        kind: type[T],
        resource: Resource,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        accept: str = JSON,
    ) -> Listing[T]:
        """All of them, in pages of 500 or fewer; an expired continue token (410) falls back to one whole list.

        The metrics API knows no pages.
        """
        size = 0 if resource == POD_METRICS else PAGE_SIZE
        params = selectors(labels, fields)
        items: list[T] = []
        unreadable, asked = 0, Asked(resource, namespace)
        while True:
            try:
                page, lost = await self._page(await self._ask_page(asked, params, size, accept), kind)
            except AnswerTooLong:
                if size <= 1:
                    raise
                size = max(1, size // 8)
                continue
            except Refused as refusal:
                if refusal.status != HTTPStatus.GONE or not size:
                    raise
                items, unreadable, size = [], 0, 0
                params.pop("continue", None)
                continue
            items += [self._about(asked, item) for item in page.items]
            unreadable += lost
            if not page.metadata.continue_:
                return Listing(items, page.metadata.resource_version, unreadable)
            params["continue"] = page.metadata.continue_

    async def _ask_page(self, asked: Asked, params: Mapping[str, str], size: int, accept: str) -> bytes:
        """One page, or the whole list where `size` is 0."""
        limit = {"limit": str(size)} if size else {}
        most = PAGE_BYTES if size else WHOLE_BYTES
        return (await self._ask("list", asked, "GET", {**limit, **params}, accept=accept, most_bytes=most)).body

    async def create(
        self, kind: type[T], resource: Resource, namespace: str, body: Any, subresource: str = "", name: str = ""
    ) -> T:
        asked = Asked(resource, namespace, name, subresource)
        answer = await self._ask("create", asked, "POST", {"fieldManager": FIELD_MANAGER}, body)
        return self._about(asked, self.decode(answer.body, kind))

    async def patch(
        self,
        kind: type[T],
        resource: Resource,
        namespace: str,
        name: str,
        body: Any,
        how: Patch = Patch.MERGE,
        subresource: str = "",
        manager: str = FIELD_MANAGER,
        *,
        force: bool = False,
    ) -> T:
        """With `metadata.resourceVersion` in the body it is guarded: 409 when somebody was faster."""
        params = {"fieldManager": manager} | ({"force": "true"} if force else {})
        asked = Asked(resource, namespace, name, subresource)
        answer = await self._ask("patch", asked, "PATCH", params, body, how)
        return self._about(asked, self.decode(answer.body, kind))

    async def apply(
        self, kind: type[T], resource: Resource, body: Mapping[str, Any], subresource: str = "", *, force: bool = True
    ) -> T:
        """Server-side apply of a whole manifest under our field manager."""
        meta = body["metadata"]
        namespace = meta.get("namespace", "")
        return await self.patch(
            kind, resource, namespace, meta["name"], body, Patch.APPLY, subresource=subresource, force=force
        )

    async def delete(self, resource: Resource, namespace: str, name: str, *, uid: str = "") -> None:
        """With `uid`, only this very object: one made since under the same name stays."""
        body = {"preconditions": {"uid": uid}} if uid else {}
        await self._ask("delete", Asked(resource, namespace, name), "DELETE", None, body)

    async def raw(self, path: str, params: Mapping[str, str] | None = None, namespace: str = "") -> bytes:
        """Any other read, such as /version or a path of the metrics APIs (`resources` makes them)."""
        answer = await self.http.send(Request("get", "raw", "GET", path, params, namespace=namespace))
        return self._accept(answer, "", path).body

    async def resource(self, api_version: str, kind: str, asker: str = "") -> Resource:
        """Where a kind lives, known or discovered; Refused(404) when the cluster has no such kind.

        `asker` is the namespace whose object names it, and whose turn the question takes.
        """
        return await self._kinds.find(api_version, kind, asker)

    def decode(self, body: bytes, kind: type[T]) -> T:
        try:
            value: T = decode(body, kind)
        except msgspec.MsgspecError as error:
            raise ClusterUnavailable(
                f"{self.access.url}: answered with something else than a {kind}: {error}"
            ) from error
        return value

    async def items(self, body: bytes, kind: type[T]) -> Sequence[T]:
        """Those of a list that can be read."""
        return (await self._page(body, kind))[0].items

    async def _page(self, body: bytes, kind: type[T]) -> tuple[ListPage[T], int]:
        """One unreadable object must not cost the other 499, nor a long answer the event loop its turns."""
        if len(body) <= LONG_BYTES:
            try:
                page: ListPage[T] = decode(body, ListPage[kind])  # type: ignore[valid-type]
                return page, 0
            except msgspec.MsgspecError:
                pass
        rough: ListPage[msgspec.Raw] = self.decode(body, ListPage[msgspec.Raw])
        items: list[T] = []
        for number, raw in enumerate(rough.items, start=1):
            if number % ITEMS_AT_ONCE == 0:
                await asyncio.sleep(0)
            try:
                items.append(decode(raw, kind))
            except msgspec.MsgspecError:
                continue
        return ListPage(rough.metadata, items), len(rough.items) - len(items)

    async def _ask(
        self,
        verb: str,
        asked: Asked,
        method: str,
        params: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = JSON,
        accept: str = JSON,
        most_bytes: int = ANSWER_BYTES,
    ) -> Answer:
        sent = None if body is None else msgspec.json.encode(body)
        resource, path, priority = asked.resource.plural, asked.path, asked.priority(verb)
        request = Request(
            verb, resource, method, path, params, sent, content_type, asked.namespace, priority, accept, most_bytes
        )
        answer = await self.http.send(request)
        return self._accept(answer, verb, path)

    def _about(self, asked: Asked, answer: T) -> T:
        """The same, if it is about what was asked."""
        meta = getattr(answer, "metadata", None)
        name, namespace = getattr(meta, "name", ""), getattr(meta, "namespace", "")
        other_name = asked.name and name and name != asked.name
        other_namespace = asked.resource.namespaced and asked.namespace and namespace and namespace != asked.namespace
        if other_name or other_namespace:
            about = quoted(f"{namespace}/{name}")
            raise ClusterUnavailable(f"{asked.path}: the answer is about {about}, which was not asked for")
        return answer

    def _accept(self, answer: Answer, verb: str, path: str) -> Answer:
        if 200 <= answer.status < 300:
            return answer
        raise refused(answer, f"{verb} {path}".strip())


def selectors(labels: str, fields: str) -> dict[str, str]:
    return ({"labelSelector": labels} if labels else {}) | ({"fieldSelector": fields} if fields else {})


def refused(answer: Answer, what: str) -> Refused:
    """The server's own sentence where it gave one (a proxy in between may answer with anything)."""
    return Refused(f"{what}: {answer.status} {answer.said}", answer.status)
