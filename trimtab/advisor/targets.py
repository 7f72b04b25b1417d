"""targets: the workloads to advise on, as the cluster (or a manifest) describes them; pods by owner, never by name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trimtab.core.model import Pod
from trimtab.core.requests import counts
from trimtab.kinds.annotations import MANAGED_BY
from trimtab.policy import Size
from trimtab.wire.from_kubernetes import (
    FINISHED,
    killed_at,
    owner_uid,
    pod_from_wire,
    pod_level,
    size_of,
    template_fact,
    template_requests,
)
from trimtab.wire.kube import Kube
from trimtab.wire.objects import Custom, WirePod, WireWorkload
from trimtab.wire.resources import DAEMON_SETS, DEPLOYMENTS, HPAS, PODS, REPLICA_SETS, STATEFUL_SETS, Resource

USUAL = (DEPLOYMENTS, STATEFUL_SETS, DAEMON_SETS)
OOM_S = 604800.0  # a kill counts for a week


@dataclass(frozen=True, eq=False)
class AdvisedTarget:
    """One workload; `row` is its name in the history, `requests` are those of its pod template, sidecars too."""

    api_version: str
    kind: str
    namespace: str
    name: str
    replicas: int
    requests: dict[str, Size]
    pods: tuple[Pod, ...]
    sidecars: tuple[str, ...] = ()  # init containers that run as long as the pod
    pod_level: Size = field(default_factory=Size)  # what the template requests for the pod as a whole
    template: Pod | None = None  # a pod of the template
    row: str = ""
    uid: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    matched: dict[str, str] = field(default_factory=dict)  # the labels that selectors are compared with
    annotations: dict[str, str] = field(default_factory=dict)
    oom_bytes: dict[str, float] = field(default_factory=dict)
    metrics: tuple[dict[str, Any], ...] = ()
    behavior: dict[str, Any] | None = None
    hpa: dict[str, Any] | None = None  # the spec of its own HPA
    hpa_name: str = ""
    scaled_by: str = ""  # an object of our kinds, such as Autoscaler/web

    def __post_init__(self) -> None:
        object.__setattr__(self, "row", self.row or self.key)

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.kind}/{self.name}"


async def read_targets(
    kube: Kube, namespaces: Sequence[str], at: float, *, resources: Iterable[Resource] = USUAL, labels: str = ""
) -> list[AdvisedTarget]:
    """Every workload of these kinds ("" is every namespace), each once, ReplicaSets of Deployments left out."""
    found: list[AdvisedTarget] = []
    for namespace in namespaces:
        pods = (await kube.list(WirePod, PODS, namespace)).items
        sets = (await kube.list(WireWorkload, REPLICA_SETS, namespace)).items
        hpas = (await kube.list(Custom, HPAS, namespace)).items
        members = by_owner(pods, sets)
        for resource in resources:
            for item in (await kube.list(WireWorkload, resource, namespace, labels=labels)).items:
                if resource != REPLICA_SETS or item.metadata.controller is None:
                    own = members.get((item.metadata.namespace, item.metadata.uid), [])
                    found.append(target_of(resource, item, own, hpas, at))
    return found


def by_owner(pods: Iterable[WirePod], sets: Iterable[WireWorkload]) -> dict[tuple[str, str], list[WirePod]]:
    """Unfinished pods by namespace and uid of their controller, and through a ReplicaSet by that of its controller."""
    above = {
        (replica_set.metadata.namespace, replica_set.metadata.uid): owner_uid(replica_set.metadata)
        or replica_set.metadata.uid
        for replica_set in sets
    }
    members: dict[tuple[str, str], list[WirePod]] = defaultdict(list)
    for pod in pods:
        namespace, owner = pod.metadata.namespace, owner_uid(pod.metadata)
        if owner and pod.status.phase not in FINISHED:
            members[namespace, above.get((namespace, owner), owner)].append(pod)
    return members


def target_of(
    resource: Resource, item: WireWorkload, pods: Sequence[WirePod], hpas: Sequence[Custom], at: float
) -> AdvisedTarget:
    meta, spec = item.metadata, item.spec
    hpa = own_hpa(hpas, meta.namespace, resource.kind, meta.name)
    metrics, behavior = inherited(hpa)
    containers = [container for container in template_requests(spec.template.spec) if counts(container)]
    return AdvisedTarget(
        api_version=resource.api_version,
        kind=resource.kind,
        namespace=meta.namespace,
        name=meta.name,
        replicas=_replicas(resource, spec.replicas, len(pods)),
        requests={container.name: container.request for container in containers},
        sidecars=tuple(container.name for container in containers if container.init),
        pod_level=pod_level(spec.template.spec),
        template=template_fact(meta.name, spec.template.spec),
        pods=tuple(pod_from_wire(pod) for pod in pods),
        uid=meta.uid,
        labels=meta.labels or {},
        matched=(spec.selector.match_labels or {}) | (meta.labels or {}),
        annotations=meta.annotations or {},
        oom_bytes=oom_bytes(pods, at - OOM_S),
        metrics=metrics,
        behavior=behavior,
        hpa=hpa.spec if hpa else None,
        hpa_name=hpa.metadata.name if hpa else "",
    )


def _replicas(resource: Resource, written: int | None, pods: int) -> int:
    """A DaemonSet writes none: it has as many as there are nodes for it."""
    if resource == DAEMON_SETS:
        return pods
    return 1 if written is None else written


def own_hpa(hpas: Iterable[Custom], namespace: str, kind: str, name: str) -> Custom | None:
    """The workload's own HPA, not one that an EffectiveHPA keeps for itself."""
    for hpa in hpas:
        ref: Mapping[str, Any] = hpa.spec.get("scaleTargetRef") or {}
        ours = (hpa.metadata.labels or {}).get(MANAGED_BY) == "effective-hpa-controller"
        if not ours and (hpa.metadata.namespace, ref.get("kind"), ref.get("name")) == (namespace, kind, name):
            return hpa
    return None


def inherited(hpa: Custom | None) -> tuple[tuple[dict[str, Any], ...], dict[str, Any] | None]:
    """What Crane takes over from the workload's own HPA: every metric but CPU utilisation, and the behaviour."""
    if hpa is None:
        return (), None
    metrics = tuple(metric for metric in hpa.spec.get("metrics") or [] if not is_cpu_utilization(metric))
    return metrics, hpa.spec.get("behavior")


def is_cpu_utilization(metric: Mapping[str, Any]) -> bool:
    """The one that the recommendation replaces; a CPU target in cores is inherited like any other metric."""
    resource = metric.get("resource") or {}
    kind = (resource.get("target") or {}).get("type", "Utilization")
    return metric.get("type") == "Resource" and resource.get("name") == "cpu" and kind == "Utilization"


def oom_bytes(pods: Iterable[WirePod], since: float) -> dict[str, float]:
    """The memory each container had when it was last killed for it: its limit, else its request."""
    found: dict[str, float] = {}
    for pod in pods:
        for container in pod.spec.containers:
            at = killed_at(pod, container.name)
            had = size_of(container.resources.limits).memory_bytes or size_of(container.resources.requests).memory_bytes
            if at is not None and at > since and had:
                found[container.name] = max(had, found.get(container.name, 0.0))
    return found
