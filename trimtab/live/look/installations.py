"""installations: two operators of the whole cluster, each in a namespace of its own, notice each other; one stands by.

Each notes itself on its own Namespace, where no tenant writes, and everybody follows Namespaces anyway. Whose Lease is
older serves while it is renewed; the other holds its own Lease, writes nothing, and takes over when the first is gone.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from http import HTTPStatus
from math import inf

from trimtab.errors import Refused, TrimtabError
from trimtab.kinds.annotations import INSTALLATION
from trimtab.live.look.cluster import WatchedCluster
from trimtab.wire.kube import Patch
from trimtab.wire.lease import Leadership
from trimtab.wire.objects import Lease, Namespace
from trimtab.wire.resources import LEASES, NAMESPACES

log = logging.getLogger(__name__)
SERVES = "cluster"  # what is noted
LOOKS = 3  # of ours before we write beside a younger one: it has noticed us by then
USUAL_LEASE_S = 15.0


class Installations:
    """`look` before each tick of a leader; `may_serve` is the answer, `said` what an administrator should know."""

    def __init__(self, cluster: WatchedCluster, leadership: Leadership) -> None:
        self.cluster, self.leadership = cluster, leadership
        self.elder = ""  # the namespace of the one that serves instead of us
        self.younger: tuple[str, ...] = ()
        self.may_serve = bool(cluster.namespace)  # who serves one namespace asks nobody
        self._waited = 0  # looks at which younger ones were alive and might not have noticed us
        self._noted = False
        self._alive: dict[str, float] = {}  # at the last look: when the Lease of each was made
        self._seen: dict[str, tuple[str, float]] = {}  # the version of each Lease, and since when
        self._hidden: set[str] = set()
        self._said = ""

    @property
    def said(self) -> str:
        """What an administrator should know; "" while we are alone."""
        if self.elder:
            return f"the installation in namespace {self.elder} serves this cluster: uninstall one of them"
        if self.younger:
            return f"installations of the whole cluster stand by for us in: {', '.join(self.younger)}"
        return ""

    async def look(self, now: float) -> None:
        """`now` by the clock since boot."""
        if self.cluster.namespace:
            return
        try:
            followed = self.cluster.namespaces.store if self._noted else await self._noted_first()
        except TrimtabError as trouble:
            log.warning("whether there is another installation is not known yet: %s", trouble)
            return
        found = {namespace: await self._alive_since(namespace, now) for namespace in self._others(followed)}
        self._alive = {namespace: since for namespace, since in found.items() if since < inf}
        ours = (self.leadership.created_at, self.cluster.home)
        alive = sorted((since, namespace) for namespace, since in self._alive.items())
        self.elder = alive[0][1] if alive and alive[0] < ours else ""
        self.younger = () if self.elder else tuple(namespace for _, namespace in alive)
        self._decide()
        self._say()

    def _decide(self) -> None:
        """Who serves goes on when a younger one comes; who comes back to one waits until that stands by."""
        if self.elder:
            self.may_serve, self._waited = False, 0
        elif not self.may_serve:
            self._waited += 1
            self.may_serve = not self.younger or self._waited > LOOKS

    def _others(self, namespaces: Iterable[Namespace]) -> list[str]:
        noted = [
            found.metadata.name
            for found in namespaces
            if (found.metadata.annotations or {}).get(INSTALLATION) == SERVES
        ]
        return sorted(name for name in noted if name != self.cluster.home)

    async def _noted_first(self) -> Iterable[Namespace]:
        """Note ourselves, then list: of two that begin together one sees the other."""
        body, kube = {"metadata": {"annotations": {INSTALLATION: SERVES}}}, self.leadership.kube
        try:
            await kube.patch(Namespace, NAMESPACES, "", self.cluster.home, body, Patch.MERGE)
        except Refused as refusal:
            log.info("a second installation would not notice this one: %s", refusal)
        listed = (await kube.list(Namespace, NAMESPACES)).items
        self._noted = True
        return listed

    async def _alive_since(self, namespace: str, now: float) -> float:
        """When the Lease of a living installation was made; infinite for all others."""
        try:
            lease = await self.leadership.kube.get(Lease, LEASES, namespace, self.leadership.name)
        except Refused as refusal:
            if refusal.status != HTTPStatus.NOT_FOUND and namespace not in self._hidden:
                log.warning("whether the installation in namespace %s runs cannot be seen: %s", namespace, refusal)
                self._hidden.add(namespace)  # said once
            return inf
        except TrimtabError as trouble:
            log.warning("namespace %s: %s", namespace, trouble)
            return self._alive.get(namespace, inf)  # as at the last look
        version = lease.metadata.resource_version
        if self._seen.get(namespace, ("", 0.0))[0] != version:
            self._seen[namespace] = (version, now)
        renewed = now - self._seen[namespace][1] < float(lease.spec.lease_duration_seconds or USUAL_LEASE_S)
        return lease.made_at if lease.spec.holder_identity and renewed else inf

    def _say(self) -> None:
        if self.said != self._said:
            log.warning("%s", self.said or "this is the only installation of the whole cluster again")
            self._said = self.said
