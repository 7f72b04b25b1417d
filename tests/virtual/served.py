"""Which collections the API server has, and which parts of their objects have a door of their own."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from trimtab.kinds.crd import definitions
from trimtab.wire.resources import (
    CONFIG_MAPS,
    DAEMON_SETS,
    DEPLOYMENTS,
    DISRUPTION_BUDGETS,
    EVENTS,
    HPAS,
    LEASES,
    LIMIT_RANGES,
    NAMESPACES,
    NODES,
    PODS,
    REPLICA_SETS,
    RESOURCE_QUOTAS,
    SERVICES,
    STATEFUL_SETS,
    Resource,
)


class Served(NamedTuple):
    resource: Resource
    parts: frozenset[str] = frozenset()  # scale, status, resize


STATUS, WORKLOAD = frozenset({"status"}), frozenset({"scale", "status"})
BUILT_IN = (
    Served(PODS, frozenset({"status", "resize"})),
    *(Served(resource, WORKLOAD) for resource in (DEPLOYMENTS, STATEFUL_SETS, REPLICA_SETS)),
    *(Served(resource, STATUS) for resource in (DAEMON_SETS, HPAS, NODES, NAMESPACES, DISRUPTION_BUDGETS)),
    *(Served(resource) for resource in (CONFIG_MAPS, EVENTS, LEASES, LIMIT_RANGES, RESOURCE_QUOTAS, SERVICES)),
)


OTHERS = (  # autoscalers of others, which trimtab looks for
    Served(Resource("autoscaling.k8s.io", "v1", "verticalpodautoscalers", "VerticalPodAutoscaler"), STATUS),
    Served(Resource("keda.sh", "v1alpha1", "scaledobjects", "ScaledObject"), STATUS),
    Served(Resource("datadoghq.com", "v1alpha1", "watermarkpodautoscalers", "WatermarkPodAutoscaler"), STATUS),
    Served(
        Resource(
            "jamiethompson.me",
            "v1alpha1",
            "predictivehorizontalpodautoscalers",
            "PredictiveHorizontalPodAutoscaler",
        ),
        STATUS,
    ),
)


@cache
def custom() -> tuple[Served, ...]:
    """The kinds of trimtab, as their CRDs define them."""
    return tuple(_of_crd(definition["spec"]) for definition in definitions())


def _of_crd(spec: dict) -> Served:  # type: ignore[type-arg]
    (version,) = spec["versions"]
    names, parts = spec["names"], frozenset(version.get("subresources", {}))
    namespaced = spec["scope"] == "Namespaced"
    resource = Resource(
        spec["group"], version["name"], names["plural"], names["kind"], namespaced, scalable="scale" in parts
    )
    return Served(resource, parts)
