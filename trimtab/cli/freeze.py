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
@click.option("--own", is_flag=True, help="Freeze the installation whose ServiceAccount runs this, before it goes.")
def command(cluster: ClusterOptions, namespace: str, undo: bool, own: bool) -> None:
    """Stop every write of an installation at once, except status: it goes on deciding and recording.

    The installation is named by its UID, so a later one in the same namespace is not frozen. Where no operator runs,
    whichever starts next is frozen.
    """
    import asyncio

    asyncio.run(_freeze(cluster, namespace, undo, own))


@click.command(name="unfreeze")
@cluster_options
@click.option("-n", "--namespace", default="", help="The operator's namespace; without it, where its Lease is.")
def unfreeze(cluster: ClusterOptions, namespace: str) -> None:
    """Let a frozen installation go on."""
    import asyncio

    asyncio.run(_unfreeze(cluster, namespace))


async def _freeze(cluster: ClusterOptions, namespace: str, undo: bool, own: bool) -> None:
    from trimtab.wire.kube import Kube
    from trimtab.wire.whoami import own_uid

    async with Kube(cluster.connect()) as kube:
        home = namespace or await _home(kube)
        whom = await own_uid(kube) if own else await _uid_of(kube, home)
        if own and not whom:
            raise InvalidInput("--own", "", "this is not a ServiceAccount: leave --own out")
        await _annotate(kube, home, whom or "true")
        click.echo(f"frozen: the trimtab of namespace {home}")
        if undo:
            await echo_restored(kube, "")


async def _unfreeze(cluster: ClusterOptions, namespace: str) -> None:
    from trimtab.wire.kube import Kube

    async with Kube(cluster.connect()) as kube:
        home = namespace or await _home(kube)
        await _annotate(kube, home, None)
        click.echo(f"unfrozen: the trimtab of namespace {home}")


async def _annotate(kube: Kube, home: str, value: str | None) -> None:
    from trimtab.kinds.annotations import FROZEN
    from trimtab.wire.kube import Patch
    from trimtab.wire.objects import PartialObject
    from trimtab.wire.resources import NAMESPACES

    body = {"metadata": {"annotations": {FROZEN: value}}}
    await kube.patch(PartialObject, NAMESPACES, "", home, body, Patch.MERGE)


async def _uid_of(kube: Kube, home: str) -> str:
    """Of the installation that holds a Lease there, as it says; "" while there is none."""
    from trimtab.kinds.annotations import INSTALLATION_UID
    from trimtab.wire.objects import Lease
    from trimtab.wire.resources import LEASES
    from trimtab.wire.shards import NAMES

    held = [lease for lease in (await kube.list(Lease, LEASES, home)).items if lease.spec.holder_identity]
    names = [lease.metadata.notes for lease in held if NAMES.fullmatch(lease.metadata.name)]
    return next((said[INSTALLATION_UID] for said in names if INSTALLATION_UID in said), "")


async def _home(kube: Kube) -> str:
    """Where the operator's Lease is."""
    from trimtab.wire.objects import Lease
    from trimtab.wire.resources import LEASES

    found = (await kube.list(Lease, LEASES, fields=f"metadata.name={LEASE}")).items
    homes = [lease.metadata.namespace for lease in found]
    if len(homes) != 1:
        raise InvalidInput("--namespace", ", ".join(homes) or "no Lease trimtab found", "say which with -n NAMESPACE")
    return homes[0]
