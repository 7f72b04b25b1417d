"""trimtab capacity: how much one pod serves while a latency promise holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import click

from trimtab.cli.load_source import LoadOptions, query_options, read_series
from trimtab.cli.option_groups import PrometheusOptions
from trimtab.cli.options import Finite, duration
from trimtab.cli.output import dump, output_option
from trimtab.errors import InvalidInput

if TYPE_CHECKING:
    from trimtab.core.latency import LatencyLevel, MinutePairs


class CapacityQuestion(NamedTuple):
    """Where usage, pods and latency are, and the promise."""

    usage: str
    latency: str
    below_s: float
    pods: str = ""
    target: float | None = None  # for each pod
    unit: str = ""


@click.command(name="capacity")
@click.option("-f", "file", metavar="FILE", help="An Autoscaler with objective.latency; its queries are asked.")
@click.option("--usage", metavar="SRC", help="FILE.csv, .json or .parquet, or a query: usage of each ready pod.")
@click.option("--latency", metavar="SRC", help="The same for latency, in seconds.")
@click.option("--pods", metavar="SRC", help="The same for the number of ready pods; then --usage is that of all.")
@click.option("--below", "below_s", type=duration, metavar="DURATION", help="The promise, such as 300ms.")
@click.option("--target", type=Finite(0, min_open=True), help="The present target for each pod.")
@click.option("--unit", default="", help='What usage counts, such as "requests/s".')
@click.option("--days", type=Finite(0.05), default=7.0, show_default=True, help="How far back queries are asked.")
@query_options
@output_option("table", "json")
def command(file: str | None, days: float, prometheus: PrometheusOptions, output: str, **given: Any) -> None:
    """Learn how much one pod serves while latency stays below a promise.

    The answer is the highest usage per pod at which the promise held in 99 % of the minutes. Minutes in which pods came
    or went are left out. The recommended target is 7/8 of it.

    \b
    trimtab capacity --usage requests.csv --pods pods.csv --latency p99.csv --below 300ms --unit requests/s
    trimtab capacity -f web.yaml --prometheus http://prometheus:9090

    Exit code 0: it was learned, 1: it could not be learned, 2: something could not be read.
    """
    from trimtab.core.latency import LevelKind, learn, paired

    question = _question(file, given)
    load = LoadOptions("", days=days)
    usage = read_series("--usage", load._replace(source=question.usage), prometheus)
    latency = read_series("--latency", load._replace(source=question.latency), prometheus)
    pods = read_series("--pods", load._replace(source=question.pods), prometheus) if question.pods else None
    minutes = paired(usage, latency, pods)
    found = learn(minutes, question.below_s)
    (_print_json if output == "json" else _print)(found, minutes, question)
    raise SystemExit(1 if found.kind is LevelKind.NONE else 0)


def _question(file: str | None, given: dict[str, Any]) -> CapacityQuestion:
    """What is given on the command line goes before what the file says."""
    written = _of_file(file)._asdict() if file else {}
    merged = written | {name: value for name, value in given.items() if value not in (None, "")}
    for name, option in (("usage", "--usage"), ("latency", "--latency"), ("below_s", "--below")):
        if name not in merged:
            raise InvalidInput(option, "missing", "give it, or -f FILE of an Autoscaler with objective.latency")
    if not merged["below_s"] > 0:
        raise InvalidInput("--below", "0", "give a time above zero, such as 300ms")
    return CapacityQuestion(**merged)


def _of_file(file: str) -> CapacityQuestion:
    from trimtab.cli.policy_files import read_policies
    from trimtab.core.latency_level import usage_unit
    from trimtab.kinds.capacity_queries import capacity_queries

    named = read_policies((file,), 0.0, 3600.0)[0]
    objective = named.policy.objective
    if objective is None or objective.latency is None:
        raise InvalidInput("-f", file, "write objective.latency, or give --usage, --latency and --below")
    reference, namespace = named.manifest["spec"]["scaleTargetRef"], named.manifest["metadata"].get("namespace")
    queries = capacity_queries(named.policy, namespace or "default", reference["kind"], reference["name"])
    return CapacityQuestion(
        queries.usage,
        objective.latency.metric.query,
        objective.latency.below_s,
        queries.pods,
        queries.target,
        usage_unit(named.policy).strip(),
    )


def _print_json(found: LatencyLevel, minutes: MinutePairs, question: CapacityQuestion) -> None:
    import msgspec

    from trimtab.core.latency import TARGET_SHARE, curve

    recommended = {"recommendedTarget": TARGET_SHARE * found.level} if found.level else {}
    points = [
        {"usage": usage, "minutes": count, "medianSeconds": median, "p99Seconds": p99}
        for usage, count, median, p99 in curve(minutes)
    ]
    present = {} if question.target is None else {"target": question.target}
    dump([{**msgspec.to_builtins(found), **present, **recommended, "curve": points}], "json")


def _print(found: LatencyLevel, minutes: MinutePairs, question: CapacityQuestion) -> None:
    from rich.console import Console

    from trimtab.core.latency import TARGET_SHARE, amount

    console = Console()
    unit = f" {question.unit}" if question.unit else ""
    text = found.text(unit)
    console.print(text[0].upper() + text[1:] + ".", highlight=False)
    if picture := _picture(found, minutes, unit):
        console.print(picture)
    if found.level:
        present = "" if question.target is None else f"; the present one is {amount(question.target)}{unit}"
        console.print(
            f"Recommended target: {amount(TARGET_SHARE * found.level)}{unit} per pod{present}.", highlight=False
        )


def _picture(found: LatencyLevel, minutes: MinutePairs, unit: str) -> Any:
    """Latency over usage, with the promise and the level."""
    import numpy as np

    from trimtab.cli.plot import Line, plot
    from trimtab.core.latency import amount, curve

    points = curve(minutes)
    if not points:
        return None
    most, columns = points[-1].usage, 144
    across = np.linspace(0.0, most, columns)
    top = 3.0 * found.below_s
    usage = [point.usage for point in points]
    medians = np.minimum(np.interp(across, usage, [point.median_s for point in points]), top)
    worst = np.minimum(np.interp(across, usage, [point.p99_s for point in points]), top)
    lines = [
        Line("p99 of the minutes (s)", worst, "yellow"),
        Line("median", medians, "cyan"),
        Line("promise", np.full(columns, found.below_s), "red"),
    ]
    if found.level:
        mark = np.zeros(columns)
        mark[min(columns - 1, int(found.level / most * (columns - 1)))] = top
        lines.insert(0, Line(f"level {amount(found.level)}", mark, "green"))
    return plot(lines, "0", f"{amount(most)}{unit} per pod")
