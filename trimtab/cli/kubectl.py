"""kubectl trimtab: what an on-call engineer asks and says about one object, with kubectl's own flags."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from trimtab import __version__
from trimtab.cli import Friendly, freeze, status
from trimtab.cli.option_groups import ClusterOptions, PlaceOptions, cluster_options, place_options
from trimtab.cli.options import duration

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trimtab.cli.kubectl_objects import FoundObject


object_argument = click.argument("object_name", metavar="[TYPE/]NAME")
for_option = click.option(
    "--for", "lasts_s", type=duration, metavar="DURATION", help="It ends by itself, such as after 2h."
)
operator_option = click.option(
    "--operator", default="trimtab/trimtab", show_default=True, metavar="NAMESPACE/SERVICE", help="The one to ask."
)


@click.group(name="trimtab", cls=Friendly, context_settings={"help_option_names": ["-h", "--help"]})
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
@object_argument
@place_options
@cluster_options
@operator_option
def explain(object_name: str, place: PlaceOptions, cluster: ClusterOptions, operator: str) -> None:
    """What was seen, proposed, changed by each rule and done, at the last change."""
    said = _decision(_found(object_name, place, cluster), cluster, operator)
    click.echo(f"{said['object']} at {said['time']}: {said['outcome'] or 'nothing was changed'}")
    click.echo(said["sentence"])
    for line in said["seen"]:
        click.echo(f"  seen: {line}")
    for what, before, after, why in said["rows"]:
        click.echo(f"  {what}: {before} -> {after}, {why}")


@plugin.command()
@object_argument
@place_options
@cluster_options
@operator_option
def why(object_name: str, place: PlaceOptions, cluster: ClusterOptions, operator: str) -> None:
    """The last change in one sentence; before the first one, what it saw and why it left everything as it was."""
    from http import HTTPStatus

    from trimtab.errors import Refused

    found = _found(object_name, place, cluster)
    try:
        click.echo(_decision(found, cluster, operator)["sentence"])
    except Refused as refusal:
        looked = found.body.status.get("lastDecision")
        if refusal.status != HTTPStatus.UNPROCESSABLE_ENTITY or not looked:
            raise
        click.echo(f"nothing has been changed yet: {looked}")


@plugin.command()
@object_argument
@click.option("--replicas", type=click.IntRange(0), required=True, help="So many, whatever the metrics say.")
@for_option
@place_options
@cluster_options
def pin(object_name: str, replicas: int, lasts_s: float | None, place: PlaceOptions, cluster: ClusterOptions) -> None:
    """Keep so many replicas."""
    from trimtab.kinds.annotations import PIN, PIN_UNTIL

    _note(object_name, place, cluster, {PIN: str(replicas), PIN_UNTIL: _until(lasts_s)}, f"pinned to {replicas}")


@plugin.command()
@object_argument
@for_option
@place_options
@cluster_options
def pause(object_name: str, lasts_s: float | None, place: PlaceOptions, cluster: ClusterOptions) -> None:
    """Leave it as it is: nothing is decided."""
    from trimtab.kinds.annotations import PAUSED, PAUSED_UNTIL

    until = _until(lasts_s)
    _note(object_name, place, cluster, {PAUSED: None if until else "true", PAUSED_UNTIL: until}, "paused")


@plugin.command()
@object_argument
@place_options
@cluster_options
def resume(object_name: str, place: PlaceOptions, cluster: ClusterOptions) -> None:
    """End a pause or a pin."""
    from trimtab.kinds.annotations import PAUSED, PAUSED_UNTIL, PIN, PIN_UNTIL

    _note(object_name, place, cluster, dict.fromkeys((PAUSED, PAUSED_UNTIL, PIN, PIN_UNTIL)), "resumed")


def _until(lasts_s: float | None) -> str | None:
    from trimtab.wire.from_kubernetes import rfc3339

    return None if lasts_s is None else rfc3339(time.time() + lasts_s)


def _note(text: str, place: PlaceOptions, cluster: ClusterOptions, notes: Mapping[str, str | None], done: str) -> None:
    import asyncio

    found = asyncio.run(_annotate(text, place, cluster, notes))
    click.echo(f"{found.resource.plural}/{found.body.metadata.name} {done}")


async def _annotate(
    text: str, place: PlaceOptions, cluster: ClusterOptions, notes: Mapping[str, str | None]
) -> FoundObject:
    from trimtab.cli.kubectl_objects import annotate, find
    from trimtab.wire.kube import Kube

    access = cluster.connect()
    async with Kube(access) as kube:
        found = await find(kube, text, place.namespace or access.namespace)
        await annotate(kube, found, notes)
        return found


def _decision(found: FoundObject, cluster: ClusterOptions, operator: str) -> dict[str, Any]:
    import msgspec

    from trimtab.cli.dashboard import operator_of

    meta = found.body.metadata
    asked = {"kind": found.resource.kind, "namespace": meta.namespace, "name": meta.name}
    said: dict[str, Any] = msgspec.json.decode(operator_of(operator, cluster).answer("decision", asked).content)
    return said


def _found(text: str, place: PlaceOptions, cluster: ClusterOptions) -> FoundObject:
    import asyncio

    return asyncio.run(_find(text, place, cluster))


async def _find(text: str, place: PlaceOptions, cluster: ClusterOptions) -> FoundObject:
    from trimtab.cli.kubectl_objects import find
    from trimtab.wire.kube import Kube

    access = cluster.connect()
    async with Kube(access) as kube:
        return await find(kube, text, place.namespace or access.namespace)
