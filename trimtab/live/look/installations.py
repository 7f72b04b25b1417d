"""installations: two operators of the whole cluster, each in a namespace of its own, notice each other; one stands by.

Each notes on its own Namespace, where no tenant writes, since when it is there and into how many shards it divides;
everybody follows Namespaces anyway. The oldest that renews a Lease serves, the others stand by, each of their shards.
Who wants to serve says so on its Lease before it looks at those of the others, and waits until no Lease of another says
the same: of two that meet, at least one sees the other, and the younger gives way.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from trimtab.errors import Refused, TrimtabError
from trimtab.kinds.annotations import INSTALLATION, SERVING, SHARDS
from trimtab.live.look.cluster import WatchedCluster
from trimtab.live.look.others_leases import OthersLeases
from trimtab.wire.from_kubernetes import rfc3339
from trimtab.wire.kube import Patch
from trimtab.wire.lease import Leadership
from trimtab.wire.objects import Lease, PartialObject
from trimtab.wire.resources import NAMESPACES
from trimtab.wire.shards import divided_into

log = logging.getLogger(__name__)
LOOKS = 3  # of ours before we write beside a release that does not say whether it serves: it has noticed us by then
Age = tuple[str, str]  # since when, and the namespace: the smaller one was there first


class Installations:
    """`look` before each tick of a leader; `may_serve` is the answer, `said` what an administrator should know."""

    def __init__(self, cluster: WatchedCluster, leadership: Leadership) -> None:
        self.cluster, self.leadership = cluster, leadership
        self.elder = ""  # the namespace of the one that serves instead of us
        self.younger: tuple[str, ...] = ()
        self._serves, self._term = False, float("-inf")  # the answer, and since when we led when it was found
        self._waited = 0  # looks at which younger ones were alive and might not have noticed us
        self._noted = False
        self._leases = OthersLeases(cluster.kube)  # not by the client that renews ours
        self._said = ""

    @property
    def may_serve(self) -> bool:
        """Who serves one namespace asks nobody; who has lost its Lease for a moment asks again."""
        return bool(self.cluster.namespace) or (self._serves and self._term == self.leadership.led_since)

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
        term, told = self.leadership.led_since, self.leadership.told.get(SERVING) == "true"
        try:
            followed = self.cluster.namespaces.store if self._noted else await self._noted_first()
            noted = {found.metadata.name: found for found in followed if _age(found)}
            home = noted.pop(self.cluster.home, None)
            alive = {name: await self._leases.alive(name, divided_into(found), now) for name, found in noted.items()}
        except TrimtabError as trouble:
            log.warning("whether there is another installation is not known yet: %s", trouble)
            return
        ours = (_age(home) if home else "~", self.cluster.home)  # who could not note itself is the youngest
        ages: list[Age] = sorted((_age(noted[name]), name) for name, leases in alive.items() if leases)
        self.elder = ages[0][1] if ages and ages[0] < ours else ""
        self.younger = () if self.elder else tuple(namespace for _, namespace in ages)
        self.leadership.tell(SERVING, "false" if self.elder else "true")
        self._decide(term, told, [lease for leases in alive.values() for lease in leases])
        self._say()

    def _decide(self, term: float, told: bool, others: Sequence[Lease]) -> None:
        """Who serves goes on when a younger one comes; who comes back to one waits until that stands by."""
        if self._term != term or self.elder:
            self._serves, self._waited, self._term = False, 0, term
        if not self.elder and not self._serves:
            self._waited += 1
            self._serves = told and not any(self._may_write(lease) for lease in others)

    def _may_write(self, lease: Lease) -> bool:
        says = (lease.metadata.annotations or {}).get(SERVING)
        return says == "true" or (says is None and self._waited <= LOOKS)

    async def _noted_first(self) -> Iterable[PartialObject]:
        """Note ourselves, then list: of two that begin together one sees the other."""
        kube, home = self.leadership.kube, self.cluster.home
        known = self.cluster.namespaces.store.get("", home)
        notes = (known.metadata.annotations or {}) if known else {}
        ours = {INSTALLATION: notes.get(INSTALLATION) or rfc3339(self._since()), SHARDS: str(self.cluster.shard.of)}
        if any(notes.get(name) != value for name, value in ours.items()):
            try:
                await kube.patch(PartialObject, NAMESPACES, "", home, {"metadata": {"annotations": ours}}, Patch.MERGE)
            except Refused as refusal:
                log.info("a second installation would not notice this one: %s", refusal)
        listed = (await kube.list(PartialObject, NAMESPACES)).items
        self._noted = True
        return listed

    def _since(self) -> float:
        """When our Lease was made, by the API server's clock."""
        return self.leadership.created_at

    def _say(self) -> None:
        if self.said != self._said:
            log.warning("%s", self.said or "this is the only installation of the whole cluster again")
            self._said = self.said


def _age(namespace: PartialObject) -> str:
    """Since when there is an installation in it; "": there is none."""
    return (namespace.metadata.annotations or {}).get(INSTALLATION) or ""
