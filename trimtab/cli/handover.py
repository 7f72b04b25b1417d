"""trimtab handover: from an HPA or a ScaledObject to an Autoscaler: watched, compared, switched, and back."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

import click

from trimtab.cli.option_groups import ClusterOptions, cluster_options, option_group
from trimtab.cli.options import duration, objective
from trimtab.errors import InvalidInput

if TYPE_CHECKING:
    from rich.table import Table

    from trimtab.cli.handover_steps import Pair
    from trimtab.web.shadow_comparison import BesideEachOther, JudgedSide
    from trimtab.web.sources import PageSource
    from trimtab.wire.kube import Kube

HEADINGS = ("", "POD HOURS", "COST", "VIOLATIONS", "CHURN/DAY", "J")


class SwitchOptions(NamedTuple):
    """Which step, and how."""

    take: bool
    back: bool
    force: bool
    within_s: float
    beside_keda: bool


switch_options = option_group(
    "switch",
    SwitchOptions,
    click.option("--take", is_flag=True, help="Hand over: the Autoscaler is in charge, the other one no longer."),
    click.option("--back", is_flag=True, help="Give back: as before, the Autoscaler in Shadow."),
    click.option("--force", is_flag=True, help="With --take: also when the switch would be felt."),
    click.option(
        "--within",
        "within_s",
        type=duration,
        default="2m",
        show_default=True,
        help="With --take: an operator has to take over in that time, or all is as before.",
    ),
    click.option("--beside-keda", is_flag=True, help="KEDA keeps fetching its metrics; only its scaling ends."),
)


@click.command(name="handover")
@click.argument("name", metavar="NAMESPACE/NAME")
@switch_options
@click.option("--objective", "lam", type=objective, default="balanced", show_default=True, help=objective.__doc__)
@click.option("--journal", help="Compare by this file of the operator's, instead of asking the operator.")
@click.option(
    "--operator", default="trimtab/trimtab", show_default=True, metavar="NAMESPACE/SERVICE", help="The one to ask."
)
@cluster_options
def command(
    name: str, switch: SwitchOptions, lam: float, journal: str | None, operator: str, cluster: ClusterOptions
) -> None:
    """Hand a workload over from its HorizontalPodAutoscaler or ScaledObject of this name, without a gap.

    \b
    trimtab handover shop/web            # first an Autoscaler in Shadow beside it; then: what both do
    trimtab handover shop/web --take     # ours scales; the other one is kept in an annotation
    trimtab handover shop/web --back     # the other one scales again, ours watches

    Exit code 0: done, 1: not handed over, for the switch would be felt, 2: it could not be done.
    """
    import asyncio

    from trimtab.cli.dashboard import journal_source, operator_of

    namespace, _, short = name.partition("/")
    if not namespace or not short or "/" in short:
        raise InvalidInput("NAMESPACE/NAME", name, "write the namespace and the name, such as shop/web")
    if switch.take and switch.back:
        raise InvalidInput("--back", "with --take", "say one of them")
    pair, said = asyncio.run(_step(cluster, namespace, short, switch))
    if said:
        click.echo(said)
    else:
        _compare(pair, journal_source(journal) if journal else operator_of(operator, cluster), lam)


async def _step(cluster: ClusterOptions, namespace: str, name: str, switch: SwitchOptions) -> tuple[Pair, str]:
    """Who is there, and what was done; where nothing was, both are to be compared."""
    from trimtab.cli import handover_steps as steps
    from trimtab.wire.kube import Kube

    async with Kube(cluster.connect()) as kube:
        pair = await steps.look(kube, namespace, name)
        if switch.back:
            await steps.back(kube, pair)
            return pair, f"{pair.title} scales again; Autoscaler {namespace}/{name} watches in Shadow"
        if switch.take:
            return pair, await _take(kube, pair, switch)
        if pair.other is None:
            return pair, f"Autoscaler {namespace}/{name} scales" + f"; --back returns {pair.title}" * bool(pair.before)
        if pair.ours is not None:
            return pair, ""
        for loss in await steps.start(kube, pair, switch.beside_keda):
            click.echo(f"note: {loss.path}: {loss.why}", err=True)
        return pair, f"Autoscaler {namespace}/{name} watches in Shadow beside {pair.title}; run this again to compare"


async def _take(kube: Kube, pair: Pair, switch: SwitchOptions) -> str:
    from trimtab.cli import handover_steps as steps

    if pair.ours is None:
        raise InvalidInput("--take", pair.title, "let an Autoscaler watch first: run this without --take")
    if pair.other is None:
        raise InvalidInput("--take", pair.title, "the Autoscaler scales already; --back returns what was before")
    against = [] if switch.force else list(steps.objections(pair, time.time()))
    for text in against:
        click.echo(f"not handed over: {text}", err=True)
    if against:
        raise SystemExit(1)
    await steps.take(kube, pair, switch.within_s)
    return f"Autoscaler {pair.namespace}/{pair.name} scales, {pair.title} no longer; --back returns it"


def _compare(pair: Pair, source: PageSource, lam: float) -> None:
    from trimtab.cli.screen import screen
    from trimtab.web.packing import PageTable
    from trimtab.web.shadow_comparison import beside
    from trimtab.web.sources import base_query

    asked = {"kind": "Autoscaler", "namespace": pair.namespace, "name": pair.name}
    known = source.answer("workload", base_query(asked))
    assert isinstance(known, PageTable)
    found = beside(known, lam)
    console = screen()
    console.show(table(pair, found))
    for note in (f"over {found.days:.1f} days, each judged by the same load, start-up and price", *found.notes):
        console.print(f"note: {note}", style="dim")


def table(pair: Pair, found: BesideEachOther) -> Table:
    from rich.table import Table

    made = Table(*HEADINGS, box=None, pad_edge=False)
    made.add_row(f"{pair.title} did", *_cells(found.did))
    made.add_row(f"Autoscaler {pair.namespace}/{pair.name} would have", *_cells(found.would))
    return made


def _cells(side: JudgedSide) -> tuple[str, ...]:
    score = side.figures
    return (
        f"{side.pod_hours:,.1f}",
        f"{score.cost:.2f}",
        f"{score.violations:.2f}%",
        f"{score.churn_per_day:.0f}",
        f"{score.j:.2f}",
    )
