"""The tests' API server as small tests use it: objects and requests by their paths, refusals on demand."""

from __future__ import annotations

import msgspec

from tests.virtual.apiserver import ADMIN, ApiServer, Call, Reply, place_of, status_body
from tests.virtual.fields import Object
from tests.virtual.served import Served
from tests.virtual.transport import Link
from trimtab.live.look.cluster import WatchedCluster
from trimtab.wire.access import Access
from trimtab.wire.decode import decode
from trimtab.wire.http import Fence
from trimtab.wire.kube import Kube
from trimtab.wire.resources import POD_METRICS

NOW = 1_750_000_000.0


class MemoryApi(ApiServer):
    """`asked` is (method, path) of every request; `refused` answers those with a status. It stands still at `NOW`."""

    def __init__(self, leads: bool = True) -> None:
        super().__init__(lambda: NOW)
        self.install(Served(POD_METRICS))
        self.fence: Fence = (lambda: 10.0) if leads else (lambda: 0.0)
        self.asked: list[tuple[str, str]] = []
        self.refused: dict[tuple[str, str], int] = {}

    @property
    def objects(self) -> dict[str, Object]:
        """Everything there is, by its path."""
        held = self.store.collections.values()
        return {each.resource.path(*key): found for each in held for key, found in each.items.items()}

    def kube(self) -> Kube:
        access = Access("http://in-memory", transport=Link(self, ADMIN).transport)
        return Kube(access, fence=lambda: self.fence())

    def remove(self, path: str) -> None:
        place = place_of(path)
        self.store.delete(self.collection(path).resource, place.namespace, place.name)

    def follow(self, cluster: WatchedCluster) -> None:
        """What an informer would have seen by now."""
        for feed in cluster.feeds:
            feed.store.synced.set()
            if feed.resource is not None:
                for body in self.store.of(feed.resource).items.values():
                    feed.store.put(decode(msgspec.json.encode(body), feed.kind))

    def handle(self, call: Call) -> Reply:
        self.asked.append((call.method, call.path))
        if status := self.refused.get((call.method, call.path)):
            return Reply(status, status_body(status, "", "not here"))
        return super().handle(call)
