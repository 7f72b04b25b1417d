"""trimtab bench: the whole protocol over a folder of traces: who scales how well, and how sure that is."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.progress import track
from rich.table import Table

from trimtab.cli.options import OUT_FILE, durations, prices, words
from trimtab.cli.output import write_file
from trimtab.cli.screen import screen
from trimtab.cli.workers import working
from trimtab.quantity import format_duration

if TYPE_CHECKING:
    from trimtab.series import Series
    from trimtab.tune.bench import Row, Summary


SPARE = ("WORST TRACE", "CHURN", "WORST", "WINS")  # what a narrow terminal does without, in this order


@click.command(name="bench")
@click.option(
    "--traces", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Folder of Parquet traces."
)
@click.option("--match", default="*", show_default=True, help="Only traces whose name matches, such as '*_1min'.")
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
@click.option("--json", "out", type=OUT_FILE, help="Write every row to this file.")
@click.option("--list", "lists", is_flag=True, help="Print the contenders that are known.")
@click.option("--thesis", is_flag=True, help="Replay the evaluation of document 003 instead.")
@click.option("--seeds", type=click.IntRange(2, 1000), default=30, show_default=True, help="Runs of --thesis.")
def command(
    traces: Path | None,
    match: str,
    startups_s: list[float],
    lambdas: list[float],
    names: list[str],
    out: Path | None,
    lists: bool,
    thesis: bool,
    seeds: int,
) -> None:
    """Run the benchmark protocol over every trace of a folder.

    J is pod-steps + LAMBDA x violating load + 8 x starts, over the clairvoyant optimum of replicas: below 1 is only who
    also changes the size of pods.
    """
    from trimtab.sim.traces import traces_in
    from trimtab.tune.bench import CONTENDERS, Row, check_names, summarise

    if lists:
        click.echo("\n".join(sorted(CONTENDERS)))
        return
    if thesis:
        _thesis(seeds, out)
        return
    if traces is None:
        raise click.UsageError("--traces is missing: name a folder of Parquet files with timestamp and value")
    check_names(names)
    found_traces, console, rows = traces_in(traces, match), screen(stderr=True), list[Row]()
    jobs = [partial(_one, name, trace, names, startups_s, lambdas) for name, trace in found_traces]
    with working(jobs) as futures:
        for future in track(futures, "Traces", console=console, transient=True, disable=not console.is_terminal):
            rows += future.result()
    found = summarise(rows)
    if out is not None:
        content = {"summary": [one.plain() for one in found], "rows": [row.plain() for row in rows]}
        write_file(out, json.dumps(content, indent=1) + "\n")
    screen().show(_table(found), SPARE)


def _thesis(seeds: int, out: Path | None) -> None:
    from trimtab.sim.thesis_replay import PUBLISHED, replay

    found = [replay(*key, seeds) for key in PUBLISHED]
    if out is not None:
        rows = [one._asdict() | {"published": one.published and one.published._asdict()} for one in found]
        write_file(out, json.dumps({"thesis": rows}, indent=1) + "\n")
    table = Table(box=None, pad_edge=False, title="Document 003: predictive against reactive, above zero is better")
    for heading in ("PATTERN", "WINDOWS"):
        table.add_column(heading)
    for heading in ("MEAN", "STD", "Z", "P", "PUBLISHED MEAN", "STD", "Z", "P", f"PAIRED T, {seeds} SEEDS", "P"):
        table.add_column(heading, justify="right")
    for one in found:
        ours = (f"{value:+.3f}" for value in (one.mean, one.std, one.z, one.p))
        theirs = (f"{value:+.3f}" for value in one.published) if one.published else ("", "", "", "")
        table.add_row(one.pattern, one.version, *ours, *theirs, f"{one.paired_t:+.2f}", f"{one.paired_p:.3f}")
    screen().show(table)


def _one(name: str, trace: Series, names: list[str], startups_s: list[float], lambdas: list[float]) -> list[Row]:
    """One trace, in a process of its own."""
    from trimtab.sim.protocol import load_of
    from trimtab.tune.bench import rows_of

    return rows_of(load_of(name, trace), names, startups_s, lambdas)


def _table(found: list[Summary]) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("INIT", "LAMBDA", "POLICY"):
        table.add_column(heading, no_wrap=True)
    for heading in ("J", "95 %", "COST", "VIOLATIONS", "TO DEFAULT", "WINS", "WORST", "CHURN"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("WORST TRACE", no_wrap=True)
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
