"""kubectl trimtab: what an on-call engineer asks and says about one object, with kubectl's own flags."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, NamedTuple

import click

from trimtab import __version__
from trimtab.cli import ErrorHandlingGroup, freeze, status
from trimtab.cli.dashboard import operator_of
from trimtab.cli.explain import print_explanation
from trimtab.cli.kubectl_objects import FoundObject, annotate, find
from trimtab.cli.option_groups import ClusterOptions, PlaceOptions, cluster_options, option_group, place_options
from trimtab.cli.options import duration
from trimtab.errors import InvalidInput, Refused
from trimtab.kinds.annotations import PAUSED, PAUSED_UNTIL, PIN, PIN_UNTIL, TUNING_UNDO
from trimtab.wire.from_kubernetes import rfc3339
from trimtab.wire.kube import Kube


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
