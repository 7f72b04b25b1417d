"""trimtab backtest: what policies would have done with a workload's own history, the optimum beside them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from trimtab.cli.load_source import LoadOptions, load_options, query_options, read_load
from trimtab.cli.option_groups import PrometheusOptions
from trimtab.cli.options import OUT_FILE, OUT_FILE_OR_DASH, Finite, duration, objective
from trimtab.cli.output import write_file
from trimtab.errors import InvalidInput
from trimtab.quantity import format_duration
from trimtab.sim.grid import HOUR_STEPS, STEP_S

if TYPE_CHECKING:
    from rich.table import Table

    from trimtab.cli.policy_files import NamedPolicy
    from trimtab.sim.cluster_spec import ClusterSpec
    from trimtab.tune.demand import Demand
    from trimtab.tune.policy_backtest import BacktestOutcome
    from trimtab.web.report import Section

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


@click.command(name="backtest")
@click.option(
    "-f",
    "--filename",
    "files",
    multiple=True,
    help="Manifests: policies, and their workloads for the requests; a file, a folder or -, may be repeated.",
)
@click.option("--compare", nargs=2, metavar="A B", help="Two manifests: how B differs from A.")
@load_options
@query_options
@click.option("--startup", type=duration, default="2m", show_default=True, help="From a pod's creation to serving.")
@click.option("--jitter", is_flag=True, help="Start-ups vary by 0.7 to 1.6 of that.")
@click.option(
    "--pod-capacity",
    type=Finite(0, min_open=True),
    help="Load one pod carries at 100 %; else its CPU request, or target / 0.7.",
)
@click.option(
    "--on-total",
    is_flag=True,
    help="Judge by the total of the load, as `tune` and the dashboard do: in a moment, without what each pod reports.",
)
@click.option("--objective", "lam", type=objective, default="balanced", show_default=True, help=objective.__doc__)
@click.option(
    "--fail-if", "conditions", multiple=True, metavar="CONDITION", help="Exit with 1, such as 'violations > 1%'."
)
@click.option("--html", type=OUT_FILE, help="Write a page with charts to zoom.")
@click.option("--journal", type=OUT_FILE, help="Record every decision, for `trimtab explain` and `dashboard`.")
@click.option("--json", "out", type=OUT_FILE_OR_DASH, help="Write figures; - is the standard output.")
def command(
    files: tuple[str, ...],
    compare: tuple[str, str] | None,
    startup: float,
    jitter: bool,
    pod_capacity: float | None,
    on_total: bool,
    lam: float,
    conditions: tuple[str, ...],
    html: Path | None,
    journal: Path | None,
    out: Path | None,
    load: LoadOptions,
    prometheus: PrometheusOptions,
) -> None:
    """Replay a workload's own history under policies, with the code that runs in the cluster.

    \b
    trimtab backtest -f web.yaml --load history.csv --startup 90s
    trimtab backtest --compare old.yaml new.yaml --load history.csv --fail-if 'violations > 1%' --fail-if 'cost > +5%'

    Exit code 0: done, 1: a condition of --fail-if holds, 2: it could not be done.
    """
    from rich.progress import track

    from trimtab.cli.policy_files import read_policies, standing_still
    from trimtab.cli.screen import screen
    from trimtab.sim.cluster_spec import ClusterSpec
    from trimtab.tune.demand import check_unit, idle_note, memory_note
    from trimtab.tune.demand import pod_capacity as capacity_of
    from trimtab.tune.fail_if import failure, parse_fail_if
    from trimtab.tune.policy_backtest import backtest, on_the_total

    parsed = [parse_fail_if(text) for text in conditions]
    chosen = (*files, *(compare or ()))
    if not chosen:
        raise click.UsageError("name policies with -f FILE or --compare A B")
    demand = read_load(load, prometheus)
    policies = read_policies(chosen, demand.start, demand.days * 86400)
    if len(policies) == 1 and (lonely := next((limit for limit in parsed if limit.relative), None)):
        raise InvalidInput("--fail-if", lonely.text, "a value with a sign needs a second policy: use --compare")
    capacity, note = capacity_of(policies[0].policy, pod_capacity, policies[0].pod)
    check_unit(demand, capacity, load.source)
    cluster = ClusterSpec(
        startup_s=startup,
        startup_jitter=(0.7, 1.6) if jitter else (1.0, 1.0),
        pod_capacity=capacity,
        pod_cores=capacity,
    )
    judged_as = [on_the_total(named.policy, cluster) if on_total else (named.policy, "") for named in policies]
    console = screen(stderr=True)
    outcomes = [
        backtest(named.name, policy, demand, cluster, lam)
        for named, (policy, _) in track(
            list(zip(policies, judged_as, strict=True)),
            "Policies",
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
    ]
    idle = idle_note(demand, capacity, policies[0].policy.bounds.min_replicas)
    others = (text for named in policies for text in (*named.notes, *standing_still(named), memory_note(named.policy)))
    how = (text for _, text in judged_as)
    notes = list(dict.fromkeys(text for text in (*demand.notes, note, idle, *how, *others) if text))
    _print(outcomes, demand, notes, quiet=str(out) == "-")
    _write(outcomes, demand, notes, lam, startup, html, out)
    if journal is not None:
        _record(journal, policies, demand, cluster)
    judged = outcomes[1:] if compare else outcomes  # the first of a comparison is what there is already
    failures = [text for fail_if in parsed for outcome in judged if (text := failure(fail_if, outcome, outcomes[0]))]
    for text in failures:
        click.echo(f"over the limit: {text}", err=True)
    raise SystemExit(1 if failures else 0)


def _record(path: Path, policies: list[NamedPolicy], demand: Demand, cluster: ClusterSpec) -> None:
    """Each policy as an object of its own, step by step as the operator would have recorded it."""
    from trimtab.journal import Journal, ObjectName
    from trimtab.tune.policy_backtest import first_pods
    from trimtab.tune.recording import record

    clear_journal(path)
    journal = Journal(path)
    for named in policies:
        first = first_pods(named.policy, float(demand.values[0]) / cluster.pod_capacity)
        name = ObjectName("Autoscaler", "backtest", named.name)
        record(journal, name, named.policy, demand.values, cluster, first_pods=first, start=demand.start)
    journal.prune(demand.start + demand.days * 86400 - 900)
    journal.close()
    click.echo(f"journal: {path}; try: trimtab dashboard --journal {path}", err=True)


def clear_journal(path: Path) -> None:
    """The journal of last time makes way; any other file is left alone and said."""
    from trimtab.journal import Journal

    if path.exists():
        Journal.read(path).close()
        for suffix in ("", "-wal", "-shm"):
            Path(f"{path}{suffix}").unlink(missing_ok=True)


def _print(outcomes: list[BacktestOutcome], demand: Demand, notes: list[str], quiet: bool) -> None:
    from trimtab.cli.plot import Line, plot
    from trimtab.cli.screen import screen

    console = screen(stderr=quiet)
    console.show(table(outcomes), SPARE)
    lines = [Line("optimum", outcomes[0].best.astype(float), "bright_black")]
    lines += [
        Line(outcome.policy, outcome.run.replicas.astype(float), COLOURS[number % len(COLOURS)])
        for number, outcome in enumerate(outcomes[: len(COLOURS)])
    ]
    console.print()
    console.print(plot(lines, when(demand.start), when(demand.start + demand.days * 86400), console.plot_width))
    for outcome in outcomes:
        if outcome.why_slow:
            notes.append(f"{outcome.policy}: run step by step, because {outcome.why_slow}")
        if outcome.run.resized.any():
            resizes = outcome.score.resizes_per_pod_day
            notes.append(
                f"{outcome.policy}: the bridge resizes a pod {resizes:.0f} times per day; its cpu is in the cost"
            )
    for note in notes:
        console.print(f"note: {note}", style="dim")


def table(outcomes: list[BacktestOutcome]) -> Table:
    """One line per policy, the optimum first."""
    from rich.table import Table

    found = Table(box=None, pad_edge=False)
    for number, heading in enumerate(HEADINGS):
        side: Literal["left", "right"] = "left" if number in (0, len(HEADINGS) - 1) else "right"
        found.add_column(heading.upper(), justify=side, no_wrap=True)
    for number, row in enumerate(rows(outcomes)):
        found.add_row(*row, style="" if number else "dim")
    return found


def rows(outcomes: list[BacktestOutcome]) -> list[tuple[str, ...]]:
    best = f"{float(outcomes[0].best.sum()) / HOUR_STEPS:,.0f}"
    return [("optimum", best, "1.00", "0.00%", "", "1.00", "+0%", "", "", ""), *map(_row, outcomes)]


def _row(outcome: BacktestOutcome) -> tuple[str, ...]:
    return (
        outcome.policy,
        f"{outcome.pod_hours:,.0f}",
        f"{outcome.score.cost:.2f}",
        f"{outcome.score.violations:.2f}%",
        f"{outcome.score.churn_per_day:.0f}",
        f"{outcome.score.j:.2f}",
        f"{100 * outcome.score.regret:+.0f}%",
        f"{outcome.provisioning.under:.2f}%",
        f"{outcome.provisioning.over:.0f}%",
        f"{when(outcome.worst.start)} {outcome.worst.violations:.0f}%" if outcome.worst.violations else "none",
    )


def when(at: float) -> str:
    """A moment as people read it; a made-up load begins on day 1."""
    if at < 400 * 86400:
        return f"day {int(at // 86400) + 1} {int(at % 86400 // 3600):02d}:00"
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")


def _write(
    outcomes: list[BacktestOutcome],
    demand: Demand,
    notes: list[str],
    lam: float,
    startup_s: float,
    html: Path | None,
    out: Path | None,
) -> None:
    if out is not None:
        content = json.dumps(_plain(outcomes, demand, notes, lam, startup_s), indent=1)
        click.echo(content) if str(out) == "-" else write_file(out, content + "\n")
    if html is not None:
        from trimtab.web.report import page

        about = (
            f"{demand.days:.1f} days from {when(demand.start)} UTC, start-up {format_duration(startup_s)},"
            f" one violated pod-minute costs {lam:g} pod-minutes."
        )
        parts = [section(demand, outcomes, notes)]
        write_file(html, page(f"Backtest of {demand.name}", about, parts, verdict(outcomes)))
        click.echo(f"report: {html}", err=True)


def verdict(outcomes: list[BacktestOutcome]) -> str:
    """What it comes to, in one line: the last policy against the first, or a single one against the optimum."""
    first, last = outcomes[0], outcomes[-1]
    if first is last:
        return (
            f"{first.policy}: all costs together are {100 * first.score.regret:+.0f} % above the optimum;"
            f" {first.score.violations:.2f} % of the load met too little capacity."
        )
    word = "better" if last.score.j < first.score.j else "worse"
    return (
        f"{last.policy} is {word} than {first.policy}: all costs together"
        f" {100 * (last.score.j / first.score.j - 1):+.1f} %, pod hours"
        f" {100 * (last.pod_hours / first.pod_hours - 1):+.1f} %, violations {first.score.violations:.2f} % to"
        f" {last.score.violations:.2f} % of the load."
    )


def section(demand: Demand, outcomes: list[BacktestOutcome], notes: list[str]) -> Section:
    """A workload's part of the page."""
    from trimtab.web.report import ChartLine, Section

    lines = [ChartLine("load, in pods at 100 %", outcomes[0].run.load, "load")]
    lines += [ChartLine("optimum", outcomes[0].best.astype(float), "optimum")]
    lines += [ChartLine(outcome.policy, outcome.run.replicas.astype(float)) for outcome in outcomes]
    return Section(demand.name, HEADINGS, rows(outcomes), demand.start, float(STEP_S), lines, notes)


def _plain(
    outcomes: list[BacktestOutcome], demand: Demand, notes: list[str], lam: float, startup_s: float
) -> dict[str, Any]:
    return {
        "load": {"name": demand.name, "start": demand.start, "days": demand.days, "notes": notes},
        "lambda": lam,
        "startupSeconds": startup_s,
        "policies": [
            {
                "name": outcome.policy,
                **outcome.figures(),
                "worstHour": when(outcome.worst.start),
                "optimum": outcome.score.j_oracle / HOUR_STEPS,
            }
            for outcome in outcomes
        ],
    }
