"""docs/benchmark.md from the JSON of `trimtab bench` and of `benchmarks/train/evaluate.py`: no figure in it is typed by
hand."""

# ruff: noqa: E501  (a page has long lines)
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
    held_out = json.loads((read / "foresight.json").read_text())["calm"]
    headline = rows(row for name in sorted(held_out) for row in held_out[name]["rows"])
    everybody = rows(json.loads((read / "bench-everybody.json").read_text())["rows"])
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


def rows(plain: Iterable[dict[str, Any]]) -> list[BenchRow]:
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
        "to retuned",
        "wins",
        "churn",
        "resizes",
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
        "" if summary.to_retuned is None else f"{summary.to_retuned:.3f}",
        "" if summary.wins is None else f"{summary.wins} of {summary.traces}",
        "" if summary.churn is None else f"x{summary.churn:.1f}",
        f"{summary.resizes:.0f}" if summary.resizes else "",
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

## Default HPA, HPA retuned every night, and looking ahead

`hpa-default` has a target of 70 % on the rate of requests, 10 % tolerance and five minutes of stabilisation.
`hpa-rolling` is what `trimtab tune` does: the best of 135 such settings on the workload's own days so far, changed only
for a gain of 2 %. With `-bridge` ready pods may grow in place while others start; `trimtab` may also choose the learned
forecast and its prices, with weights that have never seen the trace's source (those that `trimtab bench` uses have seen most of them).
[Before the load arrives](foresight.md) says what each part buys, trace by trace, and what happens when the world is not as believed.

{headline}

The {fine_traces} traces recorded every minute or faster, where nothing is held between samples (lambda 32):

{fine}

## Everybody's policies

As they are out of the box, at a start-up of two minutes, on {everybody_traces} traces recorded every minute or
faster: the policies of others are policies of ours here, run by the same code.

{everybody}

## Where the traces come from

None of them is in the repository. Each file is Parquet with `timestamp` (seconds, UTC) and `value`, or `series` beside them for a fleet; holes are left out as rows
and nothing is smoothed, scaled or clipped. A trace is taken with a step of at most five minutes and seven whole days; of a fleet of CPU the first
eight series, by name, that span twenty days.

| traces | origin | licence | how to make them again |
|---|---|---|---|
| `svc_ms_*` (4) | Microsoft Cloud Monitoring Dataset, github.com/microsoft/cloud-monitoring-dataset | MIT | `mongodb-application-rps/mongo-01`, `-03` and `data-ingress-rate/ingress-01`, `-04`, labels dropped |
| `web_aws_elb_requests_5min`, `cpu_ec2_77c1ca_5min`, `social_tweets_amzn_5min` | Numenta Anomaly Benchmark, github.com/numenta/NAB | MIT (of the snapshot used) | the files of these names under realAWSCloudwatch and realTweets, times as UTC |
| `cpu_smd_m2_1_1min`, `net_smd_m1_7_1min` | Server Machine Dataset (OmniAnomaly), as packed by github.com/zhhlee/InterFusion | MIT | machine-2-1 column 0, machine-1-7 column 20; both halves joined |
| `net_uk_backbone_5min` | P. Cortez et al., Expert Systems 2012, by way of github.com/FinYang/tsdl | GPL-3 of the package; none stated for the data | B5M.txt from 2004-11-19 09:30 |
| `cpu_alibaba2018_cluster_30s`, `cpu_azure_v2_total_5min` | github.com/alejandrofdez-us/DataCenter-Traces-Datasets; Alibaba cluster trace 2018, Azure Public Dataset V2 | CC BY 4.0; Alibaba's own: research or study | the day files in their order; the region's total of cpu x cores |
| `web_nasa_http_1min` | Internet Traffic Archive, NASA Kennedy Space Center, July and August 1995 | freely redistributable | requests per second summed to minutes, moved to UTC |
| `events_azure_vm_arrivals_5min` | Azure Public Dataset V1, prepared in github.com/huaweicloud/trace_generation_rnn | CC BY 4.0 | entries of each line of train, dev and test counted |
| `batch_surf_hpc_jobs_5min` | SURF, July to October 2022, github.com/atlarge-research/opendc | MIT | arrival times of tasks counted in five minutes |
| `genai_lora_requests_1min` | Alibaba GenTD26, github.com/alibaba/clusterdata | none; research or study | requests counted by minute |
| `fleet_google2011_jobs_cpu_5min` (8) | Google cluster data 2011, sums by job in github.com/Lacki28/workload-prediction-optimization | CC BY 4.0 | jobs of 8,000 samples or more, at most 20 holes |
| `fleet_bitbrains_vm_cpu_5min` (8) | Bitbrains fastStorage (GWA-T-12), Grid Workloads Archive | public use, citation asked | VMs of 8,000 samples or more, mean CPU of 1 % or more |
| `fleet_azure_v1_vm_cpu_5min` (8) | Azure Public Dataset V1, sample of github.com/carlonlv/DataCenterSim | CC BY 4.0 | its two tables, one column that occurs twice dropped |

Without any of them, `trimtab bench --generated` runs the same protocol on twelve loads that are made from seeds: every shape of `generate:` twice, four weeks each,
the same on every machine.

## Predictive HPA's evaluation

Its traffic patterns with its recipe, {seeds} seeds. Above zero the predictive policy was better. z = mean / std, as
published, says nothing about how sure that is; the paired test over seeds does. The document's runs were single
ones on shared machines.

{thesis}
"""


if __name__ == "__main__":
    main(*sys.argv[1:3])
