"""Which kinds the cluster serves, and where: asked of the API server and believed for a while.

Tenants may name any kind. What the answer costs depends on what the cluster has, not on what they name: the groups are
one list, and only of those that are in it the kinds are asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus

import msgspec

from trimtab.errors import ClusterUnavailable, Refused
from trimtab.wire.clock import Clock
from trimtab.wire.decode import decode
from trimtab.wire.resources import KNOWN, Resource, read_discovery, root_of

GROUPS = "/apis"
BELIEVED_S, MISSED_S = 300.0, 5.0  # how long a list is believed: of what is in it, of what is not
MOST_LISTS = 1000  # of kinds; where nobody may list the groups, tenants may name any
NEVER = float("-inf")

Read = Callable[[str, str], Awaitable[bytes]]  # a path, and the namespace whose turn the question takes


class GroupVersion(msgspec.Struct, frozen=True, rename="camel"):
    group_version: str = ""


class Group(msgspec.Struct, frozen=True):
    versions: tuple[GroupVersion, ...] = ()


class GroupList(msgspec.Struct, frozen=True):
    groups: tuple[Group, ...] = ()


class ServedKinds:
    def __init__(self, read: Read, clock: Clock) -> None:
        self._read, self._clock = read, clock
        self._groups: tuple[float, frozenset[str] | None] = (NEVER, frozenset())  # None: nobody may list them
        self._listing = asyncio.Lock()
        self._kinds: dict[str, tuple[float, dict[str, Resource]]] = {}  # by group version

    async def find(self, api_version: str, kind: str, asker: str) -> Resource:
        """Where a kind lives, known or asked for; Refused(404) when the cluster has no such kind."""
        if known := KNOWN.get((api_version, kind)):
            return known
        root, (read_at, kinds) = root_of(api_version), self._kinds.get(api_version, (NEVER, {}))
        if self._is_old(read_at, kind in kinds):
            kinds = await self._kinds_of(api_version, root, asker) if await self._serves(api_version, asker) else {}
        if kind not in kinds:
            raise Refused(
                f"this cluster has no {kind} in {api_version}: check the spelling, or install its CRD",
                HTTPStatus.NOT_FOUND,
            )
        return kinds[kind]

    def _is_old(self, read_at: float, is_in: bool) -> bool:
        return self._clock.since_boot() - read_at > (BELIEVED_S if is_in else MISSED_S)

    async def _serves(self, api_version: str, asker: str) -> bool:
        """Who may not list the groups, or asks a server that cannot, asks for each."""
        if "/" not in api_version:
            return True
        async with self._listing:  # who waited finds what the one before has found
            read_at, served = self._groups
            if self._is_old(read_at, served is None or api_version in served):
                served = await self._listed(asker)
                self._groups = (self._clock.since_boot(), served)
        return served is None or api_version in served

    async def _listed(self, asker: str) -> frozenset[str] | None:
        try:
            listed: GroupList = decode(await self._read(GROUPS, asker), GroupList)
        except (Refused, msgspec.MsgspecError):
            return None
        return frozenset(version.group_version for group in listed.groups for version in group.versions) or None

    async def _kinds_of(self, api_version: str, root: str, asker: str) -> dict[str, Resource]:
        try:
            kinds = read_discovery(api_version, await self._read(root, asker))
        except Refused as refusal:
            if refusal.status != HTTPStatus.NOT_FOUND:
                raise
            kinds = {}
        except msgspec.MsgspecError as error:
            raise ClusterUnavailable(f"{root}: no list of kinds: {error}") from error
        if len(self._kinds) >= MOST_LISTS:
            self._kinds.clear()
        self._kinds[api_version] = (self._clock.since_boot(), kinds)
        return kinds
