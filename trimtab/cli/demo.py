"""trimtab demo: a small simulated shop, scaled by default HPA and by trimtab; no cluster, no files, one minute."""

from __future__ import annotations

import sys
import time
from concurrent.futures import as_completed
from pathlib import Path
from statistics import fmean, geometric_mean
from typing import TYPE_CHECKING

import click

from trimtab.cli.backtest import clear_journal
from trimtab.cli.backtest_report import COLOURS, section
from trimtab.cli.dashboard import show
from trimtab.cli.options import OUT_FILE
from trimtab.cli.output import called, write_file
from trimtab.cli.workers import on_all_cores
from trimtab.sim.prices import OBJECTIVES

if TYPE_CHECKING:
    from rich.table import Table

    from trimtab.cli.screen import Screen
    from trimtab.tune.case import Outcome
    from trimtab.tune.demand import Demand
    from trimtab.tune.demo_play import DemoResult

HEADINGS = ("workload", "scaled by", "pod hours", "cost", "violations", "churn/day", "J", "how")
EXPLAINED = 3
SHOWN_DAYS = 3
ABOUT = (
    "The second week of a simulated shop, scaled by default HPA and by trimtab, which was tuned on the first week."
    " One violated pod-minute costs 32 pod-minutes; times are UTC."
)


@click.command(name="demo")
@click.option(
    "--html",
    type=OUT_FILE,
    default=Path("trimtab-demo.html"),
    show_default=True,
    help="Where the report is written.",
)
@click.option(
    "--journal",
    type=OUT_FILE,
    default=Path("trimtab-demo.db"),
    show_default=True,
    help="Where its decisions are written, for `trimtab explain`, `replay` and `dashboard`.",
)
@click.option(
    "--dashboard/--no-dashboard",
    default=None,
    help="End with the dashboard, simulated time running fast; by default on a terminal only.",
)
@click.option("--port", type=click.IntRange(0, 65535), default=8090, show_default=True, help="Of the dashboard.")
def command(html: Path, journal: Path, dashboard: bool | None, port: int) -> None:
    """See what trimtab does: four simulated workloads over two weeks, tuned on the first, scored on the second."""
    from trimtab.cli.screen import screen
    from trimtab.web.report import page

    clear_journal(journal)

    began, console = time.time(), screen()
    console.print("A simulated shop: four workloads, two weeks. trimtab is tuned on the first week; both are scored")
    price = OBJECTIVES["balanced"]
    console.print(
        f"on the second. 1.00 is the clairvoyant optimum of replicas; a violated pod-minute costs {price:g}.\n"
    )
    results = _play_all()
    console.show(_table(results), ("HOW", "POD HOURS", "CHURN/DAY"))
    console.print(f"\n{_headline(results)}\n")
    _plot(console, results)
    console.print("\nWhy, in its own words:")
    for line in _told(results):
        console.print(f"  {line}", soft_wrap=True)
    sections = [section(_second_week(result), _both(result), [result.how, *result.decisions]) for result in results]
    write_file(html, page("trimtab demo", ABOUT, sections, _headline(results)))
    console.print(f"\nreport: {html.resolve()}  ({time.time() - began:.0f} s)")
    _look(results, journal, sys.stdout.isatty() if dashboard is None else dashboard, port)


def _look(results: list[DemoResult], path: Path, dashboard: bool, port: int) -> None:
    """Leave a journal of the last days; where somebody looks, go on and show it."""
    from trimtab.tune.demo_journal import SPEED, DemoJournal
    from trimtab.web.server import serve
    from trimtab.web.sources import JournalSource

    name = results[0].workload.name
    with DemoJournal(path, results, time.time(), live=dashboard):
        click.echo(f"journal: {path}; try: {called()} explain demo/{name} --journal {path}")
        if dashboard:
            source = JournalSource(path, "trimtab demo", f"simulated time, {SPEED:g} times as fast")
            show(lambda opened: serve(source, port, opened), opens=False)


def _play_all() -> list[DemoResult]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from trimtab.cli.screen import screen
    from trimtab.tune.demo_fleet import demo_fleet
    from trimtab.tune.demo_play import play

    workloads = demo_fleet()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = screen(stderr=True)
    found: dict[str, DemoResult] = {}
    slowest_first = [(workload,) for workload in reversed(workloads)]  # so that no core waits for it at the end
    with (
        on_all_cores(play, slowest_first) as jobs,
        Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress,
    ):
        task = progress.add_task("Simulating", total=len(workloads))
        for job in as_completed(jobs):
            found[job.result().workload.name] = job.result()
            progress.advance(task)
    return [found[workload.name] for workload in workloads]


def _second_week(result: DemoResult) -> Demand:
    from trimtab.sim.grid import STEP_S
    from trimtab.tune.demo_fleet import WEEK

    demand, title = result.workload.demand, f"{result.workload.name}: {result.workload.about}"
    return demand._replace(name=title, values=demand.values[WEEK:], start=float(WEEK * STEP_S))


def _both(result: DemoResult) -> list[Outcome]:
    return [result.default, result.ours]


def _table(results: list[DemoResult]) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for number, heading in enumerate(HEADINGS):
        table.add_column(
            heading.upper(), justify="left" if number in (0, 1, len(HEADINGS) - 1) else "right", no_wrap=True
        )
    for result in results:
        table.add_row(result.workload.name, *_cells(result.default), result.workload.about, style="dim")
        table.add_row("", *_cells(result.ours), result.how)
    return table


def _cells(outcome: Outcome) -> tuple[str, ...]:
    figures = outcome.figures
    return (
        outcome.policy,
        f"{outcome.pod_hours:,.0f}",
        f"{figures.cost:.2f}",
        f"{figures.violations:.2f}%",
        f"{figures.churn_per_day:.0f}",
        f"{figures.j:.2f}",
    )


def _headline(results: list[DemoResult]) -> str:
    change = geometric_mean([result.ours.figures.j / result.default.figures.j for result in results]) - 1
    before, after = (
        fmean([outcome.figures.violations for outcome in each]) for each in zip(*map(_both, results), strict=True)
    )
    hours = [sum(outcome.pod_hours for outcome in each) for each in zip(*map(_both, results), strict=True)]
    return (
        f"All costs together (J) {change:+.0%}; violations {before:.2f}% to {after:.2f}% of the load; "
        f"pod hours {hours[1] / hours[0] - 1:+.0%}."
    )


def _plot(console: Screen, results: list[DemoResult]) -> None:
    """The workload that gained most, for a few days."""
    from trimtab.cli.plot import Line, plot
    from trimtab.sim.grid import DAY_STEPS

    most = min(results, key=lambda result: result.ours.figures.j / result.default.figures.j)
    shown = slice(SHOWN_DAYS * DAY_STEPS)
    lines = [Line("optimum", most.ours.best[shown].astype(float), "bright_black")]
    lines += [
        Line(outcome.policy, outcome.run.replicas[shown].astype(float), colour)
        for outcome, colour in zip(_both(most), COLOURS, strict=False)
    ]
    console.print(f"{most.workload.name}, replicas over {SHOWN_DAYS} days:")
    console.print(plot(lines, "day 8", f"day {7 + SHOWN_DAYS}", console.plot_width))


def _told(results: list[DemoResult]) -> list[str]:
    """The first story of each workload, until there are enough; forecasts and resizes are the rarest."""
    stories = [(result.workload.name, story) for result in results for story in result.decisions]
    rare = [pair for pair in stories if "forecast" in pair[1] or "memory" in pair[1]]
    ordered = rare[:2] + [pair for pair in stories if pair not in rare]
    return [f"{name:7} {story}" for name, story in ordered[:EXPLAINED]]
