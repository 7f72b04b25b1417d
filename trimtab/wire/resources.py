"""Where objects live on the API server: group, version, plural (known or discovered) and their paths.

Paths to the API server are made here and nowhere else: every part of one is a name, checked and encoded.
"""

from __future__ import annotations

from functools import lru_cache
from urllib.parse import quote

import msgspec

from trimtab.errors import InvalidInput
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
