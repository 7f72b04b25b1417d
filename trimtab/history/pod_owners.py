"""Which pods belonged to which workload: by owner reference, never by a name that only looks alike.

A controller names its pods NAME-SUFFIX without a dash in the suffix, so the stem of a pod's name is its owner's
name. That is used only where the owner references confirm it for every pod; other workloads' pods are listed by
name. Sources: the API server for what still exists, kube-state-metrics for pods that are gone.

Anybody whose pod is scraped can write series called kube_pod_owner. Only series that the matchers of the configured
kube-state-metrics choose are read, and of those only what are names in the namespaces that were asked for.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from trimtab.errors import MetricsUnavailable
from trimtab.kinds.names import DNS_NAME, KIND, LABEL
from trimtab.promql import Matcher, Matchers, among, parse_matchers, selector
from trimtab.wire.kube import Kube
from trimtab.wire.objects import WirePod, WireWorkload
from trimtab.wire.prometheus import Prometheus
from trimtab.wire.resources import DAEMON_SETS, PODS, REPLICA_SETS, STATEFUL_SETS

KUBE_STATE_METRICS = parse_matchers('job="kube-state-metrics"')
LONGEST_NAME = 253
NOT_SCALED = ("Job", "Node", "")  # work that ends, pods that a node runs by itself, pods without an owner


class OwnerLink(NamedTuple):
    """One owner reference: a pod or a ReplicaSet, and its controller (no kind: it has none)."""

    namespace: str
    name: str
    owner_kind: str
    owner_name: str

    @property
    def is_named(self) -> bool:
        """Every part is a name as Kubernetes has them; the owner may be missing."""
        owned = not (self.owner_kind or self.owner_name)
        return (
            _is_label(self.namespace)
            and _is_name(self.name)
            and (owned or (re.fullmatch(KIND, self.owner_kind) is not None and _is_name(self.owner_name)))
        )


def _is_label(text: str) -> bool:
    return re.fullmatch(LABEL, text) is not None


def _is_name(text: str) -> bool:
    return len(text) <= LONGEST_NAME and re.fullmatch(DNS_NAME, text) is not None


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


class SeriesMatchers(NamedTuple):
    """`usage` chooses this cluster's series; `owners` those of kube-state-metrics, and none of them if it is empty."""

    usage: Matchers = ()
    owners: Matchers = KUBE_STATE_METRICS

    def of_owners(self, namespaces: tuple[str, ...]) -> Matchers:
        """What is said of a label for kube-state-metrics counts instead of what is said of it for usage."""
        own = {matcher.label for matcher in self.owners}
        # Pods without an owner are wanted as well: their names may have the stem of somebody else's.
        controllers = Matcher("owner_is_controller", "!=", "false")
        usage = [matcher for matcher in self.usage if matcher.label not in own]
        return (controllers, *self.owners, *usage, *([among("namespace", namespaces)] if namespaces else []))


EVERYTHING = SeriesMatchers()


async def from_metrics(
    prometheus: Prometheus, matchers: SeriesMatchers, namespaces: tuple[str, ...], start: float, end: float
) -> OwnerLinks:
    """From kube-state-metrics; empty when Prometheus does not scrape it, or nobody says which one it is."""
    if not matchers.owners:
        return OwnerLinks()
    chosen = matchers.of_owners(namespaces)
    pods = await prometheus.series(selector("kube_pod_owner", chosen), start, end)
    sets = await prometheus.series(selector("kube_replicaset_owner", chosen), start, end)
    links = (_owner_links(pods, "pod", namespaces), _owner_links(sets, "replicaset", namespaces))
    return OwnerLinks(*(tuple(found) for found in links))


def _owner_links(series: list[dict[str, str]], label: str, namespaces: tuple[str, ...] = ()) -> set[OwnerLink]:
    """A set: two replicas of kube-state-metrics say the same thing twice."""
    wanted = ("namespace", label, "owner_kind", "owner_name")
    links = {OwnerLink(*(_label(labels, key) for key in wanted)) for labels in _believed(series)}
    return {link for link in links if link.is_named and (not namespaces or link.namespace in namespaces)}


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
    prometheus: Prometheus,
    kube: Kube | None,
    namespaces: tuple[str, ...],
    matchers: SeriesMatchers,
    start: float,
    end: float,
) -> list[Member]:
    """Of what exists by the API server's owner references; of what is gone by kube-state-metrics, where it is."""
    told = await from_metrics(prometheus, matchers, namespaces, start, end)
    if kube is not None:
        return gather(*told.overruled_by(await from_api(kube, namespaces)))
    if not told.pods:
        which = ",".join(map(str, matchers.owners)) or "none"
        raise MetricsUnavailable(
            f"{prometheus.access.url} has no kube_pod_owner in this time: let it scrape kube-state-metrics and name it "
            f"(--kube-state-metrics, now {which}), or give access to the cluster, which knows the owners of pods"
        )
    return gather(*told)
