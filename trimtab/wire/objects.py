"""The parts of Kubernetes objects that we read; the rest is never decoded (managedFields: only by `managed_fields`).

Every field has a default, so an object that lacks one decodes too; gc=False: none of them can be in a cycle.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Protocol

import msgspec


class WireRecord(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The base of all: immutable, camelCase on the wire."""


class OwnerReference(WireRecord, frozen=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class ObjectMeta(WireRecord, frozen=True):
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


class FieldOwner(WireRecord, frozen=True):
    """Of managedFields only who wrote, and when: that is how a pod with a bridge of ours is known."""

    manager: str = ""
    time: str = ""  # RFC 3339, so texts compare as times do


class PodMeta(ObjectMeta, frozen=True):
    managed_fields: tuple[FieldOwner, ...] = ()


class HasMeta(Protocol):
    """Anything with metadata, which is every object of Kubernetes."""

    @property
    def metadata(self) -> ObjectMeta: ...


class WireCondition(WireRecord, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None
    observed_generation: int = 0


class Resources(WireRecord, frozen=True):
    requests: dict[str, str | int | float] | None = None
    limits: dict[str, str | int | float] | None = None


class ResizePolicy(WireRecord, frozen=True):
    resource_name: str = ""
    restart_policy: str = ""


class Container(WireRecord, frozen=True):
    name: str = ""
    image: str = ""
    resources: Resources = Resources()
    resize_policy: tuple[ResizePolicy, ...] = ()
    restart_policy: str = ""  # "Always" on an init container makes it a sidecar


class PodSpec(WireRecord, frozen=True):
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    node_name: str = ""
    resources: Resources | None = None


class Terminated(WireRecord, frozen=True):
    reason: str = ""
    exit_code: int = 0
    finished_at: datetime | None = None


class ContainerState(WireRecord, frozen=True):
    terminated: Terminated | None = None


class ContainerStatus(WireRecord, frozen=True):
    name: str = ""
    ready: bool = False
    restart_count: int = 0
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()
    resources: Resources | None = None


class PodStatus(WireRecord, frozen=True):
    phase: str = ""
    reason: str = ""
    start_time: datetime | None = None
    conditions: tuple[WireCondition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    qos_class: str = ""
    resize: str = ""


class WirePod(WireRecord, frozen=True):
    metadata: PodMeta = PodMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class LabelRequirement(WireRecord, frozen=True):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(WireRecord, frozen=True):
    match_labels: dict[str, str] | None = None
    match_expressions: tuple[LabelRequirement, ...] = ()


class Toleration(WireRecord, frozen=True):
    key: str = ""  # "": every taint
    operator: str = ""
    value: str = ""
    effect: str = ""  # "": every effect


class TemplateSpec(PodSpec, frozen=True):
    """A template also says where its pods may run; of living pods that is never asked."""

    node_selector: dict[str, str] | None = None
    tolerations: tuple[Toleration, ...] = ()


class PodTemplate(WireRecord, frozen=True):
    spec: TemplateSpec = TemplateSpec()


class RollingUpdate(WireRecord, frozen=True):
    max_unavailable: int | str | None = None


class Strategy(WireRecord, frozen=True):
    type: str = ""
    rolling_update: RollingUpdate | None = None


class WorkloadSpec(WireRecord, frozen=True):
    replicas: int | None = None
    selector: LabelSelector = LabelSelector()
    template: PodTemplate = PodTemplate()
    strategy: Strategy = Strategy()  # of a Deployment


class WorkloadStatus(WireRecord, frozen=True):
    replicas: int = 0
    ready_replicas: int = 0
    updated_replicas: int = 0
    observed_generation: int = 0
    conditions: tuple[WireCondition, ...] = ()


class WireWorkload(WireRecord, frozen=True):
    """A Deployment, StatefulSet, ReplicaSet, DaemonSet, or anything of their shape."""

    metadata: ObjectMeta = ObjectMeta()
    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()


class ScaleSpec(WireRecord, frozen=True):
    replicas: int = 0


class ScaleStatus(WireRecord, frozen=True):
    replicas: int = 0
    selector: str = ""


class Scale(WireRecord, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ScaleSpec = ScaleSpec()
    status: ScaleStatus = ScaleStatus()


class Custom(WireRecord, frozen=True):
    """Our kinds, HorizontalPodAutoscalers, VPAs: spec and status stay plain data, for `kinds` to judge."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: dict[str, Any] = {}
    status: dict[str, Any] = {}


class LeaseSpec(WireRecord, frozen=True):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: datetime | None = None
    renew_time: datetime | None = None
    lease_transitions: int | None = None


class Lease(WireRecord, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: LeaseSpec = LeaseSpec()

    @property
    def made_at(self) -> float:
        made = self.metadata.creation_timestamp
        return made.timestamp() if made else 0.0


class NodeStatus(WireRecord, frozen=True):
    allocatable: dict[str, str | int | float] | None = None
    conditions: tuple[WireCondition, ...] = ()


class Taint(WireRecord, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(WireRecord, frozen=True):
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class Node(WireRecord, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class Namespace(WireRecord, frozen=True):
    metadata: ObjectMeta = ObjectMeta()


class PartialObject(WireRecord, frozen=True):
    """Any object without what is in it."""

    metadata: ObjectMeta = ObjectMeta()


class ConfigMap(WireRecord, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    data: dict[str, str] = {}


class ServicePort(WireRecord, frozen=True):
    name: str = ""
    port: int = 0


class ServiceSpec(WireRecord, frozen=True):
    ports: tuple[ServicePort, ...] = ()


class Service(WireRecord, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ServiceSpec = ServiceSpec()
