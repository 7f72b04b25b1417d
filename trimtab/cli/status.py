"""trimtab status: every object that is served, annotated HorizontalPodAutoscalers too, and what holds each."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from trimtab.cli.option_groups import ClusterOptions, PlaceOptions, cluster_options, place_options
from trimtab.cli.output import output_option

if TYPE_CHECKING:
    from trimtab.cli.kubectl import StatusRow


@click.command(name="status")
@place_options
@cluster_options
@click.option("-A", "--all-namespaces", is_flag=True, help="Every namespace.")
@output_option("table", "json")
def command(place: PlaceOptions, cluster: ClusterOptions, all_namespaces: bool, output: str) -> None:
    """Every object that trimtab serves, annotated HPAs too: replicas, what holds it, the last decision."""
    import asyncio

    show(asyncio.run(_rows(place, cluster, all_namespaces)), output)


def show(rows: list[StatusRow], output: str) -> None:
    from rich.table import Table

    from trimtab.cli.kubectl import StatusRow
    from trimtab.cli.screen import screen

    if output == "json":
        click.echo(json.dumps([row._asdict() for row in rows], indent=2))
        return
    if not rows:
        click.echo("No resources found.", err=True)
        return
    table = Table(*(field.upper() for field in StatusRow._fields), box=None, pad_edge=False)
    for row in rows:
        table.add_row(*row)
    screen().show(table)


async def _rows(place: PlaceOptions, cluster: ClusterOptions, everywhere: bool) -> list[StatusRow]:
    from trimtab.cli.kubectl import status_rows
    from trimtab.wire.kube import Kube

    access = cluster.connect()
    async with Kube(access) as kube:
        namespace = "" if everywhere else place.namespace or access.namespace
        return [row async for row in status_rows(kube, namespace)]
