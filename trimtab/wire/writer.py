"""writer: every write of the operator passes here; the lease is asked first, so a leader cut off stops by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from trimtab.errors import TrimtabError
from trimtab.wire.kube import Kube, Patch
from trimtab.wire.resources import Resource

T = TypeVar("T")


class NotLeading(TrimtabError):
    """Somebody else may be leader by now: nothing is written, and nobody needs to hear of it."""


class Writer:
    """A Kube that writes only while `may_write` says so."""

    def __init__(self, kube: Kube, may_write: Callable[[], bool]) -> None:
        self.kube, self.may_write = kube, may_write

    async def patch(
        self, kind: type[T], resource: Resource, namespace: str, name: str, body: Any, how: Patch, subresource: str = ""
    ) -> T:
        self._ask()
        return await self.kube.patch(kind, resource, namespace, name, body, how, subresource=subresource)

    async def apply(self, kind: type[T], resource: Resource, body: Mapping[str, Any], subresource: str = "") -> T:
        self._ask()
        return await self.kube.apply(kind, resource, body, subresource=subresource)

    async def create(self, kind: type[T], resource: Resource, namespace: str, body: Any) -> T:
        self._ask()
        return await self.kube.create(kind, resource, namespace, body)

    def _ask(self) -> None:
        if not self.may_write():
            raise NotLeading("the lease may have passed to another operator: nothing was written")
