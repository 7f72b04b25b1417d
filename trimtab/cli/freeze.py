"""trimtab freeze: stop every write of a whole installation at once; trimtab unfreeze: go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from trimtab.cli.option_groups import ClusterOptions, cluster_options
from trimtab.cli.restore import echo_restored
from trimtab.errors import InvalidInput

if TYPE_CHECKING:
    from trimtab.wire.kube import Kube

LEASE = "trimtab"


@click.command(name="freeze")
@cluster_options
@click.option("-n", "--namespace", default="", help="The operator's namespace; without it, where its Lease is.")
@click.option("--undo", is_flag=True, help="Then put back raised floors of HPAs and sizes of pods, as `restore` does.")
def command(cluster: ClusterOptions, namespace: str, undo: bool) -> None:
    """Stop every write of an installation at once: it goes on deciding and recording, and touches nothing."""
    import asyncio

    asyncio.run(_freeze(cluster, namespace, frozen=True, undo=undo))


@click.command(name="unfreeze")
@cluster_options
@click.option("-n", "--namespace", default="", help="The operator's namespace; without it, where its Lease is.")
def unfreeze(cluster: ClusterOptions, namespace: str) -> None:
    """Let a frozen installation go on."""
    import asyncio

    asyncio.run(_freeze(cluster, namespace, frozen=False, undo=False))


async def _freeze(cluster: ClusterOptions, namespace: str, frozen: bool, undo: bool) -> None:
    from trimtab.kinds.annotations import FROZEN
    from trimtab.wire.kube import Kube, Patch
    from trimtab.wire.objects import PartialObject
    from trimtab.wire.resources import NAMESPACES

    async with Kube(cluster.connect()) as kube:
        home = namespace or await _home(kube)
        body = {"metadata": {"annotations": {FROZEN: "true" if frozen else None}}}
        await kube.patch(PartialObject, NAMESPACES, "", home, body, Patch.MERGE)
        click.echo(f"{'frozen' if frozen else 'unfrozen'}: the trimtab of namespace {home}")
        if undo:
            await echo_restored(kube, "")


async def _home(kube: Kube) -> str:
    """Where the operator's Lease is."""
    from trimtab.wire.objects import Lease
    from trimtab.wire.resources import LEASES

    found = (await kube.list(Lease, LEASES, fields=f"metadata.name={LEASE}")).items
    homes = [lease.metadata.namespace for lease in found]
    if len(homes) != 1:
        raise InvalidInput("--namespace", ", ".join(homes) or "no Lease trimtab found", "say which with -n NAMESPACE")
    return homes[0]
