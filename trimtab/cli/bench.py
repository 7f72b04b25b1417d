"""trimtab bench: the whole protocol over a folder of traces: who scales how well, and how sure that is."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.progress import track
from rich.table import Table

from trimtab.cli.options import durations, prices, words
from trimtab.quantity import format_duration

if TYPE_CHECKING:
    from trimtab.tune.bench import Summary


@click.command(name="bench")
@click.option(
    "--traces", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Folder of Parquet traces."
)
@click.option(
    "--init",
    "startups_s",
    type=durations,
    metavar="DURATIONS",
    default="30s,2m,10m",
    show_default=True,
    help="Start-up times.",
)
@click.option(
    "--lambda",
    "lambdas",
    type=prices,
    metavar="NUMBERS",
    default="8,32,128",
    show_default=True,
    help="Prices of violating load.",
)
@click.option(
    "--policies",
    "names",
    type=words,
    metavar="NAMES",
    default="hpa-default,hpa-rolling",
    show_default=True,
    help="Contenders.",
)
@click.option("--json", "out", type=click.Path(dir_okay=False, path_type=Path), help="Write every row to this file.")
@click.option("--list", "lists", is_flag=True, help="Print the contenders that are known.")
def command(
    traces: Path | None,
    startups_s: list[float],
    lambdas: list[float],
    names: list[str],
    out: Path | None,
    lists: bool,
) -> None:
    """Run the benchmark protocol over every trace of a folder.

    J is pod-steps + LAMBDA x violating load + 8 x starts, over the clairvoyant optimum: 1 cannot be beaten by much.
    """
    from trimtab.sim.protocol import load_of
    from trimtab.sim.traces import traces_in
    from trimtab.tune.bench import CONTENDERS, Row, contenders, rows_of, summarise

    if lists:
        click.echo("\n".join(CONTENDERS))
        return
    if traces is None:
        raise click.UsageError("--traces is missing: name a folder of Parquet files with timestamp and value")
    chosen, rows = contenders(names), list[Row]()
    errors = Console(stderr=True)
    for name, trace in track(traces_in(traces), "Traces", console=errors, disable=not sys.stderr.isatty()):
        rows += rows_of(load_of(name, trace), chosen, startups_s, lambdas)
    found = summarise(rows)
    if out is not None:
        content = {"summary": [one.plain() for one in found], "rows": [row.plain() for row in rows]}
        out.write_text(json.dumps(content, indent=1))
    Console(width=None if sys.stdout.isatty() else 140).print(_table(found))


def _table(found: list[Summary]) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("INIT", "LAMBDA", "POLICY"):
        table.add_column(heading)
    for heading in ("J", "95 %", "COST", "VIOLATIONS", "TO DEFAULT", "WINS", "WORST", "CHURN"):
        table.add_column(heading, justify="right")
    table.add_column("WORST TRACE")
    for one in sorted(found, key=lambda one: (one.lam, one.init_s)):
        table.add_row(
            format_duration(one.init_s),
            f"{one.lam:g}",
            one.policy,
            f"{one.j:.3f}",
            f"{one.low:.2f}-{one.high:.2f}",
            f"{one.cost:.3f}",
            f"{one.violations:.2f}%",
            "" if one.change is None else f"{100 * one.change:+.1f}%",
            "" if one.wins is None else f"{one.wins}/{one.traces}",
            f"{one.worst:.2f}",
            "" if one.churn is None else f"x{one.churn:.1f}",
            one.worst_trace,
        )
    return table
