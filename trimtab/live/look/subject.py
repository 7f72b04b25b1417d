"""subject: one object of ours, compiled to its policy; compiled again when it is edited, and every hour."""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec.structs import replace

from trimtab.errors import InvalidInput
from trimtab.journal import ObjectName
from trimtab.kinds import Scaler, TargetRef, read
from trimtab.kinds.ignored import Warned, warnings
from trimtab.live.look import floor
from trimtab.policy import Admit, Mode, Policy, Size, StabiliseMax
from trimtab.wire.objects import Custom
from trimtab.wire.resources import HPAS, Resource

HOUR_S = 3600.0  # schedules are spans around the hour of compilation


class Subject(NamedTuple):
    """What one object asks for."""

    name: ObjectName
    resource: Resource
    object: Custom
    target: TargetRef
    policy: Policy
    ignored: tuple[Warned, ...] = ()  # fields that mean nothing here

    @property
    def uid(self) -> str:
        return self.object.metadata.uid


class ChangeRules(NamedTuple):
    """What the operator asks of every change; None: the core's own rules.

    How long usage is watched before requests move, the least a pod may ask for, and, where no `behavior` says so, how
    long a lower wish must last (kube-controller-manager's --horizontal-pod-autoscaler-downscale-stabilization); how
    often a bridge may resize one pod; which pods are too young to count (its --horizontal-pod-autoscaler-
    cpu-initialization-period and -initial-readiness-delay).
    """

    up_after_s: float | None = None
    down_after_s: float | None = None
    oom_rest_s: float | None = None
    floor: Size | None = None
    downscale_s: float | None = None
    bridge_resizes_per_hour: int | None = None
    cpu_init_s: float | None = None
    readiness_delay_s: float | None = None

    def of(self, policy: Policy) -> Policy:
        return self._of_bridge(self._of_sizes(self._of_young_pods(self._of_replicas(policy))))

    def _of_young_pods(self, policy: Policy) -> Policy:
        ages = ("cpu_init_s", "readiness_delay_s")
        given = {name: getattr(self, name) for name in ages if getattr(self, name) is not None}
        return replace(policy, pods=replace(policy.pods, **given)) if given else policy

    def _of_bridge(self, policy: Policy) -> Policy:
        if policy.bridge is None:
            return policy
        return replace(policy, bridge=replace(policy.bridge, resizes_per_hour=self.bridge_resizes_per_hour))

    def _of_replicas(self, policy: Policy) -> Policy:
        if self.downscale_s is None:
            return policy
        own = StabiliseMax(window_s=self.downscale_s)
        return replace(policy, settle=tuple(own if isinstance(rule, StabiliseMax) else rule for rule in policy.settle))

    def _of_sizes(self, policy: Policy) -> Policy:
        sizes = ("up_after_s", "down_after_s", "oom_rest_s", "floor")
        given = {name: getattr(self, name) for name in sizes if getattr(self, name) is not None}
        if policy.vertical is None or not given:
            return policy
        return replace(policy, vertical=replace(policy.vertical, **given))


class Compiled(NamedTuple):
    """What a policy was made from, to know when to make it again."""

    spec: dict[str, Any]  # not the generation: an HPA has none before Kubernetes 1.37
    annotations: dict[str, str]
    hour: int
    target: TargetRef
    policy: Policy
    ignored: tuple[Warned, ...]


class Refusal(NamedTuple):
    """What could not be meant, to know when to look at it again."""

    spec: dict[str, Any]
    annotations: dict[str, str]
    hour: int
    error: InvalidInput


class Compiler:
    """Objects to subjects; what cannot be meant raises InvalidInput with a path, found once and said each time."""

    def __init__(self, shadow: bool = False, change_rules: ChangeRules = ChangeRules()) -> None:  # noqa: B008  (frozen)
        self.shadow = shadow  # decide everything, write nothing
        self.change_rules = change_rules
        self._known: dict[str, Compiled] = {}
        self._refused: dict[str, Refusal] = {}

    def subject(self, resource: Resource, found: Custom, enabled: bool, at: float, frozen: bool = False) -> Subject:
        compiled = self._compiled(resource, found, at)
        written = compiled.policy.admit
        admit = self._admit(written, enabled, frozen)
        policy = compiled.policy if admit is written else replace(compiled.policy, admit=admit)
        return Subject(name_of(resource.kind, found), resource, found, compiled.target, policy, compiled.ignored)

    def forget(self, uids: set[str]) -> None:
        """Keep only these."""
        self._known = {uid: compiled for uid, compiled in self._known.items() if uid in uids}
        self._refused = {uid: refusal for uid, refusal in self._refused.items() if uid in uids}

    def _admit(self, admit: Admit, enabled: bool, frozen: bool) -> Admit:
        if not enabled:
            return Admit(mode=Mode.PAUSED)
        if (self.shadow or frozen) and admit.mode is not Mode.PAUSED:  # a pin is a write too
            return Admit(mode=Mode.SHADOW, paused_until=admit.paused_until)
        return admit

    def _compiled(self, resource: Resource, found: Custom, at: float) -> Compiled:
        meta, hour = found.metadata, int(at // HOUR_S)
        known, annotations = self._known.get(meta.uid), meta.annotations or {}
        if known and known[:3] == (found.spec, annotations, hour):
            return known
        refused = self._refused.get(meta.uid)
        if refused and refused[:3] == (found.spec, annotations, hour):
            raise refused.error.with_traceback(None)
        try:
            return self._made(resource, found, at)
        except InvalidInput as error:
            self._refused[meta.uid] = Refusal(found.spec, annotations, hour, error)
            raise

    def _made(self, resource: Resource, found: Custom, at: float) -> Compiled:
        meta, hour = found.metadata, int(at // HOUR_S)
        annotations = meta.annotations or {}
        kind = read(manifest(resource, found))
        assert isinstance(kind, Scaler)
        policy, ignored = self.change_rules.of(kind.to_policy(at)), tuple(warnings(kind))
        made = self._known[meta.uid] = Compiled(found.spec, annotations, hour, kind.target, policy, ignored)
        return made


def manifest(resource: Resource, found: Custom) -> dict[str, Any]:
    meta, spec = found.metadata, found.spec
    if resource is HPAS:  # what the user wrote, not the floor we put under it
        spec = spec | {"minReplicas": floor.read(found).original}
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {
            "name": meta.name,
            "namespace": meta.namespace,
            "labels": meta.labels or {},
            "annotations": meta.annotations or {},
        },
        "spec": spec,
    }


def name_of(kind: str, found: Custom) -> ObjectName:
    return ObjectName(kind, found.metadata.namespace, found.metadata.name)
