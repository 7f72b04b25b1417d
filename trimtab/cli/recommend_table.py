"""How `trimtab recommend` looks in a terminal: one table, and for single workloads a plot with the reasons."""

from __future__ import annotations

from math import isfinite

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from trimtab.advisor.run import Failed
from trimtab.advisor.worth import AdviceSeverity, Ranked
from trimtab.cli.plot import Line, plot
from trimtab.core.advise import Findings, Recommendation
from trimtab.core.explain.advice import because
from trimtab.policy import Advice, Inspection
from trimtab.wire.facts import amounts

COLOURS = {
    AdviceSeverity.RISK: "red",
    AdviceSeverity.SAVING: "green",
    AdviceSeverity.FINE: "default",
    AdviceSeverity.FAILED: "magenta",
    AdviceSeverity.REJECTED: "bright_black",
}
HIGH = 6
MIB = 1024**2


def table(ranked: list[Ranked], rules: Inspection) -> Table:
    """Sorted as given; a column nobody has anything to say in is left out."""
    priced = any(one.saved_a_month for one in ranked)
    made = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("NAMESPACE", "KIND", "NAME", "REPLICAS", *_columns(rules.advice)):
        made.add_column(name, no_wrap=True)
    made.add_column("CORES", justify="right", no_wrap=True)
    if rules.advice is Advice.RESOURCE:
        made.add_column("MEMORY", justify="right", no_wrap=True)
    if priced:
        made.add_column("A MONTH", justify="right", no_wrap=True)
    made.add_column("WHY", overflow="fold")
    for one in ranked:
        made.add_row(*_cells(one, rules, priced), style=COLOURS[one.severity])
    return made


def _columns(advice: Advice) -> tuple[str, ...]:
    if advice is Advice.HPA:
        return "MIN", "MAX", "TARGET"
    return ("REQUESTS",) if advice is Advice.RESOURCE else ("WANTED",)


def _cells(one: Ranked, rules: Inspection, priced: bool) -> list[str]:
    target, result = one.outcome.target, one.outcome.result
    start = [target.namespace, target.kind, target.name, str(target.replicas)]
    if not isinstance(result, Recommendation):
        gap = len(_columns(rules.advice)) + 1 + priced + (rules.advice is Advice.RESOURCE)
        return [*start, *["-"] * gap, ", ".join(_reasons(result))]
    saved = [f"{one.saved_cores:+.2f}"]
    if rules.advice is Advice.RESOURCE:
        saved.append(f"{'-' if one.saved_bytes < 0 else '+'}{abs(one.saved_bytes) / MIB:.0f}Mi")
    return [*start, *_advised(rules.advice, result), *saved, *([f"{one.saved_a_month:+.2f}"] * priced), _why(one)]


def _reasons(result: Findings | Failed) -> list[str]:
    """Their names; the sentences come with --explain."""
    if isinstance(result, Failed):
        return [result.reason]
    return list(dict.fromkeys(str(one.reason) for one in result.reasons))


def _advised(advice: Advice, found: Recommendation) -> list[str]:
    if advice is Advice.HPA:
        return [str(found.min_replicas), str(found.max_replicas), f"{found.target_percent}%"]
    if advice is Advice.REPLICAS:
        return [str(found.replicas)]
    return ["; ".join(f"{name} {' '.join(amounts(size).values())}" for name, size in found.sizes.items())]


def _why(one: Ranked) -> str:
    found = one.outcome.result
    assert isinstance(found, Recommendation)
    words = {AdviceSeverity.RISK: "NeedsMore", AdviceSeverity.SAVING: "RunsTooMuch"}
    said = words.get(one.severity, "Fits")
    return f"{said}, Predictable" if found.predictable else said


def explained(one: Ranked, rules: Inspection, width: int) -> RenderableType:
    """The plot of a week with what was concluded from it."""
    target, result = one.outcome.target, one.outcome.result
    parts: list[RenderableType] = [Text(f"\n{target.kind} {target.namespace}/{target.name}", style="bold")]
    if any(map(isfinite, one.outcome.usage)):
        parts.append(_plot(one, width))
    if isinstance(result, Recommendation):
        parts += [Text(f"  · {said}") for said in because(rules, result)]
    elif isinstance(result, Findings):
        parts += [Text(f"  ✗ {finding.text} [{finding.reason}]") for finding in result.reasons]
    elif isinstance(result, Failed):
        parts.append(Text(f"  ✗ {result.text} [{result.reason}]"))
    return Group(*parts)


def _plot(one: Ranked, width: int) -> Text:
    """The past week, the forecast of the coming one over it, and what minReplicas carry at the target."""
    usage = np.array(one.outcome.usage)
    known = np.isfinite(usage)
    hours = np.arange(len(usage))
    lines = [Line("cores used", np.interp(hours, hours[known], usage[known]), "blue")]
    found = one.outcome.result
    if isinstance(found, Recommendation) and found.evidence.forecast:
        lines.append(Line("forecast of the coming days", np.array(found.evidence.forecast), "yellow"))
    if isinstance(found, Recommendation) and found.min_replicas and found.target_percent:
        each = (found.evidence.pod_request_cores or 0.0) * found.target_percent / 100
        lines.append(Line("minReplicas at target", np.full(len(usage), found.min_replicas * each), "green"))
    days = f"{len(usage) / 24:.0f} days"
    return plot(lines, f"{days} ago", "now", width, height=HIGH)
