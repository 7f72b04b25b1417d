"""trimtab recommend: what should be autoscaled, with which settings, from the workload's own history (document 000)."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import get_args

import click

from trimtab.advisor.manifests import Manifest, Shape, manifest
from trimtab.advisor.report import plain
from trimtab.advisor.worth import AdviceSeverity, Prices, Ranked, rank, total_saved_cores
from trimtab.cli.options import Finite
from trimtab.cli.output import dump, output_option, to_yaml
from trimtab.cli.recommend_ask import MOST_REPLICAS, Ask, Gathered, gather
from trimtab.cli.recommend_table import explained, table
from trimtab.cli.screen import screen
from trimtab.core.advise import Recommendation
from trimtab.errors import InvalidInput, InvalidObject
from trimtab.kinds.config_keys import TIMEZONE, config_problems, settings_of
from trimtab.policy import Advice, Inspection
from trimtab.web.recommend_report import page

TYPES = {"hpa": Advice.HPA, "resource": Advice.RESOURCE, "replicas": Advice.REPLICAS}
EXPLAINED = 3  # up to so many workloads are explained without being asked to


@click.command(name="recommend")
@click.argument("workloads", nargs=-1, metavar="[KIND/NAME]...")
@click.option(
    "-n", "--namespace", "namespaces", multiple=True, help="A namespace; may be repeated. Default: the context's."
)
@click.option("-A", "--all-namespaces", is_flag=True, help="Every namespace.")
@click.option("-l", "--selector", default="", help="Only workloads with these labels, as kubectl takes them.")
@click.option("--context", help="The kubeconfig context to use.")
@click.option("--kubeconfig", help="Path to a kubeconfig.")
@click.option(
    "--prometheus", "url", envvar="PROMETHEUS_URL", help="Its address; without one it is looked for in the cluster."
)
@click.option("--prometheus-user", "user", envvar="PROMETHEUS_USER", default="", help="User for basic authentication.")
@click.option("--prometheus-password", "password", envvar="PROMETHEUS_PASSWORD", default="", help="Its password.")
@click.option("--prometheus-token-file", "token_file", envvar="PROMETHEUS_TOKEN_FILE", default="", help="Bearer token.")
@click.option("--prometheus-ca-file", "ca_file", envvar="PROMETHEUS_CA_FILE", default="", help="CA of its certificate.")
@click.option("--prometheus-header", "headers", multiple=True, help="NAME=VALUE, such as X-Scope-OrgID=team.")
@click.option("--matchers", default="", help="""Narrow every query, such as 'cluster="a"'.""")
@click.option(
    "--history", "file", help="CSV or Parquet (timestamp,value[,series]) of cores used, instead of a cluster."
)
@click.option("--memory-history", "memory_file", help="With --history: the same of bytes used, for requests.")
@click.option("-f", "--filename", help="With --history: the workloads' manifests, for replicas and requests.")
@click.option("--replicas", type=click.IntRange(0, MOST_REPLICAS), help="With --history and no manifest: how many run.")
@click.option("--cpu-request", help="With --history and no manifest: cores each pod requests, such as 500m.")
@click.option("--memory-request", help="With --history and no manifest: memory each pod requests.")
@click.option(
    "--type", "kind", type=click.Choice(list(TYPES)), default="hpa", show_default=True, help="Kind of advice."
)
@click.option("--set", "config", multiple=True, metavar="KEY=VALUE", help="A setting of document 000; may be repeated.")
@click.option("--timezone", default="", help="In which hours of the day are counted, such as Europe/Berlin.")
@output_option("table", "json", "yaml", "html")
@click.option("--as", "shape", type=click.Choice(get_args(Shape)), help="Write manifests to apply or commit.")
@click.option("--explain", is_flag=True, help="A plot and the reasons for every workload.")
@click.option("--cpu-price", type=Finite(0), default=0.0, help="Of one core for an hour.")
@click.option("--memory-price", type=Finite(0), default=0.0, help="Of one GiB for an hour.")
@click.option("--fail-over", type=Finite(0), metavar="CORES", help="Exit with 1 when more could be saved.")
def command(
    workloads: tuple[str, ...],
    namespaces: tuple[str, ...],
    all_namespaces: bool,
    selector: str,
    context: str | None,
    kubeconfig: str | None,
    url: str | None,
    user: str,
    password: str,
    token_file: str,
    ca_file: str,
    headers: tuple[str, ...],
    matchers: str,
    file: str | None,
    memory_file: str | None,
    filename: str | None,
    replicas: int | None,
    cpu_request: str | None,
    memory_request: str | None,
    kind: str,
    config: tuple[str, ...],
    timezone: str,
    output: str,
    shape: Shape | None,
    explain: bool,
    cpu_price: float,
    memory_price: float,
    fail_over: float | None,
) -> None:
    """Which workloads should be autoscaled, with which bounds, target and requests.

    Reads a week of usage from Prometheus (or from a file) and touches nothing. Exit codes: 0; 1 when more than
    --fail-over cores could be saved; 2 when something is wrong.
    """
    rules = inspection(TYPES[kind], config, timezone)
    if shape and output == "html":
        raise InvalidInput("-o", output, f"--as {shape} writes manifests, as yaml or json")
    if file and (namespaces or all_namespaces or selector or context or kubeconfig):
        raise InvalidInput(
            "--history", file, "-n, -A, -l, --context and --kubeconfig speak of a cluster: leave them out"
        )
    ask = Ask(
        workloads=workloads,
        namespaces=("",) if all_namespaces else namespaces,
        selector=selector,
        context=context,
        kubeconfig=kubeconfig,
        url=url or "",
        user=user,
        password=password,
        token_file=token_file,
        ca_file=ca_file,
        headers=dict(_pair(one, "--prometheus-header") for one in headers),
        matchers=matchers,
        file=file,
        memory_file=memory_file,
        manifests=filename,
        replicas=replicas,
        cpu_request=cpu_request,
        memory_request=memory_request,
    )
    quiet = screen(stderr=True)
    found = asyncio.run(gather(ask, rules, quiet))
    for note in found.notes:
        quiet.print(note, style="yellow")
    ranked = rank(found.outcomes, Prices(cpu_price, memory_price))
    show(ranked, rules, found, output, shape, explain or len(ranked) <= EXPLAINED)
    if fail_over is not None and total_saved_cores(ranked) > fail_over:
        sys.exit(1)


def inspection(advice: Advice, config: tuple[str, ...], timezone: str) -> Inspection:
    """Document 000's settings, checked all at once."""
    said = {
        "--set": dict(_pair(one, "--set") for one in config),
        "--timezone": {TIMEZONE: timezone} if timezone else {},
    }
    for option, pairs in said.items():
        if problems := list(config_problems(pairs, advice)):
            raise InvalidObject(option, problems)
    return Inspection(advice=advice, **settings_of(said["--set"] | said["--timezone"], advice))


def _pair(text: str, option: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise InvalidInput(option, text, "write NAME=VALUE")
    return name.strip(), value.strip()


def show(
    ranked: list[Ranked], rules: Inspection, found: Gathered, output: str, shape: Shape | None, explain: bool
) -> None:
    if shape is not None:
        made = _manifests(ranked, rules, shape)
        if not made:
            click.echo("no manifest: nothing is recommended; -o table says why", err=True)
        dump(made, "json" if output == "json" else "yaml")
    elif output == "table":
        console = screen()
        console.show(table(ranked, rules), ("NAMESPACE", "KIND"))
        if explain:
            for one in ranked:
                console.print(explained(one, rules, console.plot_width), soft_wrap=True)
    else:
        reports = [plain(rules, one) for one in ranked]
        click.echo(_written(reports, rules, found, output), nl=False)


def _manifests(ranked: list[Ranked], rules: Inspection, shape: Shape) -> list[Manifest]:
    return [
        manifest(shape, rules.advice, one.outcome.target, one.outcome.result)
        for one in ranked
        if isinstance(one.outcome.result, Recommendation) and one.severity is not AdviceSeverity.FAILED
    ]


def _written(reports: list[Manifest], rules: Inspection, found: Gathered, output: str) -> str:
    if output == "html":
        return page(reports, f"Advice of type {rules.advice}", found.where)
    return to_yaml(reports) if output == "yaml" else json.dumps(reports, indent=2) + "\n"
