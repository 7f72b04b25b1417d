"""trimtab tune: better settings for a policy from the workload's own days, with the evidence."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from trimtab.cli.load_source import JudgingOptions, LoadOptions, judging_options, load_options, query_options, read_load
from trimtab.cli.option_groups import PrometheusOptions
from trimtab.cli.output import output_option, to_yaml
from trimtab.cli.workers import EngineOptions, answered, engine_options

if TYPE_CHECKING:
    from trimtab.cli.policy_files import NamedPolicy
    from trimtab.core.figures import Figures
    from trimtab.policy import TunedSettings
    from trimtab.tune.case import Case
    from trimtab.tune.demand import Demand
    from trimtab.tune.search import Choice, Space


@click.command(name="tune")
@click.option(
    "-f",
    "--filename",
    "files",
    required=True,
    multiple=True,
    help="The manifest of one policy, and its workload's for the requests.",
)
@load_options
@query_options
@judging_options
@engine_options
@output_option("yaml", "json")
def command(
    files: tuple[str, ...],
    output: str,
    load: LoadOptions,
    prometheus: PrometheusOptions,
    judging: JudgingOptions,
    engine: EngineOptions,
) -> None:
    """Retune a policy by backtest: target, tolerance and stabilisation, 135 settings on every day of its history, each
    with and without the bridge where the kind has one, and an Autoscaler's with four ceilings. An objective that is
    written is one more of them.

    The present settings stay unless others are 2 % better, newer days weighing more. Prints the manifest to apply.

    \b
    trimtab tune -f web.yaml --load history.csv --objective reliability > tuned.yaml
    """
    from trimtab.tune.case import Case
    from trimtab.tune.demand_anomalies import notes_on
    from trimtab.tune.judge import judge_of
    from trimtab.tune.manifest import TunableManifest, tunable_manifest, with_new_settings, writable_space
    from trimtab.tune.queues import queue_notes, queue_of, refuse_length

    demand = read_load(load, prometheus).last_whole_days()
    named = _only_policy(files, demand)
    tunable = tunable_manifest(named.manifest)
    refuse_length(named.policy)
    judge, said = judge_of([named.policy], judging.price)
    demand, pod, doubt = load.judged(demand, named, judging.pod_terms, judge)
    capacity, queue = pod.judged.request, queue_of(named.policy, pod.judged.request)
    pods = judging.cluster(pod, queue)
    case = Case(demand, named.policy, pods, judge.price)
    found = _searched(case, writable_space(str(named.manifest.get("kind")), named.policy, pods), engine)
    manifest, written = TunableManifest(named.manifest)
    if found.changed:
        manifest, written = with_new_settings(tunable, found.was, found.now)
    about = (*demand.notes, *notes_on(demand, capacity), doubt, pod.note, *named.notes, said, *queue_notes(queue, ()))
    notes = [text for text in (*about, *found.notes, *written) if text]
    if output == "json":
        click.echo(json.dumps(_plain(found, manifest, notes, judge.price), indent=1))
    else:
        comments = "".join(f"# {line}\n" for line in evidence(found, demand.name, notes, judge.price))
        click.echo(comments + to_yaml(manifest), nl=False)


def _only_policy(files: tuple[str, ...], demand: Demand) -> NamedPolicy:
    from trimtab.cli.policy_files import read_policies

    policies = read_policies(files, demand.start, demand.days * 86400)
    if len(policies) != 1:
        held = f"{', '.join(files)} holds {len(policies)} policies"
        raise click.UsageError(f"{held} ({', '.join(named.name for named in policies)}); give one")
    return policies[0]


def _searched(case: Case, space: Space, engine: EngineOptions) -> Choice:
    from rich.progress import Progress

    from trimtab.cli.screen import screen
    from trimtab.tune.search import search

    if engine != EngineOptions():
        return answered(next(engine.each(partial(search, rolling=True, exact=True), [(case, space)])))
    console = screen(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("Candidates", total=space.size)
        return search(case, space, lambda count: progress.advance(task, count), rolling=True, exact=True)


def evidence(found: Choice, name: str, notes: list[str], lam: float) -> list[str]:
    """Why, in lines that fit above a manifest."""
    from trimtab.core.explain.tuning import settings_text
    from trimtab.core.tuned import by_percent, tunable

    percent = by_percent(tunable(found.policy))

    lines = [f"Tuned by trimtab on {found.days} days of {name}; violations priced at {lam:g}."]
    if found.changed:
        lines += [f"was: {settings_text(found.was, percent)}", f"now: {settings_text(found.now, percent)}"]
        lines += _figures(("was", found.before), ("now", found.after))
        won = f"{len(found.days_won)} of {found.days} days would have been better"
        lost = [str(day + 1) for day in range(found.days) if day not in found.days_won]
        lines += [won + (f"; not day {', '.join(lost[:10])}" if lost else "") + "."]
    else:
        lines += [f"No other settings are 2 % better: stay with {settings_text(found.now, percent)}."]
        lines += _figures(("as it is", found.before))
    if found.rolling is not None and found.held is not None:
        gain = found.rolling.j / found.held.j - 1
        lines += [f"Retuned every night, judged only by earlier days, J would have changed by {gain:+.1%}."]
    return lines + [f"note: {note}" for note in notes]


def _figures(*pairs: tuple[str, Figures]) -> list[str]:
    head = f"{'':9}{'J':>7}{'cost':>7}{'violations':>12}{'churn/day':>11}"
    return [
        head,
        *(
            f"{name:9}{score.j:>7.3f}{score.cost:>7.3f}{score.violations:>11.2f}%{score.churn_per_day:>11.0f}"
            for name, score in pairs
        ),
    ]


def _plain(found: Choice, manifest: dict[str, Any], notes: list[str], lam: float) -> dict[str, Any]:
    plain = found.without_tolerance
    return {
        "changed": found.changed,
        "lambda": lam,
        "days": found.days,
        "daysWon": [day + 1 for day in found.days_won],
        "was": _chosen(found.was) | _plain_figures(found.before),
        "now": _chosen(found.now) | _plain_figures(found.after),
        "rolling": _plain_figures(found.rolling) if found.rolling else None,
        "withoutTolerance": plain and _chosen(plain.settings) | _plain_figures(plain.figures),
        "notes": notes,
        "manifest": manifest,
    }


def _chosen(settings: TunedSettings) -> dict[str, Any]:
    from msgspec import structs

    found = structs.asdict(settings)
    del found["band"]
    return found


def _plain_figures(figures: Figures) -> dict[str, float]:
    from msgspec import structs

    return structs.asdict(figures)
