"""What the API server keeps: objects, their versions, the history that watches read, and whoever watches."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import takewhile
from typing import Any

from tests.virtual.fields import ABSENT, Entry, Object, Owners, encoded, managed_fields, updated
from trimtab.wire.from_kubernetes import rfc3339
from trimtab.wire.resources import LEASES, PODS, Resource

Key = tuple[str, str]  # namespace, name
HISTORY = 1000  # events that a watch may come back to
HEAD = frozenset({"metadata", "apiVersion", "kind"})
OWN = frozenset({"resourceVersion", "uid", "creationTimestamp", "generation", "managedFields"})
UNCOUNTED = ("leases", "events", "configmaps", "namespaces")  # kinds whose metadata has no generation


class Happened:
    """One event of a collection."""

    __slots__ = ("_line", "object", "type", "version")

    def __init__(self, version: int, kind: str, found: Object) -> None:
        self.version, self.type, self.object = version, kind, found
        self._line = b""

    def line(self) -> bytes:
        """As it is sent: written when the first asks for it, for all of them."""
        if not self._line:
            self._line = line_of(self.type, self.object)
        return self._line


Listener = Callable[[Resource, str, Object, Object], None]  # the resource, the type of event, after, before


class Collection:
    def __init__(self, resource: Resource) -> None:
        self.resource = resource
        self.items: dict[Key, Object] = {}
        self.owners: dict[Key, Owners] = {}
        self.history: deque[Happened] = deque(maxlen=HISTORY)
        self.oldest = 0  # a watch from before it is told 410
        self.watchers: list[Callable[[Happened], None]] = []

    def after(self, version: int) -> list[Happened]:
        """What happened since, oldest first; of a long history only its end is looked at."""
        return [*takewhile(lambda event: event.version > version, reversed(self.history))][::-1]


class Objects:
    """All collections of a cluster; `now` dates what is written."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.now, self.version, self._made = now, 100, 0
        self.collections: dict[tuple[str, str], Collection] = {}  # by api version and plural
        self._found: dict[Resource, Collection] = {}  # the same by whatever they were asked for with
        self.listeners: list[Listener] = []

    def serve(self, resource: Resource) -> Collection:
        return self.collections.setdefault((resource.api_version, resource.plural), Collection(resource))

    def of(self, resource: Resource) -> Collection:
        held = self._found.get(resource)
        if held is None:
            held = self._found[resource] = self.collections[resource.api_version, resource.plural]
        return held

    def get(self, resource: Resource, namespace: str, name: str) -> Object | None:
        return self.of(resource).items.get((namespace, name))

    def write(self, resource: Resource, found: Object, entry: Entry) -> Object:
        """Create or replace; ownership follows from what differs."""
        held = self.of(resource)
        key = key_of(found)
        before = held.items.get(key) or {}
        if resource is LEASES:  # nobody asks who owns what of them, and they are written all the time
            return self.put(resource, found, {})
        owners = updated(held.owners.get(key, {}), entry, before, found, rfc3339(self.now()))
        return self.put(resource, found, owners)

    def put(self, resource: Resource, found: Object, owners: Owners) -> Object:
        held, key = self.of(resource), key_of(found)
        before = held.items.get(key)
        if before is not None and _same(before, found):
            held.owners[key] = owners
            return before
        after = self._versioned(resource, found, before)
        if resource is PODS:  # who resized a pod is asked of each that is seen
            rows = sorted(managed_fields(owners), key=lambda row: str(row.get("time", "")))
            after["metadata"]["managedFields"] = rows
        held.items[key], held.owners[key] = after, owners
        self._happened(held, "ADDED" if before is None else "MODIFIED", after, before or {})
        return after

    def delete(self, resource: Resource, namespace: str, name: str) -> Object:
        held = self.of(resource)
        found = held.items.pop((namespace, name))
        held.owners.pop((namespace, name), None)
        self.version += 1
        gone = found | {"metadata": found["metadata"] | {"resourceVersion": str(self.version)}}
        self._happened(held, "DELETED", gone, found)
        return gone

    def compact(self) -> None:
        """Forget the history, as etcd does: watches from before must list again."""
        self.version += 1
        for held in self.collections.values():
            held.history.clear()
            held.oldest = self.version

    def _versioned(self, resource: Resource, found: Object, before: Object | None) -> Object:
        self.version += 1
        meta: dict[str, Any] = {**found["metadata"], "resourceVersion": str(self.version)}
        if before is None:
            self._made += 1
            meta.setdefault("uid", f"uid-{self._made:06d}")
            meta.setdefault("creationTimestamp", rfc3339(self.now()))
        else:
            known = before["metadata"]
            meta["uid"], meta["creationTimestamp"] = known["uid"], known["creationTimestamp"]
        if resource.plural not in UNCOUNTED:
            edited = before is None or before.get("spec") != found.get("spec")
            meta["generation"] = (before or {}).get("metadata", {}).get("generation", 0) + edited
        return {**found, "apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta}

    def _happened(self, held: Collection, kind: str, after: Object, before: Object) -> None:
        event = Happened(self.version, kind, after)
        if len(held.history) == HISTORY:
            held.oldest = held.history[0].version
        held.history.append(event)
        for watcher in list(held.watchers):
            watcher(event)
        for listener in self.listeners:
            listener(held.resource, kind, after, before)


def key_of(found: Object) -> Key:
    meta = found["metadata"]
    return meta.get("namespace", ""), meta["name"]


def line_of(kind: str, found: Object) -> bytes:
    return encoded({"type": kind, "object": found}) + b"\n"


def _same(before: Object, after: Object) -> bool:
    """Nothing but what the server itself sets differs: no write happens."""
    return _equal_but(HEAD, before, after) and _equal_but(OWN, before["metadata"], after["metadata"])


def _equal_but(ignored: frozenset[str], before: Object, after: Object) -> bool:
    for name, value in after.items():
        if name not in ignored and before.get(name, ABSENT) != value:
            return False
    return before.keys() <= after.keys() | ignored
