"""trimtab recommend: what should be autoscaled, with which settings, from the workload's own history."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, NamedTuple

import click

from trimtab.cli.choices import ADVICE_TYPES, MANIFEST_SHAPES
from trimtab.cli.load_source import step_option, time_column_option
from trimtab.cli.option_groups import (
    ClusterOptions,
    PrometheusOptions,
    cluster_options,
    name_and_value,
    option_group,
    prometheus_options,
)
from trimtab.cli.options import Finite, duration, objective
from trimtab.cli.output import dump, output_option, to_yaml
from trimtab.cli.workers import EngineOptions, engine_options
from trimtab.errors import InvalidInput, InvalidObject
from trimtab.promql import parse_matchers

if TYPE_CHECKING:
    from trimtab.advisor.manifests import Manifest, Shape
    from trimtab.advisor.ranking import Ranked
    from trimtab.advisor.run import Judge
    from trimtab.cli.recommend_gather import GatheredAdvice
    from trimtab.history.pod_owners import SeriesMatchers
    from trimtab.policy import Inspection

MOST_REPLICAS = 100_000  # more pods than a cluster of Kubernetes holds


class ScopeOptions(NamedTuple):
    """Which workloads of a cluster, and of its Prometheus."""

    namespaces: tuple[str, ...] = ()
    all_namespaces: bool = False
    selector: str = ""
    matchers: str = ""
    kube_state_metrics: str = 'job="kube-state-metrics"'

    @property
    def series(self) -> SeriesMatchers:
        """Which series of Prometheus are read."""
        from trimtab.history.pod_owners import SeriesMatchers

        owners = parse_matchers(self.kube_state_metrics, "--kube-state-metrics")
        return SeriesMatchers(parse_matchers(self.matchers, "--matchers"), owners)


class FileOptions(NamedTuple):
    """A file of usage in the place of a cluster, and what people say about its workloads."""

    file: str | None = None
    memory_file: str | None = None
    manifests: tuple[str, ...] = ()
    replicas: int | None = None
    cpu_request: str | None = None
    memory_request: str | None = None
    step_s: float | None = None
    time_column: str = ""


PROVEN, CRANE = "proven", "crane"
EXPLAINED = 3  # up to so many workloads are explained without being asked to


scope_options = option_group(
    "scope",
    ScopeOptions,
    click.option(
        "-n", "--namespace", "namespaces", multiple=True, help="A namespace; may be repeated. Default: the context's."
    ),
    click.option("-A", "--all-namespaces", is_flag=True, help="Every namespace."),
    click.option("-l", "--selector", default="", help="Only workloads with these labels, as kubectl takes them."),
    click.option("--matchers", default="", help="""Narrow every query, such as 'cluster="a"'."""),
    click.option(
        "--kube-state-metrics",
        default=ScopeOptions().kube_state_metrics,
        show_default=True,
        help="Which series come from kube-state-metrics, whose word on the owners of pods counts.",
    ),
)
file_options = option_group(
    "file",
    FileOptions,
    click.option(
        "--history",
        "file",
        metavar="FILE|-",
        help="Cores used, in CSV, Prometheus' JSON (each also .gz) or Parquet, instead of a cluster; see --recipe.",
    ),
    click.option("--memory-history", "memory_file", help="With --history: the same of bytes used, for requests."),
    click.option(
        "-f",
        "--filename",
        "manifests",
        multiple=True,
        metavar="FILE|DIR|-",
        help="With --history: manifests of the workloads and of their HPAs, as it is now. May be repeated.",
    ),
    click.option(
        "--replicas", type=click.IntRange(0, MOST_REPLICAS), help="With --history and no manifest: how many run."
    ),
    click.option("--cpu-request", help="With --history and no manifest: cores each pod requests, such as 500m."),
    click.option("--memory-request", help="With --history and no manifest: memory each pod requests."),
    step_option,
    time_column_option,
)


class AdviceOptions(NamedTuple):
    """What kind of advice, by which settings."""

    rules: str | None
    kind: str | None
    config: tuple[str, ...]
    timezone: str
    lam: float
    startup_s: float

    @property
    def proven(self) -> bool:
        """Crane's words mean Crane's rules."""
        if self.rules == PROVEN and (self.kind or self.config):
            raise InvalidInput("--rules", PROVEN, "--type and --set belong to crane: leave them out")
        return self.rules == PROVEN or not (self.rules or self.kind or self.config)

    def judge(self) -> Judge:
        """What turns a measured workload into advice."""
        from trimtab.core.advise import advise
        from trimtab.tune.proven_advice import AdviceTerms

        return AdviceTerms(self.lam, self.startup_s).prove if self.proven else advise

    def inspection(self) -> Inspection:
        """What is inspected; Crane's settings are checked all at once."""
        from trimtab.kinds.annotations import TIMEZONE
        from trimtab.kinds.config_keys import config_problems, settings_of
        from trimtab.policy import Advice, Inspection
        from trimtab.tune.proven_advice import HISTORY_S

        said = {
            "--set": dict(name_and_value(text, "--set") for text in self.config),
            "--timezone": {TIMEZONE: self.timezone} if self.timezone else {},
        }
        advice = Advice(ADVICE_TYPES[self.kind or "hpa"])
        for option, pairs in said.items():
            if problems := list(config_problems(pairs, advice)):
                raise InvalidObject(option, problems)
        if self.proven:
            return Inspection(advice=Advice.BOTH, history_s=HISTORY_S, timezone=self.timezone or "UTC")
        return Inspection(advice=advice, **settings_of(said["--set"] | said["--timezone"], advice))


advice_options = option_group(
    "advice",
    AdviceOptions,
    click.option(
        "--rules",
        type=click.Choice((PROVEN, CRANE)),
        help="proven: replicas and requests, each backtested; crane: Crane's gates and formulas."
        " Default: proven, but with --type or --set crane.",
    ),
    click.option(
        "--type", "kind", type=click.Choice(list(ADVICE_TYPES)), help="Kind of advice by Crane's rules: hpa if unset."
    ),
    click.option("--set", "config", multiple=True, metavar="KEY=VALUE", help="A setting of Crane's; may be repeated."),
    click.option("--objective", "lam", type=objective, default="balanced", show_default=True, help=objective.__doc__),
    click.option(
        "--startup",
        "startup_s",
        type=duration,
        default="2m",
        show_default=True,
        help="From a pod's creation to serving.",
    ),
    click.option("--timezone", default="", help="In which hours of the day are counted, such as Europe/Berlin."),
)


@click.command(name="recommend")
@click.argument("workloads", nargs=-1, metavar="[KIND/NAME]...")
@scope_options
@cluster_options
@prometheus_options("Its address; without one it is looked for in the cluster.")
@file_options
@advice_options
@engine_options
@output_option("table", "json", "yaml", "html", "markdown")
@click.option("--as", "shape", type=click.Choice(MANIFEST_SHAPES), help="Write manifests to apply or commit.")
@click.option("--explain", is_flag=True, help="A plot and the reasons for every workload.")
@click.option("--cpu-price", type=Finite(0), default=0.0, help="Of one core for an hour.")
@click.option("--memory-price", type=Finite(0), default=0.0, help="Of one GiB for an hour.")
@click.option("--fail-over", type=Finite(0), metavar="CORES", help="Exit with 1 when more could be saved.")
@click.option("--recipe", is_flag=True, help="Only say what to query, and from where, for --history.")
def command(
    workloads: tuple[str, ...],
    scope: ScopeOptions,
    cluster: ClusterOptions,
    prometheus: PrometheusOptions,
    file: FileOptions,
    advice: AdviceOptions,
    output: str,
    shape: Shape | None,
    explain: bool,
    cpu_price: float,
    memory_price: float,
    fail_over: float | None,
    recipe: bool,
    engine: EngineOptions,
) -> None:
    """Replicas and requests of each workload, tuned and backtested on its own history before they are advised.

    Reads two weeks of usage from Prometheus (or from a file) and touches nothing. Exit codes: 0; 1 when more than
    --fail-over cores could be saved; 2 when something is wrong.
    """
    if recipe:
        from trimtab.cli.recommend_recipe import recipe as written

        click.echo(written(scope), nl=False)
        return
    import asyncio

    from trimtab.advisor.ranking import Prices, rank, total_saved_cores
    from trimtab.cli.recommend_gather import WorkloadQuestion, gather
    from trimtab.cli.screen import screen

    rules = advice.inspection()
    if output == "markdown" and not advice.proven:
        raise InvalidInput("-o", output, "Crane's advice is written as table, json, yaml or html")
    if shape and output in ("html", "markdown"):
        raise InvalidInput("-o", output, f"--as {shape} writes manifests, as yaml or json")
    if file.file and (scope.all_namespaces or scope.selector or any(cluster)):
        raise InvalidInput(
            "--history", file.file, "-A, -l, --context and --kubeconfig speak of a cluster: leave them out"
        )
    question = WorkloadQuestion(workloads, cluster, prometheus, scope, file, engine)
    quiet = screen(stderr=True)
    found = asyncio.run(gather(question, rules, advice.judge(), quiet))
    for note in found.notes:
        quiet.print(note, style="yellow")
    ranked = rank(found.outcomes, Prices(cpu_price, memory_price))
    show(ranked, rules, found, output, shape, explain or len(ranked) <= EXPLAINED)
    if fail_over is not None and total_saved_cores(ranked) > fail_over:
        sys.exit(1)


def show(
    ranked: list[Ranked], rules: Inspection, found: GatheredAdvice, output: str, shape: Shape | None, explain: bool
) -> None:
    from trimtab.advisor.ranking import summary
    from trimtab.advisor.report import plain
    from trimtab.cli.recommend_table import LEGEND, explained, markdown, table
    from trimtab.cli.screen import screen
    from trimtab.policy import Advice

    if shape is not None:
        made = _manifests(ranked, rules, shape)
        if not made:
            click.echo(_no_manifest(ranked, shape), err=True)
        dump(made, "json" if output == "json" else "yaml")
    elif output == "markdown":
        click.echo(f"**{summary(ranked)}**\n\n{markdown(ranked)}", nl=False)
    elif output == "table":
        console = screen()
        console.show(table(ranked, rules), ("LAST WEEK", "NAMESPACE", "KIND"))
        console.print(f"\n{summary(ranked)}", style="bold", soft_wrap=True)
        if rules.advice is Advice.BOTH:
            console.print(LEGEND, style="dim", soft_wrap=True)
        if explain:
            for workload in ranked:
                console.print(explained(workload, rules, console.plot_width), soft_wrap=True)
    else:
        reports = [plain(rules, workload) for workload in ranked]
        click.echo(_written(reports, rules, found, output, summary(ranked)), nl=False)


def _manifests(ranked: list[Ranked], rules: Inspection, shape: Shape) -> list[Manifest]:
    from trimtab.advisor.manifests import fits, manifest
    from trimtab.core.advise import WorkloadAdvice

    return [
        manifest(shape, rules.advice, workload.outcome.target, workload.outcome.result)
        for workload in ranked
        if isinstance(workload.outcome.result, WorkloadAdvice) and fits(shape, rules.advice, workload.outcome.result)
    ]


def _no_manifest(ranked: list[Ranked], shape: Shape) -> str:
    """Of both axes often only one is advised, and each has its own shapes."""
    from trimtab.core.advise import WorkloadAdvice

    found = [each.outcome.result for each in ranked if isinstance(each.outcome.result, WorkloadAdvice)]
    if shape == "patch" and any(advice.min_replicas for advice in found):
        return "no manifest: replicas are advised, no requests; --as hpa, ehpa or autoscaler writes them"
    if any(advice.sizes for advice in found):
        return "no manifest: requests are advised, no replicas; --as patch writes them"
    return "no manifest: nothing is recommended; -o table says why"


def _written(reports: list[Manifest], rules: Inspection, found: GatheredAdvice, output: str, summary: str) -> str:
    if output == "html":
        from trimtab.policy import Advice
        from trimtab.web.report import recommend_page

        proven = rules.advice is Advice.BOTH
        title = "Advice, proven on each workload's own history" if proven else f"Advice of type {rules.advice}"
        return recommend_page(reports, title, found.where, summary)
    return to_yaml(reports) if output == "yaml" else json.dumps(reports, indent=2) + "\n"
