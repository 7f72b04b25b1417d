"""trimtab restore: put back what a stopped operator left in force."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from trimtab.cli.option_groups import ClusterOptions, cluster_options

if TYPE_CHECKING:
    from trimtab.wire.kube import Kube


@click.command(name="restore")
@cluster_options
@click.option("-n", "--namespace", default="", help="Only this namespace.")
@click.option("--dry-run", is_flag=True, help="Say what would be put back, and change nothing.")
def command(cluster: ClusterOptions, namespace: str, dry_run: bool) -> None:
    """Put back what a stopped operator left in force: raised minReplicas of predictive HPAs, sizes of pods."""
    import asyncio

    asyncio.run(_restore(cluster, namespace, dry_run))


async def _restore(cluster: ClusterOptions, namespace: str, dry_run: bool) -> None:
    from trimtab.wire.kube import Kube

    async with Kube(cluster.connect()) as kube:
        await echo_restored(kube, namespace, dry_run)


async def echo_restored(kube: Kube, namespace: str, dry_run: bool = False) -> None:
    from trimtab.errors import Refused
    from trimtab.live.act.restore import restore_all

    done, failed, stay = 0, 0, 0
    async for restored in restore_all(kube, namespace, dry_run):
        click.echo(f"{restored.text}: NOT put back: {restored.trouble}" if restored.trouble else restored.text)
        stay, failed = stay + restored.stays, failed + bool(restored.trouble)
        done += not (restored.stays or restored.trouble)
    kept = f"; {stay} stay until a new pod takes its template's size: edit the template first" if stay else ""
    click.echo(f"{done} {'would be ' if dry_run else ''}restored{kept}")
    if failed:
        raise Refused(f"{failed} could not be restored: mend what is said of each, and run it again")
