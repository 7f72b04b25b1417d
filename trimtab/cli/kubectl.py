"""kubectl trimtab: what an on-call engineer asks and says about one object, with kubectl's own flags."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from http import HTTPStatus
from typing import Any, NamedTuple

import click

from trimtab import __version__
from trimtab.cli import ErrorHandlingGroup, freeze, status
from trimtab.cli.dashboard import operator_of
from trimtab.cli.explain import print_explanation
from trimtab.cli.option_groups import ClusterOptions, PlaceOptions, cluster_options, option_group, place_options
from trimtab.cli.options import duration
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
    TUNING_UNDO,
)
from trimtab.kinds.crd import CRDS
from trimtab.kinds.meta import predictive
from trimtab.wire.from_kubernetes import conditions_in, rfc3339
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


class NamedObject(NamedTuple):
    """Which object a command is about."""

    object_name: str
    place: PlaceOptions
    cluster: ClusterOptions

    async def find(self, notes: Mapping[str, str | None] | None = None) -> FoundObject:
        """The object, after these annotations were written to it."""
        access = self.cluster.connect()
        async with Kube(access) as kube:
            found = await find(kube, self.object_name, self.place.namespace or access.namespace)
            if notes:
                await annotate(kube, found, notes)
            return found

    def annotate(self, notes: Mapping[str, str | None], done: str) -> None:
        found = asyncio.run(self.find(notes))
        click.echo(f"{found.resource.plural}/{found.body.metadata.name} {done}")


object_option = option_group(
    "named", NamedObject, click.argument("object_name", metavar="[TYPE/]NAME"), place_options, cluster_options
)
for_option = click.option(
    "--for", "lasts_s", type=duration, metavar="DURATION", help="It ends by itself, such as after 2h."
)
operator_option = click.option(
    "--operator", default="trimtab/trimtab", show_default=True, metavar="NAMESPACE/SERVICE", help="The one to ask."
)


@click.group(name="trimtab", cls=ErrorHandlingGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "--version", message="kubectl trimtab %(version)s")
def plugin() -> None:
    """Ask trimtab about an autoscaler, and tell it to hold one."""


def main() -> None:
    """The entry point `kubectl-trimtab`, which kubectl finds on the PATH."""
    plugin(prog_name="kubectl trimtab")


plugin.add_command(freeze.command)
plugin.add_command(freeze.unfreeze)
plugin.add_command(status.command)


@plugin.command()
@object_option
@operator_option
def explain(named: NamedObject, operator: str) -> None:
    """What was seen, proposed, changed by each rule and done, at the last change."""
    print_explanation(_decision(asyncio.run(named.find()), named.cluster, operator))


@plugin.command()
@object_option
@operator_option
def why(named: NamedObject, operator: str) -> None:
    """The last change in one sentence; before the first one, what it saw and why it left everything as it was."""
    found = asyncio.run(named.find())
    try:
        click.echo(_decision(found, named.cluster, operator)["sentence"])
    except Refused as refusal:
        looked = found.body.status.get("lastDecision")
        if refusal.status != HTTPStatus.UNPROCESSABLE_ENTITY or not looked:
            raise
        click.echo(f"nothing has been changed yet: {looked}")


@plugin.command()
@object_option
@click.option("--replicas", type=click.IntRange(0), required=True, help="So many, whatever the metrics say.")
@for_option
def pin(named: NamedObject, replicas: int, lasts_s: float | None) -> None:
    """Keep so many replicas."""
    named.annotate({PIN: str(replicas), PIN_UNTIL: _until(lasts_s)}, f"pinned to {replicas}")


@plugin.command()
@object_option
@for_option
def pause(named: NamedObject, lasts_s: float | None) -> None:
    """Leave it as it is: nothing is decided."""
    until = _until(lasts_s)
    named.annotate({PAUSED: None if until else "true", PAUSED_UNTIL: until}, "paused")


@plugin.command()
@object_option
def resume(named: NamedObject) -> None:
    """End a pause or a pin."""
    named.annotate(dict.fromkeys((PAUSED, PAUSED_UNTIL, PIN, PIN_UNTIL)), "resumed")


@plugin.command()
@object_option
@click.option("--undo", is_flag=True, help="Take the last switch back, and let the workload rest for a week.")
def tuning(named: NamedObject, undo: bool) -> None:
    """Which settings nightly tuning has put in force, and what it promised and got."""
    if undo:
        named.annotate({TUNING_UNDO: rfc3339(time.time())}, "goes back to the settings of before")
        return
    said = asyncio.run(named.find()).body.status.get("tuning")
    if not isinstance(said, dict):
        raise InvalidInput("NAME", named.object_name, "it is not tuned: write tuning: {mode: Nightly} or Advise")
    for field in ("inForce", "replaced", "since", "promisedJ", "realizedJ", "verdict", "lastNight", "reason", "advice"):
        if field in said:
            click.echo(f"{field}: {said[field]}")


def _until(lasts_s: float | None) -> str | None:
    return None if lasts_s is None else rfc3339(time.time() + lasts_s)


def _decision(found: FoundObject, cluster: ClusterOptions, operator: str) -> dict[str, Any]:
    meta = found.body.metadata
    asked = {"kind": found.resource.kind, "namespace": meta.namespace, "name": meta.name}
    said = operator_of(operator, cluster).answer("decision", asked)
    assert isinstance(said, dict)
    return said
