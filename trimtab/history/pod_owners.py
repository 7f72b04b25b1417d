"""Which pods belonged to which workload: by owner reference, never by a name that only looks alike.

A controller names its pods NAME-SUFFIX without a dash in the suffix, so the stem of a pod's name is its owner's
name. That is used only where the owner references confirm it for every pod; other workloads' pods are listed by
name. Sources: the API server for what still exists, kube-state-metrics for pods that are gone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from trimtab.errors import MetricsUnavailable
from trimtab.wire.kube import Kube
from trimtab.wire.objects import WirePod, WireWorkload
from trimtab.wire.prometheus import Prometheus
from trimtab.wire.resources import DAEMON_SETS, PODS, REPLICA_SETS, STATEFUL_SETS

NOT_SCALED = ("Job", "Node", "")  # work that ends, pods that a node runs by itself, pods without an owner


class OwnerLink(NamedTuple):
    """One owner reference: a pod or a ReplicaSet, and its controller (no kind: it has none)."""

    namespace: str
    name: str
    owner_kind: str
    owner_name: str


class Member(msgspec.Struct):
    """A workload and how its pods are recognised: all by the stems of their names, or all by name."""

    namespace: str
    kind: str
    name: str
    stems: set[str] = msgspec.field(default_factory=set)
    pods: set[str] = msgspec.field(default_factory=set)

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.kind}/{self.name}"


def stem(pod: str) -> str:
    return pod.rpartition("-")[0]


def gather(
    pods: Iterable[OwnerLink], replica_sets: Iterable[OwnerLink], stems: Iterable[OwnerLink] = ()
) -> list[Member]:
    """Workloads with their pods; `stems` are owners that are known without any pod of theirs."""
    above = {(link.namespace, link.name): link for link in replica_sets if link.owner_kind}
    members: dict[str, Member] = {}
    claims: dict[tuple[str, str], set[str]] = defaultdict(set)  # who has pods of this stem
    irregular: set[str] = set()

    def member(link: OwnerLink) -> Member:
        if link.owner_kind == "ReplicaSet":
            link = above.get((link.namespace, link.owner_name), link)
        made = Member(link.namespace, link.owner_kind, link.owner_name or link.name)
        return members.setdefault(made.key, made)

    for link in stems:
        member(link).stems.add(link.owner_name)
        claims[link.namespace, link.owner_name].add(member(link).key)
    for link in pods:
        mine = member(link)
        mine.pods.add(link.name)
        mine.stems.add(link.owner_name)
        claims[link.namespace, stem(link.name)].add(mine.key)
        if stem(link.name) != link.owner_name:
            irregular.add(mine.key)
    for mine in members.values():
        shared = any(len(claims[mine.namespace, name]) > 1 for name in mine.stems)
        mine.stems = set() if shared or mine.key in irregular else mine.stems
    told = (mine for mine in members.values() if mine.kind not in NOT_SCALED and (mine.stems or mine.pods))
    return sorted(told, key=lambda mine: mine.key)


class OwnerLinks(NamedTuple):
    """What one source says; `stems` are owners that are known without any pod of theirs."""

    pods: tuple[OwnerLink, ...] = ()
    replica_sets: tuple[OwnerLink, ...] = ()
    stems: tuple[OwnerLink, ...] = ()

    def overruled_by(self, other: OwnerLinks) -> OwnerLinks:
        """What the other says of the same pod or ReplicaSet counts; of the rest, what is said here."""
        return OwnerLinks(
            _overruled(self.pods, other.pods),
            _overruled(self.replica_sets, other.replica_sets),
            (*self.stems, *other.stems),
        )


def _overruled(told: tuple[OwnerLink, ...], better: tuple[OwnerLink, ...]) -> tuple[OwnerLink, ...]:
    found = {(link.namespace, link.name): link for link in (*told, *better)}
    return tuple(found.values())


async def from_metrics(prometheus: Prometheus, matchers: str, start: float, end: float) -> OwnerLinks:
    """From kube-state-metrics; empty when Prometheus does not scrape it."""
    # Pods without an owner are wanted as well: their names may have the stem of somebody else's.
    controllers = f'{{owner_is_controller!="false"{matchers}}}'
    pods = await prometheus.series(f"kube_pod_owner{controllers}", start, end)
    sets = await prometheus.series(f"kube_replicaset_owner{controllers}", start, end)
    return OwnerLinks(tuple(_owner_links(pods, "pod")), tuple(_owner_links(sets, "replicaset")))


def _owner_links(series: list[dict[str, str]], label: str) -> set[OwnerLink]:
    """A set: two replicas of kube-state-metrics say the same thing twice."""
    wanted = ("namespace", label, "owner_kind", "owner_name")
    return {OwnerLink(*(_label(labels, key) for key in wanted)) for labels in _believed(series)}


def _believed(series: list[dict[str, str]]) -> list[dict[str, str]]:
    """Any pod that is scraped may say anything about any namespace; what it says is then moved to exported_*.

    So is everything that kube-state-metrics says where it is scraped without honor_labels: believed only where nobody
    else says such things, for then there is one source and it is the administrator's.
    """
    plain = [labels for labels in series if "exported_namespace" not in labels]
    sources = {(labels.get("job"), labels.get("namespace")) for labels in series}
    return plain if plain else series if len(sources) == 1 else []


def _label(labels: dict[str, str], key: str) -> str:
    """A scrape without honor_labels moves the object's namespace and pod to exported_*; "<none>": no owner."""
    return (labels.get(f"exported_{key}") or labels.get(key, "")).replace("<none>", "")


async def from_api(kube: Kube, namespaces: tuple[str, ...]) -> OwnerLinks:
    """From the objects that exist: pods of today, and the ReplicaSets that Deployments keep of their past."""
    pods: list[OwnerLink] = []
    replica_sets: list[OwnerLink] = []
    stems: list[OwnerLink] = []
    for namespace in namespaces or ("",):
        pods += [_controlled(pod) for pod in (await kube.list(WirePod, PODS, namespace)).items]
        for resource in (REPLICA_SETS, STATEFUL_SETS, DAEMON_SETS):
            for item in (await kube.list(WireWorkload, resource, namespace)).items:
                meta = item.metadata
                stems.append(OwnerLink(meta.namespace, meta.name, resource.kind, meta.name))
                replica_sets += [_controlled(item)] if resource is REPLICA_SETS else []
    return OwnerLinks(tuple(pods), tuple(replica_sets), tuple(stems))


def _controlled(item: WirePod | WireWorkload) -> OwnerLink:
    meta, owner = item.metadata, item.metadata.controller
    return OwnerLink(meta.namespace, meta.name, owner.kind if owner else "", owner.name if owner else "")


async def find_members(
    prometheus: Prometheus, kube: Kube | None, namespaces: tuple[str, ...], matchers: str, start: float, end: float
) -> list[Member]:
    """Of what exists by the API server's owner references; of what is gone by kube-state-metrics, where it is."""
    told = await from_metrics(prometheus, matchers, start, end)
    if kube is not None:
        return gather(*told.overruled_by(await from_api(kube, namespaces)))
    if not told.pods:
        raise MetricsUnavailable(
            f"{prometheus.access.url} has no kube_pod_owner in this time: let it scrape kube-state-metrics, "
            "or give access to the cluster, so that pods can be told apart by their owners"
        )
    return gather(*told)
