"""The parts of Kubernetes objects that we read; the rest is never decoded (managedFields: only by `managed_fields`).

Every field has a default, so an object that lacks one decodes too; gc=False: none of them can be in a cycle.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Protocol

import msgspec


class Partial(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The base of all: immutable, camelCase on the wire."""


class OwnerReference(Partial, frozen=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class Meta(Partial, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    owner_references: tuple[OwnerReference, ...] = ()

    @property
    def controller(self) -> OwnerReference | None:
        return next((owner for owner in self.owner_references if owner.controller), None)


class HasMeta(Protocol):
    """Anything with metadata, which is every object of Kubernetes."""

    @property
    def metadata(self) -> Meta: ...


class Condition(Partial, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None
    observed_generation: int = 0


class Resources(Partial, frozen=True):
    requests: dict[str, str | int | float] | None = None
    limits: dict[str, str | int | float] | None = None


class Container(Partial, frozen=True):
    name: str = ""
    image: str = ""
    resources: Resources = Resources()
    restart_policy: str = ""  # "Always" on an init container makes it a sidecar


class PodSpec(Partial, frozen=True):
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    node_name: str = ""
    resources: Resources | None = None


class Terminated(Partial, frozen=True):
    reason: str = ""
    exit_code: int = 0
    finished_at: datetime | None = None


class ContainerState(Partial, frozen=True):
    terminated: Terminated | None = None


class ContainerStatus(Partial, frozen=True):
    name: str = ""
    ready: bool = False
    restart_count: int = 0
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()
    resources: Resources | None = None


class PodStatus(Partial, frozen=True):
    phase: str = ""
    reason: str = ""
    start_time: datetime | None = None
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    qos_class: str = ""
    resize: str = ""


class Pod(Partial, frozen=True):
    metadata: Meta = Meta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class LabelRequirement(Partial, frozen=True):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class Selector(Partial, frozen=True):
    match_labels: dict[str, str] | None = None
    match_expressions: tuple[LabelRequirement, ...] = ()


class Toleration(Partial, frozen=True):
    key: str = ""  # "": every taint
    operator: str = ""
    value: str = ""
    effect: str = ""  # "": every effect


class TemplateSpec(PodSpec, frozen=True):
    """A template also says where its pods may run; of living pods that is never asked."""

    node_selector: dict[str, str] | None = None
    tolerations: tuple[Toleration, ...] = ()


class PodTemplate(Partial, frozen=True):
    spec: TemplateSpec = TemplateSpec()


class RollingUpdate(Partial, frozen=True):
    max_unavailable: int | str | None = None


class Strategy(Partial, frozen=True):
    type: str = ""
    rolling_update: RollingUpdate | None = None


class WorkloadSpec(Partial, frozen=True):
    replicas: int | None = None
    selector: Selector = Selector()
    template: PodTemplate = PodTemplate()
    strategy: Strategy = Strategy()  # of a Deployment


class WorkloadStatus(Partial, frozen=True):
    replicas: int = 0
    ready_replicas: int = 0
    updated_replicas: int = 0
    observed_generation: int = 0
    conditions: tuple[Condition, ...] = ()


class Workload(Partial, frozen=True):
    """A Deployment, StatefulSet, ReplicaSet, DaemonSet, or anything of their shape."""

    metadata: Meta = Meta()
    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()


class ScaleSpec(Partial, frozen=True):
    replicas: int = 0


class ScaleStatus(Partial, frozen=True):
    replicas: int = 0
    selector: str = ""


class Scale(Partial, frozen=True):
    metadata: Meta = Meta()
    spec: ScaleSpec = ScaleSpec()
    status: ScaleStatus = ScaleStatus()


class Custom(Partial, frozen=True):
    """Our kinds, HorizontalPodAutoscalers, VPAs: spec and status stay plain data, for `kinds` to judge."""

    api_version: str = ""
    kind: str = ""
    metadata: Meta = Meta()
    spec: dict[str, Any] = {}
    status: dict[str, Any] = {}


class LeaseSpec(Partial, frozen=True):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: datetime | None = None
    renew_time: datetime | None = None
    lease_transitions: int | None = None


class Lease(Partial, frozen=True):
    metadata: Meta = Meta()
    spec: LeaseSpec = LeaseSpec()


class NodeStatus(Partial, frozen=True):
    allocatable: dict[str, str | int | float] | None = None
    conditions: tuple[Condition, ...] = ()


class Taint(Partial, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(Partial, frozen=True):
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class Node(Partial, frozen=True):
    metadata: Meta = Meta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class Namespace(Partial, frozen=True):
    metadata: Meta = Meta()


class ConfigMap(Partial, frozen=True):
    metadata: Meta = Meta()
    data: dict[str, str] = {}


class ServicePort(Partial, frozen=True):
    name: str = ""
    port: int = 0


class ServiceSpec(Partial, frozen=True):
    ports: tuple[ServicePort, ...] = ()


class Service(Partial, frozen=True):
    metadata: Meta = Meta()
    spec: ServiceSpec = ServiceSpec()


class ContainerUsage(Partial, frozen=True):
    name: str = ""
    usage: dict[str, str] = {}


class PodMetrics(Partial, frozen=True):
    """metrics.k8s.io: the usage of one pod over `window`, ending at `timestamp`."""

    metadata: Meta = Meta()
    timestamp: datetime | None = None
    window: str = ""
    containers: tuple[ContainerUsage, ...] = ()


class DescribedObject(Partial, frozen=True):
    kind: str = ""
    namespace: str = ""
    name: str = ""


class CustomMetric(Partial, frozen=True):
    """custom.metrics.k8s.io: one value of one object."""

    described_object: DescribedObject = DescribedObject()
    timestamp: datetime | None = None
    value: str = ""


class ExternalMetric(Partial, frozen=True):
    """external.metrics.k8s.io: one value of something outside."""

    metric_name: str = ""
    metric_labels: dict[str, str] | None = None
    timestamp: datetime | None = None
    value: str = ""
