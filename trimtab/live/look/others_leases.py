"""others' leases: which Leases of another installation are renewed, of all its shards.

One that cannot be read is neither: only an answer says that it is gone.
"""

from __future__ import annotations

import logging
from http import HTTPStatus

from trimtab.errors import Refused
from trimtab.wire.kube import Kube
from trimtab.wire.objects import Lease
from trimtab.wire.resources import LEASES
from trimtab.wire.shards import Shard, divided_into

log = logging.getLogger(__name__)
USUAL_LEASE_S = 15.0
Place = tuple[str, str]  # namespace and name


class OthersLeases:
    """`alive` at each look; what was seen of a Lease, and when, is remembered."""

    def __init__(self, kube: Kube) -> None:
        self.kube = kube
        self._seen: dict[Place, tuple[str, float]] = {}  # the version of each, and since when
        self._hidden: set[Place] = set()

    async def alive(self, namespace: str, shards: int, now: float) -> list[Lease]:
        """Those that are held; `shards` is what the installation's Namespace says, `now` the clock since boot."""
        found: dict[str, Lease | None] = {}
        while missing := [name for name in _names(shards) if name not in found]:
            for name in missing:
                lease = found[name] = await self._read((namespace, name), now)
                shards = max(shards, divided_into(lease) if lease else 1)
        return [lease for name, lease in found.items() if lease and self._is_held(lease, (namespace, name), now)]

    async def _read(self, place: Place, now: float) -> Lease | None:
        try:
            lease = await self.kube.get(Lease, LEASES, *place)
        except Refused as refusal:
            if refusal.status not in (HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN):
                raise
            self._say_hidden(place, refusal)
            return None
        version = lease.metadata.resource_version
        if self._seen.get(place, ("", now))[0] != version:
            self._seen[place] = (version, now)
        return lease

    def _say_hidden(self, place: Place, refusal: Refused) -> None:
        if refusal.status == HTTPStatus.FORBIDDEN and place not in self._hidden:
            log.warning("whether the installation in namespace %s runs cannot be seen: %s", place[0], refusal)
            self._hidden.add(place)  # said once

    def _is_held(self, lease: Lease, place: Place, now: float) -> bool:
        """Counted from when we saw its last renewal, by our own clock."""
        lasts_s = float(lease.spec.lease_duration_seconds or USUAL_LEASE_S)
        return bool(lease.spec.holder_identity) and now - self._seen[place][1] < lasts_s


def _names(shards: int) -> list[str]:
    """Of an operator alone, and of the first of several, which say how many there are; then of all of them."""
    return [Shard().lease, Shard(0, 2).lease, *(Shard(number, shards).lease for number in range(1, shards))]
