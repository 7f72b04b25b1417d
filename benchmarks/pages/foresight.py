"""docs/foresight.md from the JSON of `benchmarks/train/evaluate.py` and of `benchmarks/ahead.py`: no figure in it is typed by hand.

python benchmarks/pages/foresight.py out/learned.json out/ahead.json docs/foresight.md
python benchmarks/pages/foresight.py out/ahead.json docs/foresight.md    only the day on a real control plane
python benchmarks/pages/foresight.py out/learned.json docs/foresight.md  only the disturbances, of as many traces as there are
"""

# ruff: noqa: E501  (a page has long lines)
from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from benchmark import table

from trimtab.bench.summary import geometric_mean

BASE = "hpa-rolling"
PARTS = {
    "hpa-default": "default HPA",
    "hpa-default-bridge": "default HPA and the bridge, without any history",
    "hpa-rolling": "HPA retuned every night",
    "hpa-rolling-bridge": "the same, with the bridge as one more choice",
    "trimtab": "the same without a bridge, with the learned forecast and its price as more choices",
    "trimtab-bridge": "all of it",
}
SCENARIOS = {
    "calm": "as it is",
    "jittered": "the moments jittered at which coarse sources change",
    "slow": "start-up 30 % longer than measured",
    "late": "samples a minute late",
    "refused": "a tenth of the pods refuse to grow",
}
STARTUPS_S, LAMBDAS, BALANCED = (30.0, 120.0, 600.0), (8.0, 32.0, 128.0), 32.0
ALL = 40  # traces of the protocol
NATIVE = ("_1min", "_30s")
COVERED = (87.0, 93.0)  # what 90 % may be off

Rows = list[dict[str, Any]]


def main(*words: str) -> None:
    *figures, last, page = words
    found = json.loads(Path(last).read_text())
    if "calm" in found:
        section = disturbed(in_order(found))
    else:
        section = PLAYED.format(played=side_by_side(found), hours=found["hours"])
    Path(page).write_text(whole(figures[0], section) if figures else with_section(Path(page).read_text(), section))


def with_section(text: str, section: str) -> str:
    """The page with another section under the same heading."""
    before, after = text.split(section.splitlines()[0] + "\n")
    rest = after.split("\n## ", 1)[1]
    return f"{before}{section}\n\n## {rest}"


def whole(figures: str, section: str) -> str:
    found = in_order(json.loads(Path(figures).read_text()))
    calm = found["calm"]
    rows = [row for trace in calm.values() for row in trace["rows"]]
    return TEXT.format(
        traces=len(calm),
        picked=""
        if len(calm) >= ALL
        else f" of {ALL} (the shorter single series and two of each fleet, not drawn at random: single figures may move by some hundredths over all)",
        parts=parts(rows),
        native=parts([row for row in rows if is_native(row["trace"])]),
        natives=sum(map(is_native, calm)),
        prices=prices(rows),
        per_trace=per_trace(calm),
        disturbed=disturbed(found),
        tried=TRIED,
        coverage=coverage(calm),
        played=section,
    )


def in_order(found: dict[str, Any]) -> dict[str, Any]:
    return {scenario: dict(sorted(found[scenario].items())) for scenario in SCENARIOS if scenario in found}


def side_by_side(day: dict[str, Any]) -> str:
    """One day on a real control plane, both on the same load."""
    heads = ("", "seconds over the service level", "pod-minutes", "cpu-minutes, the bridge counted")
    words = {"hpa": "default HPA, the built-in controller", "trimtab": "tuned, with the bridge"}
    figures = ("over_s", "pod_minutes", "cpu_minutes")
    return table(heads, ((text, *(f"{day[side][word]:,.0f}" for word in figures)) for side, text in words.items()))


def is_native(trace: str) -> bool:
    """Recorded every minute or finer: nothing is held between two samples."""
    return trace.endswith(NATIVE)


def ratios(rows: Rows, policy: str, startup_s: float, lam: float) -> np.ndarray:
    """J to that of retuned HPA under the same, by trace."""
    chosen = [row for row in rows if (row["init_s"], row["lambda"]) == (startup_s, lam)]
    j = {(row["policy"], row["trace"]): row["j"] for row in chosen}
    return np.array([j[policy, trace] / j[BASE, trace] for name, trace in j if name == policy])


def each(values: Iterable[float], digits: int = 3) -> str:
    return " / ".join(f"{value:.{digits}f}" for value in values)


def parts(rows: Rows) -> str:
    heads = ("", "J", "ratio to retuned HPA", "worst trace", "churn of retuned HPA's", "resizes per pod-day, median")
    return table(heads, [part(rows, policy, words) for policy, words in PARTS.items()])


def part(rows: Rows, policy: str, words: str) -> list[str]:
    own = [row for row in rows if row["policy"] == policy and row["lambda"] == BALANCED]
    by_startup = [[row for row in own if row["init_s"] == startup_s] for startup_s in STARTUPS_S]
    compared = [ratios(rows, policy, startup_s, BALANCED) for startup_s in STARTUPS_S]
    churn = {
        (row["policy"], row["trace"], row["init_s"]): max(1.0, row["churn_per_day"])
        for row in rows
        if row["lambda"] == BALANCED
    }
    return [
        words,
        each(geometric_mean(np.array([row["j"] for row in some])) for some in by_startup),
        each(geometric_mean(values) for values in compared),
        each((float(values.max()) for values in compared), 2),
        each(
            (
                geometric_mean(
                    np.array(
                        [
                            churn[policy, row["trace"], row["init_s"]] / churn[BASE, row["trace"], row["init_s"]]
                            for row in some
                        ]
                    )
                )
                for some in by_startup
            ),
            2,
        ),
        each((float(np.median([row["resizes_per_pod_day"] for row in some])) for some in by_startup), 0),
    ]


def prices(rows: Rows) -> str:
    heads = ("lambda", *(f"`{name}`" for name in ("trimtab", "trimtab-bridge")))
    cells = [
        [
            f"{lam:g}",
            *(
                each(geometric_mean(ratios(rows, name, startup_s, lam)) for startup_s in STARTUPS_S)
                for name in ("trimtab", "trimtab-bridge")
            ),
        ]
        for lam in LAMBDAS
    ]
    return table(heads, cells)


def per_trace(calm: dict[str, Any]) -> str:
    heads = ("trace", "J of retuned HPA", "`trimtab` to it", "`trimtab-bridge` to it")
    cells = []
    for name, trace in calm.items():
        j = {(row["policy"], row["init_s"]): row["j"] for row in trace["rows"] if row["lambda"] == BALANCED}
        own = [j[BASE, startup_s] for startup_s in STARTUPS_S]
        others = [
            each(j[policy, s] / before for s, before in zip(STARTUPS_S, own, strict=True))
            for policy in ("trimtab", "trimtab-bridge")
        ]
        cells.append([name, each(own, 2), *others])
    return table(heads, cells)


def scenarios(found: dict[str, Any]) -> str:
    names = ("hpa-rolling-bridge", "trimtab", "trimtab-bridge")
    heads = ("", "traces", *(f"`{name}`" for name in names), "`trimtab-bridge` on these traces, as it is")
    cells = []
    for scenario, traces in found.items():
        rows = [row for trace in traces.values() for row in trace["rows"]]
        calm = [row for name in traces for row in found["calm"][name]["rows"]]
        compared = [balanced(rows, name) for name in names]
        cells.append([SCENARIOS[scenario], str(len(traces)), *compared, balanced(calm, "trimtab-bridge")])
    return table(heads, cells)


def disturbed(found: dict[str, Any]) -> str:
    tried = set.intersection(*(set(traces) for traces in found.values()))
    names = "" if len(tried) >= ALL else f"\n\nTried were {', '.join(f'`{name}`' for name in sorted(tried))}."
    return DISTURBED.format(scenarios=scenarios(found)) + names


def balanced(rows: Rows, policy: str) -> str:
    return each(geometric_mean(ratios(rows, policy, startup_s, BALANCED)) for startup_s in STARTUPS_S)


def coverage(calm: dict[str, Any]) -> str:
    heads = ("trace", "a pod ordered now", "a pod let go now")
    cells = [
        [name, each(trace["coverage"]["start"], 1), each(trace["coverage"]["keep"], 1)] for name, trace in calm.items()
    ]
    shares = np.array([trace["coverage"][word] for trace in calm.values() for word in ("start", "keep")])
    within = ((shares >= COVERED[0]) & (shares <= COVERED[1])).mean()
    found = f"Between {COVERED[0]:g} and {COVERED[1]:g} % are {100 * within:.0f} % of these figures."
    return f"{table(heads, cells)}\n\n{found}"


DISTURBED = """## When the world is not as believed

Candidates are chosen by what is believed and judged by what happens; retuned HPA suffers the same. Compare with the last column.

{scenarios}"""

PLAYED = """## On a real control plane

A day of a made-up office load at twelve times its speed (`python benchmarks/ahead.py`, {hours:g} hours), once under the built-in HPA controller at a target of 70 %, once
under what `trimtab tune` made of it from the seven days before. Everything else is the same for both and as fast as the day: pods take ten minutes of it to start,
both look every 15 s of it, and learn what pods use from a Prometheus that scrapes every second. Only the bridge keeps its own five minutes, an hour of that day,
so its cpu is counted too high.

{played}"""

TRIED = """## What was tried

`trimtab-bridge` on all forty traces, lambda 32, with one thing otherwise:

|  | ratio to retuned HPA | worst trace |
|---|---|---|
| as it is | 0.880 / 0.836 / 0.789 | 1.00 / 1.00 / 1.00 |
| one pair of prices: a start at an eighth of the price, keeping at all of it | 0.890 / 0.853 / 0.820 | 1.00 / 1.00 / 1.00 |
| the two pairs that an objective has by itself, with and without a bridge | 0.889 / 0.848 / 0.815 | 1.00 / 1.00 / 1.00 |
| no reactive settings among the candidates | 0.879 / 0.835 / 0.795 | 1.01 / 1.00 / 1.03 |
| one ceiling of the bridge, 0.75 | 0.883 / 0.844 / 0.795 | 1.00 / 1.01 / 1.00 |
| one ceiling of the bridge, 0.78 | 0.879 / 0.836 / 0.790 | 1.00 / 1.00 / 1.00 |
| ceilings up to 0.75 for reactive settings, from 0.70 for priced ones | 0.880 / 0.835 / 0.791 | 1.00 / 1.00 / 1.01 |
| switching for any gain | 0.876 / 0.832 / 0.786 | 1.00 / 1.00 / 1.01 |
| switching for 1 % | 0.878 / 0.834 / 0.788 | 1.00 / 1.00 / 1.01 |
| switching for 4 % | 0.882 / 0.838 / 0.794 | 1.01 / 1.01 / 1.01 |
| half-life of three days | 0.878 / 0.834 / 0.788 | 1.00 / 1.00 / 1.00 |
| half-life of two weeks | 0.880 / 0.835 / 0.790 | 1.00 / 1.00 / 1.00 |

So the choice of prices is worth one to three points, the bridge's ceiling half a point, and how choices are made less than that. Switching for 2 % stays: a smaller gain is not worth
a change in a cluster. With the load itself as floor (never fewer pods than it needs now, as in the operator) the figures are those without it to 0.001 at this
lambda, and up to 0.01 worse at lambda 8. What is aimed at, 0.84 / 0.80 / 0.755, is not reached."""

TEXT = """# Before the load arrives

Written by `benchmarks/pages/foresight.py` from a run of `benchmarks/train/evaluate.py`; no figure here is typed, but those of what was tried.

Four fields, each of use alone, and off where it is left out:

| field | what it does |
|---|---|
| `bridge` | ready pods get 1.25 or 1.5 times their cpu within a tick while others start ([bridge](bridge.md)) |
| `objective` | prices load that meets too few pods; pods are started and kept as long as the learned forecast says they are worth it |
| `forecast` | a look ahead that may only add ([forecasts](forecasts.md)) |
| `tuning` | moves target, tolerance, window, the bridge's ceiling and an objective's prices at night, within limits, and lets an objective earn its place |

## What each part buys

{traces} recorded traces{picked} by the protocol of the [benchmark](benchmark.md), with weights of the forecast that have never seen the trace's source. Lambda 32;
each cell has start-up times of 30 s / 2 min / 10 min. Ratios are geometric means.

{parts}

`trimtab` and `trimtab-bridge` of the benchmark are the last two rows. They choose each night from what an operator's [night](#nights) chooses from, by the same rules:
135 settings, 32 pairs of prices for starting and keeping a pod, and four ceilings of the bridge.

The {natives} traces that were recorded every minute or finer, where nothing is held between two samples:

{native}

At other prices, to retuned HPA:

{prices}

{tried}

## Trace by trace

{per_trace}

{disturbed}

{played}

## Is a 90 % quantile one?

How often demand stayed below it, in percent: the highest demand in the minute after a pod that is ordered now serves, and the highest until a pod that is let
go now could be back.

{coverage}

## Nights

With `tuning: {{mode: Nightly}}` the operator looks at a workload's last 7 to 30 days once a night, from 02:00 on in `tuning.timezone`, before 05:00. The demand
is what it remembers (fifteen days by minute), or read back from Prometheus at first sight. `mode: Advise` only says what it would do.

- **Candidates**: 135 settings of target, tolerance and scale-down window, as far as `tuning.limits` allow; where an objective is written, 32 pairs of prices for
  starting and keeping a pod besides its own, all judged by the price that is written; where a bridge is written, each of these with the bridge at 0.65 to 0.78 or
  resting. Newer days weigh more, half after a week; days before a change of unit do not count at all. A candidate that loses by its pods and starts alone is not tried with a bridge, which hardly changes these.
- **Switching**: only for 2 % of J or more, and at most one in twenty of all workloads in one night, those first that gain most. Who waits is
  tried again the next night.
- **Going back**: the operator counts what each day has cost in earnest. A day that is worse than promised by more than days differ, on which what was
  replaced would have done better, ends the new settings, with a Warning, and the workload rests for a week.
- **New workloads** follow their target until a week is known. An objective with `tuning: {{mode: Nightly}}` steers once it has earned its place; until then
  `status.tuning.reason` says so. Where no night can compare it with the target, it steers as it is written.
- **An edit** of the object ends what tuning put in force: the owner's word is newer.

It happens in a process of its own, the least important one of the machine, with at most 448 MiB and twenty seconds of CPU per workload: it may die, and
no tick notices. `python benchmarks/tuning.py` says how long a fleet takes.

```
$ kubectl get autoscaler web -o jsonpath='{{.status.tuning}}'
```

| `status.tuning` | |
|---|---|
| `verdict` | Switched, Kept, Waits (enough others switch), Advised, WentBack, Unknown (not yet) and Untunable (never: what is written steers) with the `reason`; Waiting before the first night. A column of `kubectl get` |
| `inForce`, `replaced`, `since` | the settings that decide now, those before them, and since when |
| `advice` | what would be better and is not in force |
| `evidence` | days, and J, violations, cost and churn of both |

Events: `TuningSwitched`, `TuningAdvised`, `TuningWentBack`. Every decision in the journal has the policy that made it, so a replay goes across a switch.
Written rates, bounds and schedules are never moved. On an EffectiveHorizontalPodAutoscaler or an Hvpa it is the annotation `trimtab.dev/tuning`.
"""

if __name__ == "__main__":
    main(*sys.argv[1:])
