"""docs/benchmark.md from the JSON of `trimtab bench`: no figure in it is typed by hand."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from trimtab.bench.summary import BenchRow, BenchSummary, summarise
from trimtab.quantity import format_duration
from trimtab.sim.prices import OBJECTIVES

FINE = ("_1min", "_30s")


def main(folder: str, page: str) -> None:
    read = Path(folder)
    headline, everybody = (rows(read / name) for name in ("bench.json", "bench-everybody.json"))
    thesis = json.loads((read / "bench-thesis.json").read_text())["thesis"]
    traces = {row.trace for row in headline}
    fine = [row for row in headline if row.trace.endswith(FINE)]
    text = TEXT.format(
        traces=len(traces),
        headline=markdown(summarise(headline)),
        fine_traces=len({row.trace for row in fine}),
        fine=markdown([summary for summary in summarise(fine) if summary.lam == OBJECTIVES["balanced"]]),
        everybody=markdown(sorted(summarise(everybody), key=lambda summary: summary.j)),
        everybody_traces=len({row.trace for row in everybody}),
        thesis=thesis_table(thesis),
        seeds=thesis[0]["seeds"],
    )
    Path(page).write_text(text)


def rows(path: Path) -> list[BenchRow]:
    plain = json.loads(path.read_text())["rows"]
    return [BenchRow(**{("lam" if name == "lambda" else name): value for name, value in row.items()}) for row in plain]


def markdown(found: Iterable[BenchSummary]) -> str:
    heads = (
        "lambda",
        "start-up",
        "policy",
        "J",
        "95 %",
        "cost",
        "violations",
        "to default",
        "wins",
        "churn",
        "worst trace",
    )
    return table(heads, [cells(summary) for summary in found])


def cells(summary: BenchSummary) -> list[str]:
    return [
        f"{summary.lam:g}",
        format_duration(summary.init_s),
        summary.policy,
        f"**{summary.j:.3f}**",
        f"{summary.low:.2f} to {summary.high:.2f}",
        f"{summary.cost:.3f}",
        f"{summary.violations:.2f} %",
        "" if summary.change is None else f"{100 * summary.change:+.1f} %",
        "" if summary.wins is None else f"{summary.wins} of {summary.traces}",
        "" if summary.churn is None else f"x{summary.churn:.1f}",
        f"{summary.worst:.2f} {summary.worst_trace}",
    ]


def thesis_table(found: Sequence[dict[str, Any]]) -> str:
    heads = ("pattern", "windows", "mean", "std", "z", "p", "published mean", "z", "p", "paired t over seeds", "p")
    return table(heads, [thesis_cells(row) for row in found])


def thesis_cells(row: dict[str, Any]) -> list[str]:
    ours = [f"{row[name]:+.3f}" for name in ("mean", "std", "z", "p")]
    published = row["published"]
    theirs = [f"{published[name]:+.3f}" for name in ("mean", "z", "p")] if published else ["", "", ""]
    return [row["pattern"], row["version"], *ours, *theirs, f"{row['paired_t']:+.1f}", f"{row['paired_p']:.3f}"]


def table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    rule = "|".join("---" for _ in heads)
    return "\n".join([f"| {' | '.join(heads)} |", f"|{rule}|", *(f"| {' | '.join(line)} |" for line in lines)])


TEXT = """# How good it is, measured

Written by `make bench-docs TRACES=FOLDER`; no figure here is typed.

J = billed pods + lambda x violating load + two pod-minutes for each start, over the clairvoyant optimum of the same
load: 1 is what hindsight could do. Lambda is what one violated pod-minute of load is worth in pod-minutes: 8 saves,
32 balances, 128 protects. Each figure is the geometric mean over {traces} recorded traces; the trace is the unit,
so the interval is a bootstrap over traces. Every policy starts unscored (7 days, 3 for traces under four weeks),
sees means of the last minute, and decides every 15 s; pods are billed from creation and serve after the start-up
time. [docs/backtest.md](backtest.md) says how to do the same with a load of your own.

## Default HPA and HPA retuned every night

`hpa-default` has a target of 70 % on the rate of requests, 10 % tolerance and five minutes of stabilisation.
`hpa-rolling` is what `trimtab tune` does: the best of 135 such settings on the workload's own days so far, changed only
for a gain of 2 %.

{headline}

The {fine_traces} traces recorded every minute or faster, where nothing is held between samples (lambda 32):

{fine}

## Everybody's policies

As they are out of the box, at a start-up of two minutes, on {everybody_traces} traces recorded every minute or
faster: the policies of others are policies of ours here, run by the same code. `trimtab` is `hpa-rolling` that may also
choose a seasonal forecast on top, and how sure that has to be.

{everybody}

## Document 003's evaluation

Its traffic patterns with its recipe, {seeds} seeds. Above zero the predictive policy was better. z = mean / std, as
published, says nothing about how sure that is; the paired test over seeds does. The document's runs were single
ones on shared machines.

{thesis}
"""


if __name__ == "__main__":
    main(*sys.argv[1:3])
