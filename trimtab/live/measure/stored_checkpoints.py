"""stored_checkpoints: the ConfigMaps that checkpoints are in: one of an object, in the operator's own namespace.

Which there are is asked without what is in them: of ten thousand they are 200 MB.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from http import HTTPStatus

from trimtab.errors import Refused
from trimtab.kinds.annotations import OBJECT_NAMESPACE, OBJECT_TARGET, OBJECT_UID
from trimtab.live.look.subject import Subject
from trimtab.live.object_tick import ObjectTick
from trimtab.wire.kube import METADATA, Kube
from trimtab.wire.objects import ConfigMap, ObjectMeta, PartialObject
from trimtab.wire.resources import CONFIG_MAPS

LONGEST_NAME = 253


class StoredCheckpoints:
    def __init__(self, kube: Kube, home: str) -> None:
        self.kube, self.home = kube, home

    async def all(self) -> dict[str, ObjectMeta]:
        """By name."""
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
        if (found.metadata.annotations or {}).get(OBJECT_TARGET, tick.target.ref) != tick.target.ref:
            return {}  # it was edited to scale something else
        return dict(found.data)

    async def write(self, tick: ObjectTick, data: Mapping[str, str]) -> None:
        subject = tick.subject
        labels = {OBJECT_UID: subject.uid, OBJECT_NAMESPACE: subject.name.namespace}
        notes = {OBJECT_TARGET: tick.target.ref}
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name_of(subject), "namespace": self.home, "labels": labels, "annotations": notes},
            "data": data,
        }
        await self.kube.apply(ConfigMap, CONFIG_MAPS, body)

    async def drop(self, found: ObjectMeta) -> None:
        await self.kube.delete(CONFIG_MAPS, self.home, found.name, uid=found.uid)


def name_of(subject: Subject) -> str:
    """Unique, as neither a kind nor a namespace has a dot; one that would be too long ends with a digest."""
    kind, namespace, name = subject.name
    whole = f"trimtab-usage.{kind.lower()}.{namespace}.{name}"
    digest = hashlib.sha256(whole.encode()).hexdigest()[:16]
    return whole if len(whole) <= LONGEST_NAME else f"{whole[: LONGEST_NAME - 17].rstrip('.-')}-{digest}"
