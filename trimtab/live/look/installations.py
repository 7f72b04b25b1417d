"""installations: of several operators of one cluster, exactly one serves each namespace.

Each installation of the whole cluster annotates its own Namespace, where no tenant writes, with its age and its number
of shards. The oldest one that renews a Lease serves and the others stand by. An installation that wants to serve says
so on its Lease first, then reads the Leases of the others and waits until none of them says the same: when two meet,
at least one sees the other, and the younger one gives way. Namespaces with an operator of their own are left to it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from http import HTTPStatus

from trimtab.errors import Refused, TrimtabError
from trimtab.kinds.annotations import INSTALLATION, SERVES, SERVING, SHARDS
from trimtab.live.look.cluster import WatchedCluster
from trimtab.wire.from_kubernetes import rfc3339
from trimtab.wire.kube import Kube, Patch
from trimtab.wire.lease import Leadership
from trimtab.wire.objects import Lease, PartialObject
from trimtab.wire.resources import LEASES, NAMESPACES
from trimtab.wire.shards import Shard, divided_into

log = logging.getLogger(__name__)
LOOKS = 3  # of ours before we write beside a release that does not say whether it serves: it has noticed us by then
USUAL_LEASE_S = 15.0
Place = tuple[str, str]  # namespace and name
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
        says = lease.metadata.notes.get(SERVING)
        return says == "true" or (says is None and self._waited <= LOOKS)

    async def _noted_first(self) -> Iterable[PartialObject]:
        """Note ourselves, then list: of two that begin together one sees the other."""
        kube, home = self.leadership.kube, self.cluster.home
        known = self.cluster.namespaces.store.get("", home)
        notes = known.metadata.notes if known else {}
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
    return namespace.metadata.notes.get(INSTALLATION) or ""


class OthersLeases:
    """Tells which Leases of another installation are renewed, of all its shards.

    A Lease that cannot be read is neither alive nor gone: only an answer says that it is gone.
    """

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
        return bool(lease.spec.holder_identity) and now - self._seen[place][1] < _duration_s(lease)


def _duration_s(lease: Lease) -> float:
    return float(lease.spec.lease_duration_seconds or USUAL_LEASE_S)


def _names(shards: int) -> list[str]:
    """Of an operator alone, and of the first of several, which say how many there are; then of all of them."""
    return [Shard().lease, Shard(0, 2).lease, *(Shard(number, shards).lease for number in range(1, shards))]


class OwnOperators:
    """Leaves each namespace that has an operator of its own to that operator.

    The Lease of such an operator is in the namespace that it serves, and says so. A tenant who makes one by hand
    switches autoscaling off in that namespace only, which they may do anyway. Call `look` before each tick; the result
    is in `cluster.left`.
    """

    def __init__(self, cluster: WatchedCluster) -> None:
        self.cluster = cluster
        self._seen: dict[str, tuple[str, float]] = {}  # by namespace: the version of its Lease, and since when

    def look(self, now: float) -> None:
        """`now` by the clock since boot."""
        if self.cluster.namespace:
            return
        held = [lease for lease in self.cluster.leases.store if self._is_of_one_namespace(lease)]
        self._seen = {lease.metadata.namespace: self._since(lease, now) for lease in held}
        left = frozenset(lease.metadata.namespace for lease in held if self._may_be_held(lease))
        if left != self.cluster.left:
            log.warning("namespaces with an operator of their own, which are left to it: %s", sorted(left) or "none")
            self.cluster.left = left

    def _is_of_one_namespace(self, lease: Lease) -> bool:
        meta = lease.metadata
        serves = meta.notes.get(SERVES)
        return serves == meta.namespace != self.cluster.home and bool(lease.spec.holder_identity)

    def _since(self, lease: Lease, now: float) -> tuple[str, float]:
        version, since = self._seen.get(lease.metadata.namespace, ("", now))
        unchanged = version == lease.metadata.resource_version
        return (version, since) if unchanged else (lease.metadata.resource_version, now)

    def _may_be_held(self, lease: Lease) -> bool:
        """From when we saw its last renewal to when we last heard of any, by our own clock.

        While nothing is heard nobody knows that it was not renewed: a watch that is silent gives no namespace away.
        """
        silent_s = self.cluster.leases.store.heard_at - self._seen[lease.metadata.namespace][1]
        return silent_s < _duration_s(lease)
