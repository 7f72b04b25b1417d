"""writer: every write of the operator passes here; the wire asks the lease when it leaves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from trimtab.wire.kube import Kube, Patch
from trimtab.wire.managed_fields import FIELD_MANAGER
from trimtab.wire.resources import Resource

T = TypeVar("T")


class Writer:
    def __init__(self, kube: Kube) -> None:
        self.kube = kube

    def may_write(self) -> bool:
        return self.kube.may_write()

    async def patch(
        self,
        kind: type[T],
        resource: Resource,
        namespace: str,
        name: str,
        body: Any,
        how: Patch,
        subresource: str = "",
        manager: str = FIELD_MANAGER,
    ) -> T:
        return await self.kube.patch(
            kind, resource, namespace, name, body, how, subresource=subresource, manager=manager
        )

    async def apply(self, kind: type[T], resource: Resource, body: Mapping[str, Any], subresource: str = "") -> T:
        return await self.kube.apply(kind, resource, body, subresource=subresource)

    async def create(self, kind: type[T], resource: Resource, namespace: str, body: Any) -> T:
        return await self.kube.create(kind, resource, namespace, body)
