"""conflict: who else moves the same target on the same axis. The younger of ours holds still; others always win.

Shadow and paused objects, VPAs in Off, dry-running WPAs and paused ScaledObjects never conflict, nor does an annotated
HPA with the floor we put under it; a ScaledObject counts once, not also as the HPA it makes. A pin writes, in Shadow
too.

Requests are also left alone where somebody else scales the replicas by a share of them: each would move what the other
aims at, until there are many tiny pods.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

from msgspec.structs import replace

from trimtab.core.admit import pinned, writes
from trimtab.core.model import Veto
from trimtab.kinds.annotations import KEDA_PAUSED
from trimtab.live.look.cluster import WatchedCluster
from trimtab.live.look.subject import Subject
from trimtab.policy import Apply, Axis, Policy, Utilization
from trimtab.wire.objects import Custom

Place = tuple[str, str, str]  # namespace, kind and name of a target
SIZES = (Axis.CPU, Axis.MEMORY)
SHARES = {"cpu": Axis.CPU, "memory": Axis.MEMORY}
VPA_OFF = """patch vpa {name} -n {ns} --type merge -p '{{"spec":{{"updatePolicy":{{"updateMode":"Off"}}}}}}'"""


WPA_DRY = """patch wpa {name} -n {ns} --type merge -p '{{"spec":{{"dryRun":true}}}}'"""
TITLES = {
    "hpa": "HorizontalPodAutoscaler",
    "scaledobject": "ScaledObject",
    "vpa": "VerticalPodAutoscaler",
    "wpa": "WatermarkPodAutoscaler",
    "phpa": "PredictiveHorizontalPodAutoscaler",
}


class Claim(NamedTuple):
    """Somebody moves an axis of a target; others' objects are older than any of ours."""

    age: tuple[float, str]  # creation, then name: the smaller one was there first
    uid: str
    title: str
    remedy: str
    does: str = ""  # where it does not move this very axis


class Claims:
    """Every claim of one tick, by target and axis."""

    def __init__(self, cluster: WatchedCluster, subjects: Iterable[Subject], at: float) -> None:
        self._others: dict[tuple[Place, Axis], list[Claim]] = defaultdict(list)
        self._ours: dict[Place, list[Subject]] = defaultdict(list)
        self._oldest_first: dict[tuple[Place, Axis], list[Claim]] = {}
        self._shares: dict[tuple[Place, Axis], list[Claim]] = defaultdict(list)  # who scales by a share of requests
        scaled_objects = {found.metadata.uid for found in cluster.scaled_objects.store}
        for found in cluster.hpas.store:
            self._add_shares(found, "hpa")
            if not _is_counted(found, scaled_objects):
                self._add(found, "scaleTargetRef", Axis.REPLICAS, _foreign(found, "hpa", "delete hpa {name} -n {ns}"))
        for found in cluster.scaled_objects.store:
            if found.metadata.notes.get(KEDA_PAUSED) != "true":
                remedy = f"annotate scaledobject {{name}} -n {{ns}} {KEDA_PAUSED}=true"
                self._add(found, "scaleTargetRef", Axis.REPLICAS, _foreign(found, "scaledobject", remedy))
        for found in cluster.vpas.store:
            mode = _mapping(found.spec, "updatePolicy").get("updateMode", "Auto")
            if mode != "Off":
                for axis in SIZES:
                    self._add(found, "targetRef", axis, _foreign(found, "vpa", VPA_OFF))
        for found in cluster.wpas.store:
            if not found.spec.get("dryRun"):
                self._add(found, "scaleTargetRef", Axis.REPLICAS, _foreign(found, "wpa", WPA_DRY))
        for found in cluster.phpas.store:
            self._add_shares(found, "phpa")
            self._add(found, "scaleTargetRef", Axis.REPLICAS, _foreign(found, "phpa", "delete phpa {name} -n {ns}"))
        for subject in subjects:
            self._ours[_place(subject)].append(subject)
        for place, together in self._ours.items():
            for subject in together if len(together) > 1 else ():
                if Axis.REPLICAS in _axes(subject.policy, at):
                    for axis in _shares_of(subject.policy):
                        self._shares[place, axis].append(_by_share(_ours(subject), axis))

    def against(self, subject: Subject, at: float) -> dict[Axis, Claim]:
        """The older claim on each axis that this object would move."""
        place = _place(subject)
        alone = all(other.uid == subject.uid for other in self._ours.get(place, ()))
        if alone and not self._others:  # nearly everybody
            return {}
        found, age, axes = {}, _ours(subject).age, _axes(subject.policy, at)
        for axis in axes:
            rivals = (claim for claim in self._sorted(place, axis, at) if claim.uid != subject.uid)
            if (oldest := next(rivals, None)) and oldest.age < age:
                found[axis] = oldest
        if Axis.REPLICAS in found or Axis.REPLICAS not in axes:  # somebody else may move the replicas
            for axis in axes:
                shares = (claim for claim in self._shares.get((place, axis), ()) if claim.uid != subject.uid)
                if axis not in found and (other := next(shares, None)):
                    found[axis] = other
        return found

    def _sorted(self, place: Place, axis: Axis, at: float) -> list[Claim]:
        """The oldest first; worked out once for all that point at this target."""
        known = self._oldest_first.get((place, axis))
        if known is None:
            ours = [_ours(each) for each in self._ours.get(place, ()) if axis in _axes(each.policy, at)]
            known = sorted(self._others.get((place, axis), []) + ours, key=lambda claim: claim.age)
            self._oldest_first[place, axis] = known
        return known

    def _add(self, found: Custom, field: str, axis: Axis, claim: Claim) -> None:
        ref = _mapping(found.spec, field)
        place = (found.metadata.namespace, str(ref.get("kind") or "Deployment"), str(ref.get("name") or ""))
        self._others[place, axis].append(claim)

    def _add_shares(self, found: Custom, kind: str) -> None:
        """Of an HPA or a kind with its metrics; without any it scales on a share of CPU."""
        metrics = found.spec.get("metrics") or [{"resource": {"name": "cpu", "target": {}}}]
        ref = _mapping(found.spec, "scaleTargetRef")
        place = (found.metadata.namespace, str(ref.get("kind")), str(ref.get("name")))
        for metric in metrics if isinstance(metrics, list) else ():
            source = _mapping(metric, "resource") or _mapping(metric, "containerResource")
            axis = SHARES.get(str(source.get("name")))
            if axis is not None and not {"averageValue", "value"} & _mapping(source, "target").keys():
                self._shares[place, axis].append(_by_share(_foreign(found, kind, ""), axis))


def without_bridge(subject: Subject, claims: dict[Axis, Claim]) -> Subject:
    """Where somebody else moves the replicas nothing is bridged: for larger requests an HPA would remove pods."""
    if subject.policy.bridge is None or Axis.REPLICAS not in claims:
        return subject
    return subject._replace(policy=replace(subject.policy, bridge=None))


def vetoes(claims: dict[Axis, Claim]) -> tuple[Veto, ...]:
    return tuple(
        Veto(axis=axis, direction=None, reason="Conflict", detail=text(axis, claim)) for axis, claim in claims.items()
    )


def text(axis: Axis, claim: Claim) -> str:
    what = "the replicas" if axis is Axis.REPLICAS else "the requests"
    does = claim.does or f"moves {what} of the same target"
    return f"{claim.title} {does}; to let trimtab do it: {claim.remedy}"


def _shares_of(policy: Policy) -> set[Axis]:
    """The requests that the replicas follow."""
    names = {signal.metric.name for signal in policy.signals if isinstance(signal, Utilization)}
    return {axis for name, axis in SHARES.items() if name in names}


def _by_share(claim: Claim, axis: Axis) -> Claim:
    does = f"scales on a share of the {axis} requests, so new sizes would move its target and are only advised"
    remedy = f"give this object its metrics and delete it, or let it scale on an averageValue of {axis}"
    return claim._replace(does=does, remedy=remedy)


def _axes(policy: Policy, at: float) -> tuple[Axis, ...]:
    """What this object would write. One that is vertical only still has a floor under its replicas."""
    if not writes(policy.admit, at):
        return ()
    if pinned(policy.admit, at):
        return (Axis.REPLICAS,)
    floor = policy.bounds.min_replicas > 1 or bool(policy.bounds.schedules)
    replicas = (Axis.REPLICAS,) if policy.signals or policy.blend or floor else ()
    if policy.vertical and policy.vertical.apply is not Apply.NEVER:
        return replicas + SIZES
    return (*replicas, Axis.CPU) if policy.bridge else replicas


def _mapping(given: object, field: str) -> dict[str, Any]:
    """A mapping within another; others' definitions may let anything else pass, which then claims nothing."""
    part = given.get(field) if isinstance(given, dict) else None
    return part if isinstance(part, dict) else {}


def _place(subject: Subject) -> Place:
    return subject.name.namespace, subject.target.kind, subject.target.name


def _ours(subject: Subject) -> Claim:
    meta, name = subject.object.metadata, subject.name
    age = (meta.creation_timestamp.timestamp() if meta.creation_timestamp else 0.0, f"{name.kind}/{name.name}")
    remedy = f"kubectl delete {name.kind.lower()} {name.name} -n {name.namespace}"
    return Claim(age, subject.uid, str(name), remedy)


def _foreign(found: Custom, kind: str, remedy: str) -> Claim:
    meta = found.metadata
    command = remedy.format(name=meta.name, ns=meta.namespace)
    return Claim((-1.0, kind), meta.uid, f"{TITLES[kind]} {meta.namespace}/{meta.name}", f"kubectl {command}")


def _is_counted(hpa: Custom, scaled_objects: set[str]) -> bool:
    """Whether KEDA made it for a ScaledObject, which counts itself; for one that is not known yet it does not."""
    owner = hpa.metadata.controller
    return owner is not None and owner.kind == "ScaledObject" and owner.uid in scaled_objects
