"""The steps of a handover; after each of them exactly one autoscaler is in charge.

Forward, ours becomes Auto first and holds still while the other one is there (a conflict); then the other one's scaling
ends, and ours goes on in its next tick. Back, the other one returns first, and ours holds still until it is Shadow
again. Interrupted in between, both are there: the other one scales, and the next try finishes.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any, NamedTuple

from trimtab.cli.kubectl import MANAGER, FoundObject, types
from trimtab.errors import InvalidInput, NotEnoughData, Refused, Unavailable
from trimtab.kinds import Scaler, read
from trimtab.kinds.annotations import HANDED_OVER, KEDA_PAUSED, ORIGINAL_FLOOR, RAISED_FLOOR, RAISED_FLOOR_UNTIL
from trimtab.kinds.convert import convert
from trimtab.kinds.ledger import Lost
from trimtab.policy import Stabilise, StabiliseMax
from trimtab.wire.kube import Kube, Patch
from trimtab.wire.objects import Custom
from trimtab.wire.resources import HPAS, Resource

AUTOSCALERS = types()["autoscaler"]
SCALED_OBJECTS = Resource("keda.sh", "v1alpha1", "scaledobjects", "ScaledObject")
RESOURCES = {resource.kind: resource for resource in (HPAS, SCALED_OBJECTS)}
LOOK_EVERY_S = 1.0
Manifest = dict[str, Any]


class Pair(NamedTuple):
    """Who scales a workload now, and the Autoscaler of the same name, as far as they are there."""

    namespace: str
    name: str
    other: FoundObject | None
    ours: Custom | None

    @property
    def before(self) -> Manifest | None:
        """Who it was handed over from."""
        kept = (self.ours.metadata.annotations or {}).get(HANDED_OVER) if self.ours else None
        return json.loads(kept) if kept else None

    @property
    def title(self) -> str:
        """Of the other one, whether it is there or waits to come back."""
        kind = self.other.resource.kind if self.other else str((self.before or {}).get("kind", "Autoscaler"))
        return f"{kind} {self.namespace}/{self.name}"


async def look(kube: Kube, namespace: str, name: str) -> Pair:
    found = [
        FoundObject(resource, body)
        for resource in RESOURCES.values()
        if (body := await _get(kube, resource, namespace, name))
    ]
    ours = await _get(kube, AUTOSCALERS, namespace, name)
    others = [each for each in found if not _paused(each)]
    if len(others) > 1:
        kinds = " and ".join(each.resource.kind for each in others)
        raise InvalidInput("NAME", name, f"{kinds} both scale: end one of them first")
    pair = Pair(namespace, name, others[0] if others else None, ours)
    if pair.other is None and pair.ours is None:
        fix = "there is no HorizontalPodAutoscaler, ScaledObject or Autoscaler of that name: check the namespace"
        raise InvalidInput("NAMESPACE/NAME", f"{namespace}/{name}", fix)
    return pair


async def _get(kube: Kube, resource: Resource, namespace: str, name: str) -> Custom | None:
    try:
        return await kube.get(Custom, resource, namespace, name)
    except Refused as refusal:
        if refusal.status == HTTPStatus.NOT_FOUND:  # no such object, or no such kind in this cluster
            return None
        raise


def _paused(found: FoundObject) -> bool:
    return (found.body.metadata.annotations or {}).get(KEDA_PAUSED) == "true"


# --- Shadow ----------------------------------------------------------------------------------------------------------


async def start(kube: Kube, pair: Pair, beside_keda: bool) -> list[Lost]:
    """An Autoscaler in Shadow that would do the same; what has no equivalent comes back."""
    assert pair.other is not None
    owner = pair.other.body.metadata.controller
    if owner is not None:
        raise InvalidInput("NAME", pair.name, f"{pair.title} belongs to {owner.kind} {owner.name}: hand that over")
    converted = convert(manifest_of(pair.other), "autoscaler", beside_keda)
    if gone := next((loss for loss in converted.lost if loss.signal), None):
        raise InvalidInput(gone.path, "its signal would be lost", gone.why)
    made = converted.manifest
    made["spec"]["mode"] = "Shadow"
    made["metadata"] |= {"namespace": pair.namespace, "name": pair.name}
    await kube.patch(Custom, AUTOSCALERS, pair.namespace, pair.name, made, Patch.APPLY, force=True, manager=MANAGER)
    return converted.lost


def manifest_of(found: FoundObject) -> Manifest:
    """As its user wrote it, without the floor that a forecast has put under it."""
    meta, spec = found.body.metadata, dict(found.body.spec)
    notes = dict(meta.annotations or {})
    original = notes.pop(ORIGINAL_FLOOR, "")
    if original.isdecimal():
        spec["minReplicas"] = int(original)
    notes = {key: value for key, value in notes.items() if key not in (RAISED_FLOOR, RAISED_FLOOR_UNTIL)}
    named: Manifest = {"name": meta.name, "namespace": meta.namespace}
    named |= ({"labels": meta.labels} if meta.labels else {}) | ({"annotations": notes} if notes else {})
    made = {"apiVersion": found.resource.api_version, "kind": found.resource.kind, "metadata": named, "spec": spec}
    return made | ({"status": found.body.status} if found.resource == SCALED_OBJECTS else {})


# --- the switch ------------------------------------------------------------------------------------------------------


def objections(pair: Pair, at: float) -> Iterator[str]:
    """Why the switch would be felt, or would leave nobody in charge."""
    assert pair.ours is not None
    status, said = pair.ours.status, conditions(pair.ours)
    if status.get("observedGeneration", 0) < pair.ours.metadata.generation:
        yield "no operator has looked at the Autoscaler as it is: is one running, and does it watch this namespace?"
        return
    for kind in ("Ready", "ScalingActive"):
        if said.get(kind, {}).get("status") != "True":
            yield str(said.get(kind, {}).get("message") or f"the Autoscaler is not {kind}")
    made, window_s = pair.ours.metadata.creation_timestamp, down_window_s(pair.ours)
    if made is not None and at < made.timestamp() + window_s:
        left = made.timestamp() + window_s - at
        yield f"it has not watched for the whole window of scaleDown ({window_s:.0f} s): {left:.0f} s are left"
    now, wanted = status.get("currentReplicas"), status.get("desiredReplicas")
    if now != wanted:
        yield f"it would change the replicas from {now} to {wanted} at once"


def conditions(found: Custom) -> dict[str, Mapping[str, Any]]:
    return {str(each.get("type")): each for each in found.status.get("conditions") or []}


def down_window_s(found: Custom) -> float:
    """How far back a decision to shrink looks."""
    kind = read(manifest_of(FoundObject(AUTOSCALERS, found)))
    assert isinstance(kind, Scaler)
    rules = kind.to_policy(0.0).settle
    windows = [rule.down_s for rule in rules if isinstance(rule, Stabilise)]
    return max([*windows, *(rule.window_s for rule in rules if isinstance(rule, StabiliseMax))], default=0.0)


async def take(kube: Kube, pair: Pair, within_s: float) -> None:
    """Ours is in charge afterwards, or everything is as before."""
    assert pair.other is not None
    kept = manifest_of(pair.other)
    kept.pop("status", None)
    patched = await _change(kube, pair, "Auto", json.dumps(kept, separators=(",", ":")))
    try:
        await _end_scaling(kube, pair.other)
        await _until_in_charge(kube, pair, patched.metadata.generation, within_s)
    except BaseException:  # an interrupt too: nobody is left without an autoscaler
        await back(kube, pair._replace(ours=patched))
        raise


async def _end_scaling(kube: Kube, other: FoundObject) -> None:
    meta = other.body.metadata
    if other.resource == HPAS:
        await kube.delete(HPAS, meta.namespace, meta.name, uid=meta.uid)
    else:
        await _pause_keda(kube, meta.namespace, meta.name, "true")


async def _pause_keda(kube: Kube, namespace: str, name: str, value: str | None) -> None:
    body = {"metadata": {"annotations": {KEDA_PAUSED: value}}}
    await kube.patch(Custom, SCALED_OBJECTS, namespace, name, body, manager=MANAGER)


async def _until_in_charge(kube: Kube, pair: Pair, generation: int, within_s: float) -> None:
    for _ in range(max(1, round(within_s / LOOK_EVERY_S))):
        ours = await kube.get(Custom, AUTOSCALERS, pair.namespace, pair.name)
        seen = ours.status.get("observedGeneration", 0) >= generation
        if seen and conditions(ours).get("Conflict", {}).get("status") == "False":
            return
        await asyncio.sleep(LOOK_EVERY_S)
    raise Unavailable(f"no operator took over within {within_s:.0f} s: {pair.title} is in charge again")


async def back(kube: Kube, pair: Pair) -> None:
    """As before the handover, the Autoscaler in Shadow."""
    before = pair.before
    if before is None:
        raise NotEnoughData(f"Autoscaler {pair.namespace}/{pair.name} was not handed over to: nothing to give back")
    if before["kind"] == HPAS.kind:
        await kube.patch(Custom, HPAS, pair.namespace, pair.name, before, Patch.APPLY, force=True, manager=MANAGER)
    else:
        await _pause_keda(kube, pair.namespace, pair.name, None)
    await _change(kube, pair, "Shadow", None)


async def _change(kube: Kube, pair: Pair, mode: str, kept: str | None) -> Custom:
    body = {"metadata": {"annotations": {HANDED_OVER: kept}}, "spec": {"mode": mode}}
    return await kube.patch(Custom, AUTOSCALERS, pair.namespace, pair.name, body, manager=MANAGER)
