"""trimtab status: every object that is served, annotated HorizontalPodAutoscalers too, and what holds each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from trimtab.cli.option_groups import ClusterOptions, PlaceOptions, cluster_options, place_options

if TYPE_CHECKING:
    from trimtab.cli.kubectl_objects import StatusRow


@click.command(name="status")
@place_options
@cluster_options
@click.option("-A", "--all-namespaces", is_flag=True, help="Every namespace.")
def command(place: PlaceOptions, cluster: ClusterOptions, all_namespaces: bool) -> None:
    """Every object that trimtab serves, annotated HPAs too: replicas, what holds it, the last decision."""
    import asyncio

    from rich.table import Table

    from trimtab.cli.kubectl_objects import StatusRow
    from trimtab.cli.screen import screen

    rows = asyncio.run(_rows(place, cluster, all_namespaces))
    if not rows:
        click.echo("No resources found.", err=True)
        return
    table = Table(*(field.upper() for field in StatusRow._fields), box=None, pad_edge=False)
    for row in rows:
        table.add_row(*row)
    screen().show(table)


async def _rows(place: PlaceOptions, cluster: ClusterOptions, everywhere: bool) -> list[StatusRow]:
    from trimtab.cli.kubectl_objects import status_rows
    from trimtab.wire.kube import Kube

    access = cluster.connect()
    async with Kube(access) as kube:
        namespace = "" if everywhere else place.namespace or access.namespace
        return [row async for row in status_rows(kube, namespace)]
