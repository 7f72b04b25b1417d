"""The objects that `kubectl trimtab` speaks of: found by NAME or TYPE/NAME, annotated, listed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from http import HTTPStatus
from typing import NamedTuple

from trimtab.errors import InvalidInput, Refused
from trimtab.kinds.annotations import (
    FORECAST_NOTE,
    ORIGINAL_FLOOR,
    PAUSED,
    PAUSED_UNTIL,
    PIN,
    PIN_UNTIL,
    PREDICTIVE,
    RAISED_FLOOR,
)
from trimtab.kinds.crd import CRDS
from trimtab.kinds.meta import predictive
from trimtab.wire.from_kubernetes import conditions_in
from trimtab.wire.kube import Kube
from trimtab.wire.objects import Custom
from trimtab.wire.resources import HPAS, Resource

MANAGER = "kubectl-trimtab"  # in managedFields: the user wrote this, not the operator
SCALERS = ("Autoscaler", "EffectiveHorizontalPodAutoscaler", "Hvpa")
SHOWN_WHEN_TRUE = ("PodsUnschedulable", "ResizeBlocked", "ResizePending")  # conditions whose message names the numbers
CURRENT, DESIRED = ("currentReplicas", "replicas"), ("desiredReplicas", "expectReplicas")


class FoundObject(NamedTuple):
    resource: Resource
    body: Custom

    @property
    def served(self) -> bool:
        """A HorizontalPodAutoscaler is ours to look at only when its user says so."""
        notes = self.body.metadata.annotations or {}
        try:
            return self.resource != HPAS or predictive(notes.get(PREDICTIVE), PREDICTIVE)
        except InvalidInput:
            return False


class StatusRow(NamedTuple):
    namespace: str
    object: str
    ready: str
    current: str
    desired: str
    sized: str
    held: str
    decision: str


def types() -> dict[str, Resource]:
    """Every word that kubectl takes for one of the kinds."""
    found: dict[str, Resource] = {}
    for crd in CRDS:
        if crd.kind in SCALERS:
            resource = Resource(crd.group, crd.version, crd.plural, crd.kind)
            found |= dict.fromkeys((crd.singular, crd.plural, crd.name, crd.kind.lower(), *crd.short), resource)
    group = f"{HPAS.plural}.{HPAS.group}"
    return found | dict.fromkeys(("hpa", HPAS.plural, HPAS.kind.lower(), group), HPAS)


async def find(kube: Kube, text: str, namespace: str) -> FoundObject:
    """The one object that is meant."""
    word, slash, name = text.rpartition("/")
    known = types()
    if slash and word.lower() not in known:
        raise InvalidInput("TYPE", word, f"write one of {', '.join(sorted(known))}")
    asked = [known[word.lower()]] if slash else list(dict.fromkeys(known.values()))
    found = [hit for resource in asked if (hit := await _get(kube, resource, namespace, name)) is not None]
    served = [hit for hit in found if hit.served]
    if len(served) == 1:
        return served[0]
    if served:
        kinds = ", ".join(f"{hit.resource.plural}/{name}" for hit in served)
        raise InvalidInput("NAME", text, f"say which: {kinds}")
    fix = f"its HorizontalPodAutoscaler is not annotated {PREDICTIVE}=true" if found else "check -n and the name"
    raise InvalidInput("NAME", text, f"nothing of trimtab's is called so in namespace {namespace}: {fix}")


async def _get(kube: Kube, resource: Resource, namespace: str, name: str) -> FoundObject | None:
    try:
        return FoundObject(resource, await kube.get(Custom, resource, namespace, name))
    except Refused as refusal:
        if refusal.status == HTTPStatus.NOT_FOUND:  # no such object, or no such kind in this cluster
            return None
        raise


async def annotate(kube: Kube, found: FoundObject, notes: Mapping[str, str | None]) -> None:
    """None takes a note away."""
    meta, body = found.body.metadata, {"metadata": {"annotations": dict(notes)}}
    await kube.patch(Custom, found.resource, meta.namespace, meta.name, body, manager=MANAGER)


async def status_rows(kube: Kube, namespace: str) -> AsyncIterator[StatusRow]:
    """Every object that trimtab serves, "" being all namespaces."""
    for resource in dict.fromkeys(types().values()):
        try:
            listing = await kube.list(Custom, resource, namespace)
        except Refused as refusal:
            if refusal.status != HTTPStatus.NOT_FOUND:
                raise
            continue
        for body in listing.items:
            if (found := FoundObject(resource, body)).served:
                yield status_row(found)


def status_row(found: FoundObject) -> StatusRow:
    meta, status = found.body.metadata, found.body.status
    current, desired = (
        next((str(status[field]) for field in fields if field in status), "") for fields in (CURRENT, DESIRED)
    )
    ready, decision = _ready_and_decision(found)
    return StatusRow(
        namespace=meta.namespace,
        object=f"{found.resource.kind}/{meta.name}",
        ready=ready,
        current=current,
        desired=desired,
        sized=str(status.get("sized", "")),
        held=", ".join(_held(found)),
        decision=decision,
    )


def _ready_and_decision(found: FoundObject) -> tuple[str, str]:
    """The last decision of an object that is served; of any other, why it is not."""
    status = found.body.status
    ready = conditions_in(status).get("Ready")
    if found.resource == HPAS:
        note = (found.body.metadata.annotations or {}).get(FORECAST_NOTE, "")
        return "", f"forecast {note}" if note else ""
    if ready is None:
        return "Unknown", "no operator has looked at it yet: is trimtab running, and does it serve this namespace?"
    if ready.get("status") == "False":
        return "False", f"{ready.get('reason', '')}: {ready.get('message', '')}"
    return str(ready.get("status", "")), str(status.get("lastDecision", ""))


def _held(found: FoundObject) -> Iterator[str]:
    """What its user has asked for, what we have raised, and what is in the way."""
    notes = found.body.metadata.annotations or {}
    if notes.get(PAUSED) == "true":
        yield "paused"
    if PAUSED_UNTIL in notes:
        yield f"paused until {notes[PAUSED_UNTIL]}"
    if PIN in notes:
        yield f"pinned to {notes[PIN]}" + (f" until {notes[PIN_UNTIL]}" if PIN_UNTIL in notes else "")
    if RAISED_FLOOR in notes:
        yield f"floor {notes[RAISED_FLOOR]} instead of {notes.get(ORIGINAL_FLOOR, 'its own')}"
    conditions = {} if found.resource == HPAS else conditions_in(found.body.status)
    if conditions.get("Ready", {}).get("status") == "False":
        return  # its error says it all
    able = conditions.get("AbleToScale", {})
    if able.get("status") == "False":
        yield str(able.get("reason", ""))  # Frozen is one of them
    for kind in SHOWN_WHEN_TRUE:
        if conditions.get(kind, {}).get("status") == "True":
            yield str(conditions[kind].get("message", ""))
