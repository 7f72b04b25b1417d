"""trimtab backtest: what policies would have done with a workload's own history, the optimum beside them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trimtab.cli.load_source import JudgingOptions, LoadOptions, judging_options, load_options, query_options, read_load
from trimtab.cli.option_groups import PrometheusOptions
from trimtab.cli.options import OUT_FILE
from trimtab.cli.output import output_option, program_name
from trimtab.cli.workers import EngineOptions, answered, engine_options
from trimtab.errors import InvalidInput

if TYPE_CHECKING:
    from trimtab.cli.policy_files import NamedPolicy
    from trimtab.sim.cluster_spec import ClusterSpec
    from trimtab.tune.case import Case, Outcome
    from trimtab.tune.demand import Demand
    from trimtab.tune.fail_if import FailIf


@click.command(name="backtest")
@click.option(
    "-f",
    "--filename",
    "files",
    multiple=True,
    help="Manifests: policies, and their workloads for the requests; a file, a folder or -, may be repeated."
    " With --compare it is read for workloads only.",
)
@click.option("--compare", nargs=2, metavar="A B", help="Two manifests with one policy each: how B differs from A.")
@load_options
@query_options
@judging_options
@engine_options
@click.option(
    "--on-total",
    is_flag=True,
    help="Judge in a moment, as `tune` and the dashboard do: metrics of pods other than CPU by the total of the load.",
)
@click.option(
    "--fail-if",
    "conditions",
    multiple=True,
    metavar="CONDITION",
    help="Exit with 1 if it holds: 'violations > 1%'; with a sign relative to the first policy: 'cost > +5%'.",
)
@output_option("table", "json", "markdown")
@click.option("--html", type=OUT_FILE, help="Write a page with charts to zoom.")
@click.option("--journal", type=OUT_FILE, help="Record every decision, for `trimtab explain` and `dashboard`.")
@click.option("--json", "out", type=OUT_FILE, help="Write the figures to this file, beside what is printed.")
def command(
    files: tuple[str, ...],
    compare: tuple[str, str] | None,
    on_total: bool,
    conditions: tuple[str, ...],
    output: str,
    html: Path | None,
    journal: Path | None,
    out: Path | None,
    load: LoadOptions,
    prometheus: PrometheusOptions,
    judging: JudgingOptions,
    engine: EngineOptions,
) -> None:
    """Replay a workload's own history under policies, with the code that runs in the cluster.

    \b
    trimtab backtest -f web.yaml --load history.csv --startup 90s
    trimtab backtest --compare old.yaml new.yaml --load history.csv --fail-if 'violations > 1%' --fail-if 'cost > +5%'
    trimtab backtest --compare old.yaml new.yaml --load history.csv -o markdown >> comment.md

    Exit code 0: done, 1: a condition of --fail-if holds, 2: it could not be done.
    """
    from trimtab.cli.backtest_causes import causes
    from trimtab.cli.backtest_report import Terms, figures, markdown, print_outcomes, remarks, write_outcomes
    from trimtab.tune.case import Case
    from trimtab.tune.demand import check_one_unit
    from trimtab.tune.fail_if import parse_fail_if
    from trimtab.tune.judge import judge_of
    from trimtab.tune.queues import backlog_of, queue_notes, queue_of

    parsed = [parse_fail_if(text) for text in conditions]
    if not (files or compare):
        raise click.UsageError("name policies with -f FILE or --compare A B")
    demand = read_load(load, prometheus)
    policies = _policies(files, compare, demand)
    if len(policies) == 1 and (lonely := next((limit for limit in parsed if limit.relative), None)):
        raise InvalidInput("--fail-if", lonely.text, "a value with a sign needs a second policy: use --compare")
    units = check_one_unit([(named.name, named.policy) for named in policies], judging.pod_capacity)
    first = next((named for named in policies if backlog_of(named.policy)), policies[0])  # a queue says what a pod does
    judge, said = judge_of([named.policy for named in policies], judging.price)
    demand, pod, doubt = load.judged(demand, first, judging.pod_terms, judge)
    capacity, queue = pod.judged.request, queue_of(first.policy, pod.judged.request)
    terms = Terms(judging.startup_s, judge.price, str(pod.judged))
    cluster = judging.cluster(pod, queue)
    cases = [Case(demand, named.policy, _known_to(named, cluster, judging), terms.lam) for named in policies]
    cases, how = _quickly(policies, cases) if on_total else (cases, [])
    outcomes = _backtests(policies, cases, engine)
    why = [text for case, each in zip(cases, outcomes, strict=True) for text in causes(each, case)]
    doubts = filter(None, [doubt, cases[0].gap_note])
    queues = queue_notes(queue, [named.policy for named in policies])
    about = [*doubts, *queues, *_notes(policies, demand, pod.note, capacity)]
    notes = [*about, *units, *filter(None, [said]), *how, *remarks(outcomes), *why]
    if output == "table":
        print_outcomes(outcomes, demand, notes)
    else:
        text = markdown(outcomes, demand, notes) if output == "markdown" else figures(outcomes, demand, notes, terms)
        click.echo(text, nl=False)
    write_outcomes(outcomes, demand, notes, terms, html, out)
    if journal is not None:
        _record(journal, policies, cases)
    judged = outcomes[1:] if compare else outcomes  # the first of a comparison is what there is already
    raise SystemExit(_exit_code(parsed, judged, outcomes[0]))


def _policies(files: tuple[str, ...], compare: tuple[str, str] | None, demand: Demand) -> list[NamedPolicy]:
    from trimtab.cli.policy_files import read_comparison, read_policies

    seconds = demand.days * 86400
    if compare:
        return read_comparison(compare, files, demand.start, seconds)
    return read_policies(files, demand.start, seconds)


def _known_to(named: NamedPolicy, cluster: ClusterSpec, judging: JudgingOptions) -> ClusterSpec:
    """The same pods, as the objective of this policy knows them."""
    from trimtab.tune.judge import judged_pod

    if named.policy.objective is None:
        return cluster
    return replace(cluster, own_level=judged_pod(named.policy, named.template, judging.pod_terms).judged.own_level)


def _backtests(policies: list[NamedPolicy], cases: list[Case], engine: EngineOptions) -> list[Outcome]:
    from rich.progress import track

    from trimtab.cli.screen import screen
    from trimtab.tune.case import backtest

    console = screen(stderr=True)
    calls = [(named.name, case) for named, case in zip(policies, cases, strict=True)]
    done = engine.each(backtest, calls)
    shown = track(done, "Policies", len(calls), console=console, transient=True, disable=not console.is_terminal)
    return [answered(outcome) for outcome in shown]


def _quickly(policies: list[NamedPolicy], cases: list[Case]) -> tuple[list[Case], list[str]]:
    """In the form that is judged in a moment, and what to say of those that are not judged to the letter."""
    from trimtab.tune.case import quickly

    forms = [quickly(case) for case in cases]
    notes = [f"{named.name}: {note}" for named, (_, note) in zip(policies, forms, strict=True) if note]
    return [case for case, _ in forms], notes


def _notes(policies: list[NamedPolicy], demand: Demand, of_capacity: str, capacity: float) -> list[str]:
    """Each once, in the order in which it was found."""
    from trimtab.cli.policy_files import standing_still
    from trimtab.tune.demand import idle_note, memory_note
    from trimtab.tune.demand_anomalies import notes_on

    idle = idle_note(demand, capacity, policies[0].policy.bounds.min_replicas)
    others = [text for named in policies for text in (*named.notes, *standing_still(named), memory_note(named.policy))]
    others += _other_requests(policies)
    about = (*demand.notes, *notes_on(demand, capacity), of_capacity, idle)
    return list(dict.fromkeys(text for text in (*about, *others) if text))


def _other_requests(policies: list[NamedPolicy]) -> list[str]:
    """All are judged with one size of pod; a change of the request shows in a backtest of each alone."""
    first = policies[0].pod
    different = [named for named in policies if first and named.pod and named.pod.pod.requests != first.pod.requests]
    return [f"{named.name}: its pods request otherwise, and are taken for {policies[0].name}'s" for named in different]


def _exit_code(conditions: list[FailIf], judged: list[Outcome], first: Outcome) -> int:
    from trimtab.tune.fail_if import failure

    failures = [text for fail_if in conditions for outcome in judged if (text := failure(fail_if, outcome, first))]
    for text in failures:
        click.echo(f"over the limit: {text}", err=True)
    return 1 if failures else 0


def _record(path: Path, policies: list[NamedPolicy], cases: list[Case]) -> None:
    """Each policy as an object of its own, step by step as the operator would have recorded it."""
    from trimtab.journal import Journal, ObjectName
    from trimtab.tune.case import first_pods
    from trimtab.tune.recording import record

    clear_journal(path)
    journal, demand = Journal(path), cases[0].demand
    for named, case in zip(policies, cases, strict=True):
        namespace = named.manifest.get("metadata", {}).get("namespace", "default")
        name = ObjectName(named.manifest.get("kind", "custom-hpa"), namespace, named.name)
        first = first_pods(case.policy, float(case.load[0]))
        record(journal, name, case.policy, demand.values, case.pods, first_pods=first, start=demand.start)
    journal.prune(demand.start + demand.days * 86400 - 900)
    journal.close()
    click.echo(f"journal: {path}; try: {program_name()} dashboard --journal {path}", err=True)


def clear_journal(path: Path) -> None:
    """The journal of last time makes way; any other file is left alone and said."""
    from trimtab.journal import Journal

    if path.exists():
        Journal.read(path).close()
        for suffix in ("", "-wal", "-shm"):
            Path(f"{path}{suffix}").unlink(missing_ok=True)
