"""Where objects live on the API server: group, version, plural (known or discovered) and their paths."""

from __future__ import annotations

import msgspec


class Resource(msgspec.Struct, frozen=True):
    """One collection of the API, such as apps/v1 deployments."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    scalable: bool = False

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def root(self) -> str:
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        parts = [self.root]
        if self.namespaced and namespace:
            parts.append(f"namespaces/{namespace}")
        parts += [part for part in (self.plural, name, subresource) if part]
        return "/".join(parts)


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
    listed = msgspec.json.decode(body, type=DiscoveryList).resources
    names = {found.name for found in listed}
    return {
        found.kind: Resource(group, version, found.name, found.kind, found.namespaced, f"{found.name}/scale" in names)
        for found in listed
        if "/" not in found.name
    }
