"""shards: several operators divide the namespaces of a cluster among them, each with a Lease of its own.

Everything that one object needs lies in its namespace, so that budgets, conflicts and lists stay with one operator.
While the number of shards changes, two divisions meet: who holds a Lease of one keeps those of the other waiting. Who
takes a Lease looks once more before its first write, and each writes its Lease before it looks: of two that come
together at least one sees the other, and gives way.
"""

from __future__ import annotations

import logging
import re
from functools import lru_cache
from hashlib import blake2b
from http import HTTPStatus
from typing import Any, NamedTuple

from trimtab.errors import InvalidInput, Refused
from trimtab.kinds.annotations import SERVES, SERVING, SHARDS
from trimtab.wire.lease import Leadership
from trimtab.wire.objects import Lease, PartialObject
from trimtab.wire.resources import LEASES

LEASE = "trimtab"
NAMES = re.compile(rf"{LEASE}(-\d+)?")
MOST = 100
COUNT = re.compile(r"[0-9]{1,3}")
log = logging.getLogger(__name__)


class Shard(NamedTuple):
    """`number` counts from 0; one of one is an operator without others."""

    number: int = 0
    of: int = 1

    @classmethod
    def parse(cls, text: str, path: str = "shard") -> Shard:
        """ "0/3" is the first of three."""
        found = re.fullmatch(r"(\d{1,3})/(\d{1,3})", text)
        shard = cls(int(found[1]), int(found[2])) if found else cls(0, 0)
        if not 0 <= shard.number < shard.of <= MOST:
            raise InvalidInput(path, text, f"write 0/3 for the first of three; {MOST} at most")
        return shard

    @property
    def lease(self) -> str:
        return LEASE if self.of == 1 else f"{LEASE}-{self.number}"

    def owns(self, namespace: str) -> bool:
        """The same answer on every machine, for ever."""
        return self.of == 1 or _hash_of(namespace) % self.of == self.number

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


@lru_cache(maxsize=100_000)
def _hash_of(namespace: str) -> int:
    return int.from_bytes(blake2b(namespace.encode(), digest_size=8).digest(), "big")


ALONE = Shard()


class ShardLeadership(Leadership):
    """Leads one shard, and only while nobody leads one of another division."""

    def __init__(self, *args: Any, shard: Shard, serves: str = "", **settings: Any) -> None:
        more = {SERVES: serves} if serves else {SERVING: "true"}
        super().__init__(*args, **settings, annotations={SHARDS: str(shard.of)} | more)
        self.shard = shard
        self.waits_for = ""  # the Lease of another division that keeps us waiting
        self._agreed = False  # nobody of another division was there after we had our Lease
        self._others: dict[str, tuple[str, float]] = {}  # the version of each, and when we first saw it

    def seconds_left(self) -> float:
        return super().seconds_left() if self._agreed else 0.0

    async def _compete(self) -> float:
        self._agreed = False
        if await self._divisions():
            return self.retry_s
        wait_s = await super()._compete()
        if self.holder != self.identity:
            return wait_s
        others = await self._divisions()
        self._agreed = not others
        if max(others, default=0) > self.shard.of:  # of two that met, one stays
            await self._hand_back()
        return wait_s

    async def _divisions(self) -> set[int]:
        """Into how many shards others divide who hold a Lease, or may still hold it."""
        live = {lease.metadata.name: divided_into(lease) for lease in await self._leases() if self._may_be_held(lease)}
        others = {name: count for name, count in live.items() if count != self.shard.of}
        self.waits_for = min(others, default="")
        return set(others.values())

    def _may_be_held(self, lease: Lease) -> bool:
        """Counted from when we saw its last renewal, by our own clock."""
        name, version, now = lease.metadata.name, lease.metadata.resource_version, self.kube.clock.since_boot()
        if self._others.get(name, ("", 0.0))[0] != version:
            self._others[name] = (version, now)
        lasts_s = float(lease.spec.lease_duration_seconds or self.duration_s)
        return bool(lease.spec.holder_identity) and now - self._others[name][1] < lasts_s

    async def _leases(self) -> list[Lease]:
        try:
            listed = await self.kube.list(Lease, LEASES, self.namespace)
        except Refused as refusal:
            if self.shard.of == 1 and refusal.status == HTTPStatus.FORBIDDEN:  # a Role of an older chart
                return []
            raise
        return [lease for lease in listed.items if NAMES.fullmatch(lease.metadata.name)]


def divided_into(found: Lease | PartialObject) -> int:
    """Among how many operators, as a Lease or its installation's Namespace says."""
    text = found.metadata.notes.get(SHARDS, "1")
    return min(int(text), MOST) if COUNT.fullmatch(text) else 1
