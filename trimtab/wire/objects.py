"""The parts of Kubernetes objects that we read; the rest is never decoded (managedFields: only by `ManagedMeta`).

Every field has a default, so an object that lacks one decodes too; gc=False: none of them can be in a cycle. What is
followed for as long as the operator lives keeps no more than is read of it, whatever its tenant has put there.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Protocol, TypeVar

import msgspec

from trimtab.kinds.annotations import CRANE_QUERY, INITIAL_EVENTS_END, KEDA_PAUSED, OURS, PREDICTIVE

READ = (OURS, CRANE_QUERY, PREDICTIVE, KEDA_PAUSED, INITIAL_EVENTS_END)  # how annotations begin that are read
T = TypeVar("T")
# The API server bounds a name and a label, but not how many there are: of an object with more nothing is kept.
Few = Annotated[tuple[T, ...], msgspec.Meta(max_length=200)]
FewTexts = Annotated[dict[str, str], msgspec.Meta(max_length=500)]
Amounts = Annotated[dict[str, str | int | float], msgspec.Meta(max_length=100)]
IMAGE_CHARACTERS = 2000
ANNOTATION_CHARACTERS = 16 * 2**10  # of all those of an object that are read
SPEC_BYTES, VALUE_BYTES = 64 * 2**10, 64  # of a spec as JSON; what each value in it takes besides


class WireRecord(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The base of all: immutable, camelCase on the wire."""


class ReadAnnotations(dict[str, str]):
    """Of an object's annotations those that the operator reads."""

    @classmethod
    def kept(cls, plain: dict[str, Any]) -> ReadAnnotations:
        read = {key: value for key, value in plain.items() if key.startswith(READ)}
        if read and len("".join([*read, *read.values()])) > ANNOTATION_CHARACTERS:
            raise ValueError(f"its annotations have more than {ANNOTATION_CHARACTERS:,} characters")
        return cls(read)


class ShortMapping(dict[str, Any]):
    """A spec or status of any shape that is no longer than any of use."""

    @classmethod
    def kept(cls, plain: dict[str, Any]) -> ShortMapping:
        text = msgspec.json.encode(plain)
        values = text.count(b",") + text.count(b"[") + text.count(b"{")
        if len(text) + VALUE_BYTES * values > SPEC_BYTES:
            raise ValueError(f"it is longer than {SPEC_BYTES:,} bytes")
        return cls(plain)


class ScalerSpec(ShortMapping):
    """Of another autoscaler what it scales, by what, and whether it does."""

    FIELDS = ("scaleTargetRef", "targetRef", "updatePolicy", "dryRun", "metrics")

    @classmethod
    def kept(cls, plain: dict[str, Any]) -> ScalerSpec:
        return cls(super().kept({field: plain[field] for field in cls.FIELDS if field in plain}))


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
    labels: FewTexts | None = None
    annotations: dict[str, str] | None = None
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    owner_references: Few[OwnerReference] = ()

    @property
    def notes(self) -> Mapping[str, str]:
        return self.annotations or {}

    @property
    def controller(self) -> OwnerReference | None:
        return next((owner for owner in self.owner_references if owner.controller), None)


class ReadMeta(ObjectMeta, frozen=True):
    annotations: ReadAnnotations | None = None


class FieldOwner(WireRecord, frozen=True):
    """Of managedFields only who wrote, and when: that is how a pod with a bridge of ours is known."""

    manager: str = ""
    time: str = ""  # RFC 3339, so texts compare as times do


class PodMeta(ReadMeta, frozen=True):
    managed_fields: Few[FieldOwner] = ()


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
    requests: Amounts | None = None
    limits: Amounts | None = None


class ResizePolicy(WireRecord, frozen=True):
    resource_name: str = ""
    restart_policy: str = ""


class Container(WireRecord, frozen=True):
    name: str = ""
    image: Annotated[str, msgspec.Meta(max_length=IMAGE_CHARACTERS)] = ""
    resources: Resources = Resources()
    resize_policy: Few[ResizePolicy] = ()
    restart_policy: str = ""  # "Always" on an init container makes it a sidecar


class PodSpec(WireRecord, frozen=True):
    containers: Few[Container] = ()
    init_containers: Few[Container] = ()
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
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()
    resources: Resources | None = None


class PodStatus(WireRecord, frozen=True):
    phase: str = ""
    reason: str = ""
    start_time: datetime | None = None
    conditions: Few[WireCondition] = ()
    container_statuses: Few[ContainerStatus] = ()
    resize: str = ""


class WirePod(WireRecord, frozen=True):
    metadata: PodMeta = PodMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class LabelRequirement(WireRecord, frozen=True):
    key: str = ""
    operator: str = ""
    values: Few[str] = ()


class LabelSelector(WireRecord, frozen=True):
    match_labels: FewTexts | None = None
    match_expressions: Few[LabelRequirement] = ()


class Toleration(WireRecord, frozen=True):
    key: str = ""  # "": every taint
    operator: str = ""
    value: str = ""
    effect: str = ""  # "": every effect


class TemplateSpec(PodSpec, frozen=True):
    """A template also says where its pods may run; of living pods that is never asked."""

    node_selector: FewTexts | None = None
    tolerations: Few[Toleration] = ()


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
    updated_replicas: int = 0
    observed_generation: int = 0
    conditions: Few[WireCondition] = ()


class WireWorkload(WireRecord, frozen=True):
    """A Deployment, StatefulSet, ReplicaSet, DaemonSet, or anything of their shape."""

    metadata: ReadMeta = ReadMeta()
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


class Followed(Custom, frozen=True):
    """One that is followed; its status is ours."""

    metadata: ReadMeta = ReadMeta()
    spec: ShortMapping = msgspec.field(default_factory=ShortMapping)


class Blocker(Followed, frozen=True):
    """A ResourceQuota, LimitRange or PodDisruptionBudget."""

    status: ShortMapping = msgspec.field(default_factory=ShortMapping)


class NoStatus(dict[str, Any]):
    @classmethod
    def kept(cls, _: object) -> NoStatus:
        return cls()


class FollowedHpa(Followed, frozen=True):
    status: NoStatus = msgspec.field(default_factory=NoStatus)


class FollowedScaler(FollowedHpa, frozen=True):
    """Another autoscaler."""

    spec: ScalerSpec = msgspec.field(default_factory=ScalerSpec)


class LeaseSpec(WireRecord, frozen=True):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    lease_transitions: int | None = None


class Lease(WireRecord, frozen=True):
    metadata: ReadMeta = ReadMeta()
    spec: LeaseSpec = LeaseSpec()

    @property
    def made_at(self) -> float:
        made = self.metadata.creation_timestamp
        return made.timestamp() if made else 0.0


class NodeStatus(WireRecord, frozen=True):
    allocatable: Amounts | None = None
    conditions: Few[WireCondition] = ()


class Taint(WireRecord, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(WireRecord, frozen=True):
    unschedulable: bool = False
    taints: Few[Taint] = ()


class Node(WireRecord, frozen=True):
    metadata: ReadMeta = ReadMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class PartialObject(WireRecord, frozen=True):
    """A Namespace, or any other object without what is in it."""

    metadata: ReadMeta = ReadMeta()


class ConfigMap(WireRecord, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    data: dict[str, str] = {}


class Secret(ConfigMap, frozen=True):
    """Its values are in base64."""


class ServicePort(WireRecord, frozen=True):
    name: str = ""
    port: int = 0


class ServiceSpec(WireRecord, frozen=True):
    ports: tuple[ServicePort, ...] = ()


class Service(WireRecord, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ServiceSpec = ServiceSpec()


FIELD_MANAGER = "trimtab"  # the name under which the API server records our own writes
ANY = "*"  # in a path: whichever key, such as each container of a pod template


class ManagedFieldsEntry(WireRecord, frozen=True):
    manager: str = ""
    time: str = ""  # RFC 3339, so texts compare as times do
    fields_v1: dict[str, Any] = msgspec.field(default_factory=dict, name="fieldsV1")


class ManagedMeta(WireRecord, frozen=True):
    name: str = ""
    namespace: str = ""
    resource_version: str = ""
    managed_fields: tuple[ManagedFieldsEntry, ...] = ()

    def owners(self, *path: str) -> list[str]:
        """The managers that set this field, or one inside it, the latest write last: owners("spec", "replicas")."""
        entries = [entry for entry in self.managed_fields if _holds(entry.fields_v1, path)]
        return [entry.manager for entry in sorted(entries, key=lambda entry: entry.time)]

    def is_ours(self, *path: str) -> bool:
        """We set this field; others may have set it to the same value, or another part of it."""
        return FIELD_MANAGER in self.owners(*path)

    def is_ours_alone(self, *path: str) -> bool:
        return set(self.owners(*path)) == {FIELD_MANAGER}

    def last_other_owner(self, *path: str) -> str:
        """Who set it last, ourselves aside; "" when nobody did."""
        return next((owner for owner in reversed(self.owners(*path)) if owner != FIELD_MANAGER), "")


class ManagedObject(WireRecord, frozen=True):
    metadata: ManagedMeta = ManagedMeta()
    spec: dict[str, Any] = {}


class ManagedWorkload(WireRecord, frozen=True):
    metadata: ManagedMeta = ManagedMeta()
    spec: WorkloadSpec = WorkloadSpec()


def _holds(fields: Any, path: tuple[str, ...]) -> bool:
    """Field sets are nested maps with "f:" before the name of a field and "k:" before the key of a list's item."""
    if not path:
        return True
    if not isinstance(fields, dict):
        return False
    if path[0] == ANY:
        return any(_holds(inner, path[1:]) for inner in fields.values())
    return f"f:{path[0]}" in fields and _holds(fields[f"f:{path[0]}"], path[1:])


class Usage(WireRecord, frozen=True):
    """None: the kubelet said nothing."""

    cpu: str | None = None
    memory: str | None = None


class ContainerUsage(WireRecord, frozen=True):
    name: str = ""
    usage: Usage = Usage()


class WhosePod(WireRecord, frozen=True):
    """Of its metadata: labels of every pod in every tick would be read for nobody."""

    namespace: str = ""
    name: str = ""


class PodMetrics(WireRecord, frozen=True):
    """metrics.k8s.io: the usage of one pod over `window`, ending at `timestamp`."""

    metadata: WhosePod = WhosePod()
    timestamp: datetime | None = None
    window: str = ""
    containers: tuple[ContainerUsage, ...] = ()


class DescribedObject(WireRecord, frozen=True):
    kind: str = ""
    namespace: str = ""
    name: str = ""


class CustomMetricValue(WireRecord, frozen=True):
    """custom.metrics.k8s.io: one value of one object."""

    described_object: DescribedObject = DescribedObject()
    timestamp: datetime | None = None
    value: str = ""


class ExternalMetricValue(WireRecord, frozen=True):
    """external.metrics.k8s.io: one value of something outside."""

    timestamp: datetime | None = None
    value: str = ""
