"""memory: what one release remembers, in a ConfigMap of its name; a restart with an empty disk loses no cooldown.

The chart makes the ConfigMap, so that the process needs no right to create any; without the chart it makes its own.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import msgspec
from msgspec.structs import replace

from trimtab.errors import Refused
from trimtab.live.look import memory
from trimtab.live.look.memory import ObjectMemory
from trimtab.wire.kube import Kube
from trimtab.wire.objects import ConfigMap
from trimtab.wire.resources import CONFIG_MAPS

KEY = "memory"


class ReleaseMemory:
    """Read once, when it is first asked; written when what must outlive us has changed."""

    def __init__(self, kube: Kube, namespace: str, name: str) -> None:
        self.kube, self.namespace, self.name = kube, namespace, name
        self._now: ObjectMemory | None = None
        self._stored = ObjectMemory()

    async def read(self, at: float, replicas: int) -> ObjectMemory:
        """Raises while the ConfigMap cannot be read: acting without the memory could break a cooldown."""
        if self._now is None:
            self._now = memory.read({KEY: await self._load()}, at, replicas)
            self._stored = _lasting(self._now)
        return self._now

    async def write(self, now: ObjectMemory) -> None:
        """What is not stored yet is tried again each time, until it is."""
        self._now = now
        lasting = _lasting(now)
        if lasting != self._stored:
            await self._store(memory.written(lasting))
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


def _lasting(now: ObjectMemory) -> ObjectMemory:
    """Without wishes and since when metrics fail: no rule of document 002 asks for them, and they always change."""
    return replace(now, core=replace(now.core, wanted=(), failing_since=None))
