"""trimtab demo: four simulated services, each with a familiar problem, scaled as they are today and by trimtab.

No cluster, no files, no network; under a minute.
"""

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
from trimtab.cli.output import program_name, write_file
from trimtab.cli.workers import on_all_cores

if TYPE_CHECKING:
    from rich.table import Table

    from trimtab.cli.screen import Screen
    from trimtab.tune.case import Outcome
    from trimtab.tune.demand import Demand
    from trimtab.tune.demo_play import DemoResult

HEADINGS = ("workload", "scaled by", "overloaded", "pod hours", "memory", "cost", "J", "what is different")
LEGEND = """\
overloaded  share of the load that met pods above their service level; for the queue, work that waited over a minute
pod hours   in the scored week; memory is what a pod reserved on average
cost, J     1.00 is the least that any schedule could cost in hindsight; J adds 32 pod-minutes per overloaded one"""
EXPLAINED = 4
SHOWN_DAYS = 3
ABOUT = (
    "The second week of four simulated services: scaled as they are today, and by trimtab, which was tuned on the first"
    " week. One overloaded pod-minute costs 32 pod-minutes; times are UTC."
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
    """See what trimtab does: four simulated services over two weeks, tuned on the first, scored on the second."""
    from trimtab.cli.screen import screen
    from trimtab.tune.demo_journal import write_week
    from trimtab.web.report import page

    clear_journal(journal)
    began, console = time.time(), screen()
    console.print("Four simulated services over two weeks. trimtab is tuned on the first week; the second is scored.\n")
    results = _play_all()
    console.show(_table(results), ("POD HOURS", "COST", "MEMORY"))
    console.print(f"\n{LEGEND}\n", style="dim")
    console.print(f"{_headline(results)}\n")
    _plot(console, results)
    console.print("\nWhy, in its own words:")
    for line in _told(results):
        console.print(f"  {line}", soft_wrap=True)
    sections = [section(_second_week(result), _both(result), [result.how, *result.decisions]) for result in results]
    write_file(html, page("trimtab demo", ABOUT, sections, _headline(results)))
    write_week(journal, results)
    console.print(f"\nreport: {html.resolve()}  ({time.time() - began:.0f} s)")
    console.print(f"journal: {journal}; try: {program_name()} explain demo/search --journal {journal}", soft_wrap=True)
    if sys.stdout.isatty() if dashboard is None else dashboard:
        _watch(results, journal, port)


def _watch(results: list[DemoResult], path: Path, port: int) -> None:
    """Continue the simulation and show it until Ctrl-C."""
    from trimtab.tune.demo_journal import SPEED, LiveDemo
    from trimtab.web.server import serve
    from trimtab.web.sources import JournalSource

    with LiveDemo(path, results):
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
    from trimtab.tune.demo_fleet import START, WEEK, WEEK_S

    demand, title = result.workload.demand, f"{result.workload.name}: {result.workload.story}"
    return demand._replace(name=title, values=demand.values[WEEK:], start=START + WEEK_S)


def _both(result: DemoResult) -> list[Outcome]:
    return [result.today, result.ours]


def _table(results: list[DemoResult]) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for number, heading in enumerate(HEADINGS):
        text = number in (0, 1, len(HEADINGS) - 1)
        table.add_column(heading.upper(), justify="left" if text else "right", no_wrap=True)
    for result in results:
        before, after = result.memory_gib
        table.add_row(result.workload.name, *_cells(result.today, before), result.workload.story, style="dim")
        table.add_row("", *_cells(result.ours, after), result.how)
    return table


def _cells(outcome: Outcome, memory_gib: float) -> tuple[str, ...]:
    figures = outcome.figures
    return (
        outcome.policy,
        f"{figures.violations:.2f}%",
        f"{outcome.pod_hours:,.0f}",
        f"{memory_gib:.1f} GiB",
        f"{figures.cost:.2f}",
        f"{figures.j:.2f}",
    )


def _headline(results: list[DemoResult]) -> str:
    """What it comes to, in one sentence."""
    before, after = (
        fmean([outcome.figures.violations for outcome in each]) for each in zip(*map(_both, results), strict=True)
    )
    hours = [sum(outcome.pod_hours for outcome in each) for each in zip(*map(_both, results), strict=True)]
    memory = [
        sum(gib * outcome.pod_hours for gib, outcome in each)
        for each in zip(*[zip(result.memory_gib, _both(result), strict=True) for result in results], strict=True)
    ]
    change = geometric_mean([result.ours.figures.j / result.today.figures.j for result in results]) - 1
    return (
        f"Overload {before:.1f}% to {after:.1f}% of the load, pod hours {hours[1] / hours[0] - 1:+.0%},"
        f" reserved memory {memory[1] / memory[0] - 1:+.0%}; all costs together (J) {change:+.0%}."
    )


def _plot(console: Screen, results: list[DemoResult]) -> None:
    """The slow starter, for a few days."""
    from trimtab.cli.plot import Line, plot
    from trimtab.sim.grid import DAY_STEPS

    slowest = max(results, key=lambda result: result.workload.pods.startup_s)
    shown = slice(SHOWN_DAYS * DAY_STEPS)
    lines = [Line("optimum", slowest.ours.best[shown].astype(float), "bright_black")]
    lines += [
        Line(outcome.policy, outcome.run.replicas[shown].astype(float), colour)
        for outcome, colour in zip(_both(slowest), COLOURS, strict=False)
    ]
    console.print(f"{slowest.workload.name}, replicas over {SHOWN_DAYS} days:")
    console.print(plot(lines, "day 8", f"day {7 + SHOWN_DAYS}", console.plot_width))


def _told(results: list[DemoResult]) -> list[str]:
    """One story of each workload."""
    stories = [(result.workload.name, result.decisions[0]) for result in results if result.decisions]
    return [f"{name:7} {story}" for name, story in stories[:EXPLAINED]]
