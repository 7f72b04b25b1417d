"""What a backtest prints and writes: a table and curves, figures as JSON, a page with charts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import click

from trimtab.cli.output import markdown_table, write_file
from trimtab.quantity import format_duration
from trimtab.sim.grid import HOUR_STEPS, STEP_S

if TYPE_CHECKING:
    from rich.table import Table

    from trimtab.tune.case import Outcome
    from trimtab.tune.demand import Demand
    from trimtab.web.report import Section

LEAST_DIFFERENCE = 0.0005  # of all costs together: less is not shown either
COLOURS = ("cyan", "magenta", "yellow", "green")
HEADINGS = (
    "policy",
    "pod hours",
    "cost",
    "violations",
    "churn/day",
    "J",
    "regret",
    "under",
    "over",
    "worst hour",
)
SPARE = ("REGRET", "OVER", "UNDER", "POD HOURS", "WORST HOUR")  # what a narrow terminal does without, in this order


class Terms(NamedTuple):
    """What figures hold for: how long pods take to start, the price of a violation, and when a pod is overloaded."""

    startup_s: float
    lam: float
    level: str


def print_outcomes(outcomes: list[Outcome], demand: Demand, notes: list[str]) -> None:
    from trimtab.cli.plot import Line, plot
    from trimtab.cli.screen import screen

    console = screen()
    console.show(table(outcomes), SPARE)
    lines = [Line("optimum", outcomes[0].best.astype(float), "bright_black")]
    lines += [
        Line(outcome.policy, outcome.run.replicas.astype(float), COLOURS[number % len(COLOURS)])
        for number, outcome in enumerate(outcomes[: len(COLOURS)])
    ]
    console.print()
    console.print(plot(lines, when(demand.start), when(demand.start + demand.days * 86400), console.plot_width))
    for note in notes:
        console.print(f"note: {note}", style="dim")


def markdown(outcomes: list[Outcome], demand: Demand, notes: list[str]) -> str:
    """What it comes to, the figures, and what to know about them, for a pull request."""
    about = f"{demand.days:.1f} days of {demand.name} from {when(demand.start)} UTC"
    said = "".join(f"- {note}\n" for note in (about, *notes))
    return f"**{verdict(outcomes)}**\n\n{markdown_table(HEADINGS, rows(outcomes))}\n{said}"


def remarks(outcomes: list[Outcome]) -> Iterator[str]:
    """How each was run."""
    for outcome in outcomes:
        if outcome.why_slow:
            yield f"{outcome.policy}: run step by step, because {outcome.why_slow}"
        if outcome.run.resized.any():
            resizes = outcome.figures.resizes_per_pod_day
            yield f"{outcome.policy}: the bridge resizes a pod {resizes:.0f} times per day; its cpu is in the cost"


def table(outcomes: list[Outcome]) -> Table:
    """One line per policy, the optimum first."""
    from rich.table import Table

    found = Table(box=None, pad_edge=False)
    for number, heading in enumerate(HEADINGS):
        side: Literal["left", "right"] = "left" if number in (0, len(HEADINGS) - 1) else "right"
        found.add_column(heading.upper(), justify=side, no_wrap=True)
    for number, row in enumerate(rows(outcomes)):
        found.add_row(*row, style="" if number else "dim")
    return found


def rows(outcomes: list[Outcome]) -> list[tuple[str, ...]]:
    best = f"{float(outcomes[0].best.sum()) / HOUR_STEPS:,.0f}"
    return [("optimum", best, "1.00", "0.00%", "", "1.00", "+0%", "", "", ""), *map(_row, outcomes)]


def _row(outcome: Outcome) -> tuple[str, ...]:
    return (
        outcome.policy,
        f"{outcome.pod_hours:,.0f}",
        f"{outcome.figures.cost:.2f}",
        f"{outcome.figures.violations:.2f}%",
        f"{outcome.figures.churn_per_day:.0f}",
        f"{outcome.figures.j:.2f}",
        f"{100 * outcome.figures.regret:+.0f}%",
        f"{outcome.provisioning.under:.2f}%",
        f"{outcome.provisioning.over:.0f}%",
        f"{when(outcome.worst.start)} {outcome.worst.violations:.0f}%" if outcome.worst.violations else "none",
    )


def when(at: float) -> str:
    """A moment as people read it; a made-up load begins on day 1."""
    if at < 400 * 86400:
        return f"day {int(at // 86400) + 1} {int(at % 86400 // 3600):02d}:00"
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")


def write_outcomes(
    outcomes: list[Outcome],
    demand: Demand,
    notes: list[str],
    terms: Terms,
    html: Path | None,
    out: Path | None,
) -> None:
    if out is not None:
        write_file(out, figures(outcomes, demand, notes, terms))
    if html is not None:
        write_file(html, _page(outcomes, demand, notes, terms))
        click.echo(f"report: {html}", err=True)


def _page(outcomes: list[Outcome], demand: Demand, notes: list[str], terms: Terms) -> str:
    from trimtab.web.report import page

    about = (
        f"{demand.days:.1f} days from {when(demand.start)} UTC, start-up {format_duration(terms.startup_s)},"
        f" one violated pod-minute costs {terms.lam:g} pod-minutes; a pod is {terms.level}."
    )
    return page(f"Backtest of {demand.name}", about, [section(demand, outcomes, notes)], verdict(outcomes))


def verdict(outcomes: list[Outcome]) -> str:
    """What it comes to, in one line: the last policy against the first, or a single one against the optimum."""
    first, last = outcomes[0], outcomes[-1]
    if first is last:
        return (
            f"{first.policy}: all costs together are {100 * first.figures.regret:+.0f} % above the optimum;"
            f" {first.figures.violations:.2f} % of the load met too little capacity."
        )
    more = last.figures.j / first.figures.j - 1
    word = "as good as" if abs(more) < LEAST_DIFFERENCE else "better than" if more < 0 else "worse than"
    return (
        f"{last.policy} is {word} {first.policy}: all costs together {100 * more:+.1f} %, pod hours"
        f" {100 * (last.pod_hours / first.pod_hours - 1):+.1f} %, violations {first.figures.violations:.2f} % to"
        f" {last.figures.violations:.2f} % of the load."
    )


def section(demand: Demand, outcomes: list[Outcome], notes: list[str]) -> Section:
    """A workload's part of the page."""
    from trimtab.web.report import ChartLine, Section

    lines = [ChartLine("load, in pods at 100 %", outcomes[0].run.load, "load")]
    lines += [ChartLine("optimum", outcomes[0].best.astype(float), "optimum")]
    lines += [ChartLine(outcome.policy, outcome.run.replicas.astype(float)) for outcome in outcomes]
    return Section(demand.name, HEADINGS, rows(outcomes), demand.start, float(STEP_S), lines, notes)


def figures(outcomes: list[Outcome], demand: Demand, notes: list[str], terms: Terms) -> str:
    """All of them, as JSON."""
    found = {
        "load": {"name": demand.name, "start": demand.start, "days": demand.days, "notes": notes},
        "lambda": terms.lam,
        "startupSeconds": terms.startup_s,
        "level": terms.level,
        "policies": [_figures(outcome) for outcome in outcomes],
    }
    return json.dumps(found, indent=1) + "\n"


def _figures(outcome: Outcome) -> dict[str, Any]:
    worst, optimum = when(outcome.worst.start), outcome.figures.optimum / HOUR_STEPS
    return {"name": outcome.policy, **outcome.by_name(), "worstHour": worst, "optimum": optimum}
