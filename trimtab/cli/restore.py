"""trimtab restore: give every HorizontalPodAutoscaler the floor its user wrote, and take our annotations away."""

from __future__ import annotations

import asyncio

import click

from trimtab.cli.option_groups import ClusterOptions, cluster_options
from trimtab.live.act.floor import restore
from trimtab.live.look import floor
from trimtab.wire.kube import Kube
from trimtab.wire.objects import Custom
from trimtab.wire.resources import HPAS
from trimtab.wire.writer import Writer


@click.command(name="restore")
@cluster_options
@click.option("-n", "--namespace", default="", help="Only this namespace.")
@click.option("--dry-run", is_flag=True, help="Say what would be put back, and change nothing.")
def command(cluster: ClusterOptions, namespace: str, dry_run: bool) -> None:
    """Put back what a stopped operator left behind: raised minReplicas of predictive HPAs."""
    asyncio.run(_restore(cluster, namespace, dry_run))


async def _restore(cluster: ClusterOptions, namespace: str, dry_run: bool) -> None:
    async with Kube(cluster.connect()) as kube:
        writer = Writer(kube)  # a person runs this, after the operator
        found = [hpa for hpa in (await kube.list(Custom, HPAS, namespace)).items if floor.is_ours(hpa)]
        for hpa in found:
            before, after = hpa.spec.get("minReplicas", 1), floor.read(hpa).original
            click.echo(f"hpa {hpa.metadata.namespace}/{hpa.metadata.name}: minReplicas {before} -> {after}")
            if not dry_run:
                await restore(writer, hpa)
        click.echo(f"{len(found)} {'would be ' if dry_run else ''}restored")
