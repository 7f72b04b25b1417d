"""Where objects live on the API server: group, version, plural (known or discovered) and their paths.

Paths to the API server are made here and nowhere else: every part of one is a name, checked and encoded.

Tenants may name any kind. `ServedKinds` asks which kinds the cluster serves, and believes the answer for a while. Its
cost depends on what the cluster has, not on what tenants name: the groups are one list, and only groups in that list
are asked for their kinds.

A workload of a kind that is not followed is read by name in every tick. `MissingTargets` asks for those that are not
there the less often the more of them a namespace names, so that they cost a few requests per tick, however many.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import lru_cache
from http import HTTPStatus
from itertools import islice
from typing import NamedTuple
from urllib.parse import quote

import msgspec

from trimtab.errors import ClusterUnavailable, InvalidInput, Refused
from trimtab.wire.clock import Clock
from trimtab.wire.decode import decode

UNQUOTED = ":*"  # NAME:PORT of a proxied service; * for all objects of a metric


@lru_cache(maxsize=10_000)  # the same few paths are asked for in every tick
def path_of(*names: str) -> str:
    """A path of these names; refused is what the API server refuses in paths (IsValidPathSegmentName)."""
    for name in names:
        if name in ("", ".", "..") or "/" in name or "%" in name or not name.isprintable():
            raise InvalidInput("name", name, "a name in a path has no / and no %, and is neither empty nor . nor ..")
    return "/" + "/".join(quote(name, safe=UNQUOTED) for name in names)


def root_of(api_version: str) -> str:
    """Where a group version is served."""
    group, slash, version = api_version.partition("/")
    return path_of("apis", group, version) if slash else path_of("api", api_version)


def custom_metric_path(version: str, namespace: str, plural: str, name: str, metric: str) -> str:
    """A metric of one object of a namespace, or of all of a kind (*)."""
    return _metrics("custom", version, namespace) + path_of(plural, name, metric)


def namespace_metric_path(version: str, namespace: str, metric: str) -> str:
    """A metric of the namespace itself."""
    return _metrics("custom", version, namespace) + path_of("metrics", metric)


def external_metric_path(namespace: str, metric: str) -> str:
    return _metrics("external", "v1beta1", namespace) + path_of(metric)


def _metrics(family: str, version: str, namespace: str) -> str:
    return path_of("apis", f"{family}.metrics.k8s.io", version, "namespaces", namespace)


class Resource(msgspec.Struct, frozen=True):
    """One collection of the API, such as apps/v1 deployments."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    scalable: bool = False  # in a namespace: whose objects speak of something scale what is in theirs
    has_status: bool = True  # its status is written apart, by whoever has that right

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def root(self) -> str:
        return root_of(self.api_version)

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The collection, one object of it, or a part of that; without a namespace the collection of all of them."""
        within = ("namespaces", namespace) if self.namespaced and namespace else ()
        named = (name,) if name else ()
        below = (subresource,) if subresource else ()
        return self.root + path_of(*within, self.plural, *named, *below)


PODS = Resource("", "v1", "pods", "Pod")
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
SERVICES = Resource("", "v1", "services", "Service")
SECRETS = Resource("", "v1", "secrets", "Secret")
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
EVENTS = Resource("", "v1", "events", "Event")
RESOURCE_QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota")
LIMIT_RANGES = Resource("", "v1", "limitranges", "LimitRange")
DISRUPTION_BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment", scalable=True)
STATEFUL_SETS = Resource("apps", "v1", "statefulsets", "StatefulSet", scalable=True)
REPLICA_SETS = Resource("apps", "v1", "replicasets", "ReplicaSet", scalable=True)
DAEMON_SETS = Resource("apps", "v1", "daemonsets", "DaemonSet")
HPAS = Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
SELF_REVIEWS = Resource("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False)
POD_METRICS = Resource("metrics.k8s.io", "v1beta1", "pods", "PodMetrics")

KNOWN = {
    (resource.api_version, resource.kind): resource
    for resource in (
        PODS,
        NODES,
        NAMESPACES,
        SERVICES,
        CONFIG_MAPS,
        EVENTS,
        DEPLOYMENTS,
        STATEFUL_SETS,
        REPLICA_SETS,
        DAEMON_SETS,
        HPAS,
        LEASES,
    )
}


class Discovered(msgspec.Struct, frozen=True):
    name: str  # "deployments", or "deployments/scale" for a subresource
    kind: str = ""
    namespaced: bool = True


class DiscoveryList(msgspec.Struct, frozen=True):
    resources: tuple[Discovered, ...] = ()


def read_discovery(api_version: str, body: bytes) -> dict[str, Resource]:
    """The kinds of one group version, from the API server's own list."""
    group, _, version = api_version.rpartition("/")
    listed: tuple[Discovered, ...] = decode(body, DiscoveryList).resources
    names = {found.name for found in listed}
    return {
        found.kind: Resource(
            group,
            version,
            found.name,
            found.kind,
            found.namespaced,
            found.namespaced and f"{found.name}/scale" in names,
            f"{found.name}/status" in names,
        )
        for found in listed
        if "/" not in found.name
    }


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


APART_S = 0.3  # questions of one namespace about what is missing: fifty in a tick of 15 s, one for each of fifty
GONE_S = 600.0  # so long after its time nobody has asked for it: its object is gone

Name = tuple[str, str, str]  # api version, kind and name


class Miss(NamedTuple):
    said: str
    again_at: float


class MissingTargets:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._missed: dict[str, dict[Name, Miss]] = {}  # by namespace, in the order in which they were asked for

    def check(self, namespace: str, name: Name) -> None:
        """Refused as the last time, until it may be asked for again."""
        miss = self._missed.get(namespace, {}).get(name)
        if miss and self._clock.since_boot() < miss.again_at:
            raise Refused(miss.said, HTTPStatus.NOT_FOUND)

    def note(self, namespace: str, name: Name, said: str) -> None:
        now, missed = self._clock.since_boot(), self._missed.setdefault(namespace, {})
        missed.pop(name, None)
        for oldest in [*islice(missed, 2)]:  # two for the one that comes: what nobody asks for any more gets fewer
            if missed[oldest].again_at < now - GONE_S:
                del missed[oldest]
        missed[name] = Miss(said, now + APART_S * (len(missed) + 1))

    def found(self, namespace: str, name: Name) -> None:
        if missed := self._missed.get(namespace):
            missed.pop(name, None)
            if not missed:
                del self._missed[namespace]
