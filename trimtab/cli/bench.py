"""trimtab bench: the whole protocol over a folder of traces: who scales how well, and how sure that is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trimtab.cli.options import OUT_FILE, durations, prices, words
from trimtab.cli.output import write_file
from trimtab.cli.workers import EngineOptions, engine_options
from trimtab.errors import NotEnoughData, TrimtabError
from trimtab.quantity import format_duration
from trimtab.sim.prices import OBJECTIVES

if TYPE_CHECKING:
    from rich.table import Table

    from trimtab.bench.summary import BenchRow, BenchSummary
    from trimtab.bench.thesis_replay import Replayed
    from trimtab.series import Series


SPARE = ("WORST TRACE", "RESIZES", "CHURN", "WORST", "WINS")  # what a narrow terminal does without, in this order


@click.command(name="bench")
@click.option(
    "--traces", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Folder of Parquet traces."
)
@click.option("--generated", is_flag=True, help="Loads made up from seeds, the same everywhere, instead of traces.")
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
    default=",".join(f"{price:g}" for price in OBJECTIVES.values()),
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
@click.option(
    "--view",
    type=click.Choice(["operator", "fresh", "ideal"]),
    default="operator",
    show_default=True,
    help="What policies see: the mean of the minute that ended 15 s ago; 15 s, as late; or, as no operator does, "
    "the newest minute.",
)
@engine_options
@click.option("--json", "out", type=OUT_FILE, help="Write every row to this file.")
@click.option("--list", "lists", is_flag=True, help="Print the contenders that are known.")
@click.option("--thesis", is_flag=True, help="Replay the evaluation of the thesis on predictive HPA instead.")
@click.option("--seeds", type=click.IntRange(2, 1000), default=30, show_default=True, help="Runs of --thesis.")
def command(
    traces: Path | None,
    generated: bool,
    match: str,
    startups_s: list[float],
    lambdas: list[float],
    names: list[str],
    view: str,
    out: Path | None,
    lists: bool,
    thesis: bool,
    seeds: int,
    engine: EngineOptions,
) -> None:
    """Run the benchmark protocol over every trace of a folder.

    J is pod-steps + LAMBDA x violating load + 8 x starts, over the clairvoyant optimum of replicas: below 1 is only who
    also changes the size of pods.
    """
    from rich.progress import track

    from trimtab.bench.contenders import CONTENDERS, check_names
    from trimtab.bench.summary import BenchRow, summarise
    from trimtab.bench.traces import generated_traces, traces_in
    from trimtab.cli.screen import screen

    if lists:
        click.echo("\n".join(sorted(CONTENDERS)))
        return
    if thesis:
        _thesis(seeds, out)
        return
    if generated == (traces is not None):
        missing = "name a folder of Parquet files with timestamp and value, or --generated"
        raise click.UsageError(
            "--traces is missing: " + missing if traces is None else "--traces or --generated, not both"
        )
    check_names(names)
    found_traces = generated_traces(match) if traces is None else traces_in(traces, match)
    console, rows = screen(stderr=True), list[BenchRow]()
    calls = [(name, trace, names, startups_s, lambdas, view) for name, trace in found_traces]
    answers = engine.each(_rows_of_trace, calls)
    shown = track(answers, "Traces", len(calls), console=console, transient=True, disable=not console.is_terminal)
    for (name, *_), answer in zip(calls, shown, strict=True):
        if isinstance(answer, TrimtabError):
            click.echo(f"trimtab: {name}: {answer}", err=True)
        else:
            rows += answer
    if not rows:
        raise NotEnoughData("no trace could be run")
    found = summarise(rows)
    if out is not None:
        content = {"summary": [summary.plain() for summary in found], "rows": [row.plain() for row in rows]}
        write_file(out, json.dumps(content, indent=1) + "\n")
    screen().show(_table(found), SPARE)


def _thesis(seeds: int, out: Path | None) -> None:
    from trimtab.bench.thesis_replay import LINES, PUBLISHED, replay_pattern
    from trimtab.cli.screen import screen

    found = [replay_pattern(*key, seeds, line) for line in LINES for key in PUBLISHED]
    if out is not None:
        rows = [
            comparison._asdict()
            | {"published": comparison.published and comparison.published._asdict(), "same_sign": comparison.same_sign}
            for comparison in found
        ]
        write_file(out, json.dumps({"thesis": rows}, indent=1) + "\n")
    screen().show(_thesis_table(found, seeds))
    for line in LINES:
        signs = [row.same_sign for row in found if row.line == line and row.same_sign is not None]
        click.echo(f"{line}: {sum(signs)} of {len(signs)} published signs")


def _thesis_table(found: list[Replayed], seeds: int) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, title="The thesis: predictive against reactive, above zero is better")
    for heading in ("PATTERN", "WINDOWS", "LINE"):
        table.add_column(heading)
    figures = ("MEAN", "STD", "Z", "P")
    for heading in (*figures, "PUBLISHED MEAN", *figures[1:], "SIGN", f"PAIRED T, {seeds} SEEDS", "P"):
        table.add_column(heading, justify="right")
    for row in found:
        ours = (f"{value:+.3f}" for value in (row.mean, row.std, row.z, row.p))
        theirs = (f"{value:+.3f}" for value in row.published) if row.published else ("", "", "", "")
        paired = (f"{row.paired_t:+.2f}", f"{row.paired_p:.3f}")
        table.add_row(row.pattern, row.version, row.line, *ours, *theirs, _SIGNS[row.same_sign], *paired)
    return table


_SIGNS = {True: "same", False: "other", None: ""}


def _rows_of_trace(
    name: str, trace: Series, names: list[str], startups_s: list[float], lambdas: list[float], view: str
) -> list[BenchRow]:
    """One trace, in a process of its own."""
    from trimtab.bench.contenders import rows_of
    from trimtab.bench.families import VIEWS
    from trimtab.bench.protocol import load_of

    return rows_of(load_of(name, trace), names, startups_s, lambdas, view=VIEWS[view])


def _table(found: list[BenchSummary]) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in ("INIT", "LAMBDA", "POLICY"):
        table.add_column(heading, no_wrap=True)
    for heading in ("J", "95 %", "COST", "VIOLATIONS", "TO DEFAULT", "TO RETUNED", "WINS", "WORST", "CHURN", "RESIZES"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("WORST TRACE", no_wrap=True)
    for summary in sorted(found, key=lambda summary: (summary.lam, summary.init_s)):
        table.add_row(
            format_duration(summary.init_s),
            f"{summary.lam:g}",
            summary.policy,
            f"{summary.j:.3f}",
            f"{summary.low:.2f}-{summary.high:.2f}",
            f"{summary.cost:.3f}",
            f"{summary.violations:.2f}%",
            "" if summary.change is None else f"{100 * summary.change:+.1f}%",
            "" if summary.to_retuned is None else f"{summary.to_retuned:.3f}",
            "" if summary.wins is None else f"{summary.wins}/{summary.traces}",
            f"{summary.worst:.2f}",
            "" if summary.churn is None else f"x{summary.churn:.1f}",
            f"{summary.resizes:.0f}" if summary.resizes else "",
            summary.worst_trace,
        )
    return table
