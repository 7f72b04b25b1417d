"""book: what one release remembers, in a ConfigMap of its name; a restart with an empty disk loses no cooldown.

The chart makes the ConfigMap, so that the process needs no right to create any; without the chart it makes its own.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import msgspec
from msgspec.structs import replace

from trimtab.errors import Refused
from trimtab.live.look import kept
from trimtab.live.look.kept import Kept
from trimtab.wire.kube import Kube
from trimtab.wire.objects import ConfigMap
from trimtab.wire.resources import CONFIG_MAPS

KEY = "memory"


class Book:
    """Read once, when it is first asked; written when what must outlive us has changed."""

    def __init__(self, kube: Kube, namespace: str, name: str) -> None:
        self.kube, self.namespace, self.name = kube, namespace, name
        self._kept: Kept | None = None
        self._stored = Kept()

    async def read(self, at: float, replicas: int) -> Kept:
        """Raises while the ConfigMap cannot be read: acting without the memory could break a cooldown."""
        if self._kept is None:
            self._kept = kept.read({KEY: await self._load()}, at, replicas)
            self._stored = _lasting(self._kept)
        return self._kept

    async def write(self, now: Kept) -> None:
        """What is not stored yet is tried again each time, until it is."""
        self._kept = now
        lasting = _lasting(now)
        if lasting != self._stored:
            await self._store(kept.written(lasting))
            self._stored = lasting

    async def _load(self) -> dict[str, Any]:
        try:
            found = await self.kube.get(ConfigMap, CONFIG_MAPS, self.namespace, self.name)
            stored = msgspec.json.decode(found.data.get(KEY) or "{}")
        except Refused as refusal:
            if refusal.status != HTTPStatus.NOT_FOUND:
                raise
            return {}
        except msgspec.DecodeError:  # somebody wrote into it: there is nothing to remember
            return {}
        return stored if isinstance(stored, dict) else {}

    async def _store(self, lasting: dict[str, Any]) -> None:
        data = {"data": {KEY: msgspec.json.encode(lasting).decode()}}
        try:
            await self.kube.patch(ConfigMap, CONFIG_MAPS, self.namespace, self.name, data)
        except Refused as refusal:
            if refusal.status != HTTPStatus.NOT_FOUND:
                raise
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": self.name}} | data
            await self.kube.create(ConfigMap, CONFIG_MAPS, self.namespace, body)


def _lasting(now: Kept) -> Kept:
    """Without wishes and since when metrics fail: no rule of document 002 asks for them, and they always change."""
    return replace(now, core=replace(now.core, wanted=(), failing_since=None))
