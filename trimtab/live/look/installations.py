"""installations: two operators of the whole cluster, each in a namespace of its own, notice each other; one stands by.

Each notes on its own Namespace, where no tenant writes, since when it is there; everybody follows Namespaces anyway.
The older serves while its Lease is renewed; the other holds a Lease of its own, writes nothing, and takes over when
the first is gone.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from http import HTTPStatus

from trimtab.errors import Refused, TrimtabError
from trimtab.kinds.annotations import INSTALLATION
from trimtab.live.look.cluster import WatchedCluster
from trimtab.wire.facts import rfc3339
from trimtab.wire.kube import Patch
from trimtab.wire.lease import Leadership
from trimtab.wire.objects import Lease, Namespace
from trimtab.wire.resources import LEASES, NAMESPACES
from trimtab.wire.shards import LEASE

log = logging.getLogger(__name__)
LOOKS = 3  # of ours before we write beside a younger one: it has noticed us by then
USUAL_LEASE_S = 15.0
FIRST_LEASES = (LEASE, f"{LEASE}-0")  # of an operator alone, and of the first of several
Age = tuple[str, str]  # since when, and the namespace: the smaller one was there first


class Installations:
    """`look` before each tick of a leader; `may_serve` is the answer, `said` what an administrator should know."""

    def __init__(self, cluster: WatchedCluster, leadership: Leadership) -> None:
        self.cluster, self.leadership = cluster, leadership
        self.elder = ""  # the namespace of the one that serves instead of us
        self.younger: tuple[str, ...] = ()
        self.may_serve = bool(cluster.namespace)  # who serves one namespace asks nobody
        self._waited = 0  # looks at which younger ones were alive and might not have noticed us
        self._noted = False
        self._alive: set[str] = set()  # at the last look
        self._seen: dict[tuple[str, str], tuple[str, float]] = {}  # the version of each Lease, and since when
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
        ages = _ages(followed)
        ours = ages.pop(self.cluster.home, ("~", self.cluster.home))  # who could not note itself is the youngest
        self._alive = {namespace for namespace in ages if await self._is_alive(namespace, now)}
        alive = sorted(ages[namespace] for namespace in self._alive)
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

    async def _noted_first(self) -> Iterable[Namespace]:
        """Note ourselves, then list: of two that begin together one sees the other."""
        kube, home = self.leadership.kube, self.cluster.home
        known = self.cluster.namespaces.store.get("", home)
        if known is None or INSTALLATION not in (known.metadata.annotations or {}):
            body = {"metadata": {"annotations": {INSTALLATION: rfc3339(self._since())}}}
            try:
                await kube.patch(Namespace, NAMESPACES, "", home, body, Patch.MERGE)
            except Refused as refusal:
                log.info("a second installation would not notice this one: %s", refusal)
        listed = (await kube.list(Namespace, NAMESPACES)).items
        self._noted = True
        return listed

    def _since(self) -> float:
        """When our Lease was made, by the API server's clock."""
        return self.leadership.created_at

    async def _is_alive(self, namespace: str, now: float) -> bool:
        return any([await self._is_renewed(namespace, name, now) for name in FIRST_LEASES])

    async def _is_renewed(self, namespace: str, name: str, now: float) -> bool:
        try:
            lease = await self.leadership.kube.get(Lease, LEASES, namespace, name)
        except Refused as refusal:
            if refusal.status != HTTPStatus.NOT_FOUND and namespace not in self._hidden:
                log.warning("whether the installation in namespace %s runs cannot be seen: %s", namespace, refusal)
                self._hidden.add(namespace)  # said once
            return False
        except TrimtabError as trouble:
            log.warning("namespace %s: %s", namespace, trouble)
            return namespace in self._alive  # as at the last look
        key, version = (namespace, name), lease.metadata.resource_version
        if self._seen.get(key, ("", 0.0))[0] != version:
            self._seen[key] = (version, now)
        lasts_s = float(lease.spec.lease_duration_seconds or USUAL_LEASE_S)
        return bool(lease.spec.holder_identity) and now - self._seen[key][1] < lasts_s

    def _say(self) -> None:
        if self.said != self._said:
            log.warning("%s", self.said or "this is the only installation of the whole cluster again")
            self._said = self.said


def _ages(namespaces: Iterable[Namespace]) -> dict[str, Age]:
    """Of all that are noted, by namespace."""
    noted = [(found.metadata.name, (found.metadata.annotations or {}).get(INSTALLATION)) for found in namespaces]
    return {name: (since, name) for name, since in noted if since}
