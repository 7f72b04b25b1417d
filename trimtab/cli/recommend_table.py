"""How `trimtab recommend` looks in a terminal: one table, and for single workloads a plot with the reasons."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from trimtab.advisor.ranking import LEAST_RELIEF, AdviceSeverity, Ranked, relief
from trimtab.advisor.run import Failed
from trimtab.cli.output import markdown_table
from trimtab.cli.plot import Line, plot
from trimtab.core.advise import Objections, WorkloadAdvice
from trimtab.core.explain.advice import because
from trimtab.policy import Advice, Inspection, Size
from trimtab.wire.from_kubernetes import amounts

COLOURS = {
    AdviceSeverity.RISK: "red",
    AdviceSeverity.SAVING: "green",
    AdviceSeverity.FINE: "default",
    AdviceSeverity.FAILED: "magenta",
    AdviceSeverity.REJECTED: "bright_black",
}
HIGH = 6
LEGEND = (
    "Was → recommended, replayed on this history. VIOLATIONS: load that met overloaded pods. COST: pod-minutes over"
    " the optimum's. J: cost, violations and starts together; 1.00 is the optimum. CORES: requests given back (+) or"
    " needed (-)."
)
BLOCKS = "▁▂▃▄▅▆▇█"
SPARK_WIDTH = 28  # a quarter of a day each over a week
IDLE_SHARE = 0.1  # of what one pod requests: a load that never needs more is hardly there
MIB = 1024**2


def table(ranked: list[Ranked], rules: Inspection) -> Table:
    """Sorted as given; a column nobody has anything to say in is left out."""
    if rules.advice is Advice.BOTH:
        return both_axes(ranked)
    priced = any(workload.saved_a_month for workload in ranked)
    made = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("NAMESPACE", "KIND", "NAME", "REPLICAS", *_columns(rules.advice)):
        made.add_column(name, no_wrap=True)
    made.add_column("CORES", justify="right", no_wrap=True)
    if rules.advice is Advice.RESOURCE:
        made.add_column("MEMORY", justify="right", no_wrap=True)
    if priced:
        made.add_column("A MONTH", justify="right", no_wrap=True)
    made.add_column("WHY", overflow="fold")
    for workload in ranked:
        made.add_row(*_cells(workload, rules, priced), style=COLOURS[workload.severity])
    return made


BOTH_LEFT, BOTH_RIGHT = ("NAMESPACE", "KIND", "NAME", "REPLICAS", "CPU", "MEMORY"), ("VIOLATIONS", "COST", "J", "CORES")


def both_axes(ranked: list[Ranked]) -> Table:
    """Replicas and requests of every workload in one line, and what each was and would have been worth."""
    made = Table(box=None, pad_edge=False, header_style="bold")
    header, *rows = both_cells(ranked)
    for name in header:
        right = name in (*BOTH_RIGHT, "A MONTH")
        made.add_column(name, justify="right" if right else "left", no_wrap=name != "WHY", overflow="fold")
    for workload, cells in zip(ranked, rows, strict=True):
        made.add_row(*cells, style=COLOURS[workload.severity])
    return made


def both_cells(ranked: list[Ranked]) -> list[list[str]]:
    """The header and a row for each workload, for a terminal and for markdown alike."""
    priced = any(workload.saved_a_month for workload in ranked)
    header = [*BOTH_LEFT, *BOTH_RIGHT, *["A MONTH"] * priced, "LAST WEEK", "WHY"]
    return [header, *(_both_row(workload, priced) for workload in ranked)]


def _both_row(workload: Ranked, priced: bool) -> list[str]:
    target, found = workload.outcome.target, workload.outcome.result
    start = [target.namespace, target.kind, target.name]
    now = [str(target.replicas), *(_requested(target.requests, part) for part in ("cpu", "memory"))]
    if not isinstance(found, WorkloadAdvice):
        gap = ["-"] * (len(BOTH_RIGHT) + priced)
        return [*start, *now, *gap, sparkline(workload.outcome.usage), ", ".join(_reasons(found))]
    new = {name: Size(**_merged(size, found.sizes.get(name))) for name, size in target.requests.items()}
    then = [_replicas(found), *(_requested(new, part) for part in ("cpu", "memory"))]
    changes = [was if not will or was == will else f"{was} → {will}" for was, will in zip(now, then, strict=True)]
    money = [f"{workload.saved_a_month:+.2f}"] * priced
    curve = sparkline(workload.outcome.usage)
    return [*start, *changes, *_figures(found), f"{workload.saved_cores:+.2f}", *money, curve, _why(workload)]


def sparkline(usage: Sequence[float]) -> str:
    """The usage as blocks, the highest of each part; a dot where nothing is known."""
    parts = [[value for value in part if isfinite(value)] for part in np.array_split(np.array(usage), SPARK_WIDTH)]
    most = max((max(part) for part in parts if part), default=0.0)
    if most <= 0.0:
        return "-"
    return "".join(BLOCKS[round(max(part) / most * (len(BLOCKS) - 1))] if part else "·" for part in parts)


def _merged(old: Size, new: Size | None) -> dict[str, float | None]:
    parts = ("cpu_cores", "memory_bytes")
    return {part: getattr(new, part, None) or getattr(old, part) for part in parts}


def _replicas(found: WorkloadAdvice) -> str:
    return f"{found.min_replicas}-{found.max_replicas} at {found.target_percent}%" if found.min_replicas else ""


def _requested(sizes: dict[str, Size], part: str) -> str:
    """Of the whole pod."""
    total = Size(
        cpu_cores=sum(size.cpu_cores or 0.0 for size in sizes.values()) or None,
        memory_bytes=sum(size.memory_bytes or 0.0 for size in sizes.values()) or None,
    )
    return amounts(total).get(part, "none")


def _figures(found: WorkloadAdvice) -> list[str]:
    """Violations, cost and J, now and then."""
    now, then = found.evidence.present, found.evidence.then
    assert now is not None
    figures = [(f"{each.violations:.2f}%", f"{each.cost:.2f}", f"{each.j:.2f}") for each in (now, then) if each]
    return [" → ".join(column) for column in zip(*figures, strict=True)]


def markdown(ranked: list[Ranked]) -> str:
    header, *rows = both_cells(ranked)
    return markdown_table(header, rows)


def _columns(advice: Advice) -> tuple[str, ...]:
    if advice is Advice.HPA:
        return "MIN", "MAX", "TARGET"
    return ("REQUESTS",) if advice is Advice.RESOURCE else ("WANTED",)


def _cells(workload: Ranked, rules: Inspection, priced: bool) -> list[str]:
    target, result = workload.outcome.target, workload.outcome.result
    start = [target.namespace, target.kind, target.name, str(target.replicas)]
    if not isinstance(result, WorkloadAdvice):
        gap = len(_columns(rules.advice)) + 1 + priced + (rules.advice is Advice.RESOURCE)
        return [*start, *["-"] * gap, ", ".join(_reasons(result))]
    saved = [f"{workload.saved_cores:+.2f}"]
    if rules.advice is Advice.RESOURCE:
        saved.append(f"{'-' if workload.saved_bytes < 0 else '+'}{abs(workload.saved_bytes) / MIB:.0f}Mi")
    return [
        *start,
        *_advised(rules.advice, result),
        *saved,
        *([f"{workload.saved_a_month:+.2f}"] * priced),
        _why(workload),
    ]


def _reasons(result: Objections | Failed) -> list[str]:
    """Their names; the sentences come with --explain."""
    if isinstance(result, Failed):
        return [result.reason]
    return list(dict.fromkeys(str(objection.reason) for objection in result.reasons))


def _advised(advice: Advice, found: WorkloadAdvice) -> list[str]:
    if advice is Advice.HPA:
        return [str(found.min_replicas), str(found.max_replicas), f"{found.target_percent}%"]
    if advice is Advice.REPLICAS:
        return [str(found.replicas)]
    return ["; ".join(f"{name} {' '.join(amounts(size).values())}" for name, size in found.sizes.items())]


def _why(workload: Ranked) -> str:
    found = workload.outcome.result
    assert isinstance(found, WorkloadAdvice)
    words = {AdviceSeverity.RISK: "NeedsMore", AdviceSeverity.SAVING: "RunsTooMuch"}
    said = words.get(workload.severity, "Fits")
    if workload.saved_cores >= 0 and relief(found) > LEAST_RELIEF:
        said = "NeedsScaling"  # not more of it, but at the right time
    evidence = found.evidence
    if evidence.present and (evidence.peak_cores or 0.0) < IDLE_SHARE * (evidence.pod_request_cores or 0.0):
        said = f"Idle, {said}"
    return f"{said}, Predictable" if found.predictable else said


def explained(workload: Ranked, rules: Inspection, width: int) -> RenderableType:
    """The plot of a week with what was concluded from it."""
    target, result = workload.outcome.target, workload.outcome.result
    parts: list[RenderableType] = [Text(f"\n{target.kind} {target.namespace}/{target.name}", style="bold")]
    if any(map(isfinite, workload.outcome.usage)):
        parts.append(_plot(workload, width))
    if isinstance(result, WorkloadAdvice):
        parts += [Text(f"  · {said}") for said in because(rules, result)]
    elif isinstance(result, Objections):
        parts += [Text(f"  ✗ {finding.text} [{finding.reason}]") for finding in result.reasons]
    elif isinstance(result, Failed):
        parts.append(Text(f"  ✗ {result.text} [{result.reason}]"))
    return Group(*parts)


def _plot(workload: Ranked, width: int) -> Text:
    """The past week, the forecast of the coming one over it, and what minReplicas carry at the target."""
    usage = np.array(workload.outcome.usage)
    known = np.isfinite(usage)
    hours = np.arange(len(usage))
    lines = [Line("cores used", np.interp(hours, hours[known], usage[known]), "blue")]
    found = workload.outcome.result
    if isinstance(found, WorkloadAdvice) and found.evidence.forecast:
        lines.append(Line("forecast of the coming days", np.array(found.evidence.forecast), "yellow"))
    if isinstance(found, WorkloadAdvice) and found.min_replicas and found.target_percent:
        each = (found.evidence.pod_request_cores or 0.0) * found.target_percent / 100
        lines.append(Line("minReplicas at target", np.full(len(usage), found.min_replicas * each), "green"))
    days = f"{len(usage) / 24:.0f} days"
    return plot(lines, f"{days} ago", "now", width, height=HIGH)
