"""docs/scale.md from the JSON of benchmarks/live.py and benchmarks/growth.py: no figure in it is typed by hand."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks.growth import CHURN_TURNS
from benchmarks.scale.targets import TARGETS, Target

Row = dict[str, Any]
Item = TypeVar("Item")
Cell = Callable[[Row], str]


def main(folder: str, page: str) -> None:
    found = [json.loads(path.read_text()) for path in sorted(Path(folder).glob("*.json"))]
    live = sorted(
        (run for run in found if run["benchmark"] == "live"), key=lambda run: (run["objects"], run.get("note", ""))
    )
    growth = [run for run in found if run["benchmark"] == "growth"]
    grown = sorted((row for run in growth for row in run["objects"]), key=lambda row: row["objects"])
    churns = [run["churn"] for run in growth if "churn" in run]
    parts = [HEAD]
    parts += [PROMISED.format(table=table(_promises(live), TARGETS), largest=live[-1]["objects"])] if live else []
    rested = [run for run in live if "tick_interval_s" in run]
    parts += [LIVE.format(steady=table(STEADY, rested), spent=table(SPENT, rested))] if rested else []
    mixed, beside = (
        [run for run in live if run["mixed"] and run.keys() & {"storm_p50_s", "leader_change_s"}],
        [run for run in live if "hpa_interval_s" in run],
    )
    parts += [HAPPENS.format(table=table(HAPPENED, mixed))] if mixed else []
    parts += [f"{spoiled}\n" for run in live for spoiled in run.get("spoiled", ())]
    parts += [THEIRS.format(table=table(BUILT_IN, beside))] if beside else []
    by_pods = [row for run in growth for row in run["pods"]]
    parts += [GROWTH.format(objects=table(GROWN, grown), pods=table(BY_PODS, by_pods))]
    imports = max(run.get("imports_mb", 0.0) for run in growth)
    parts += [MEMORY.format(held=table(HELD, [row for run in growth for row in run["memory"]]), imports=imports)]
    parts += [_churned(churn) for churn in churns]
    Path(page).write_text("\n".join([*parts, BEYOND]))


def _churned(churn: Row) -> str:
    held = churn["held_mb"]
    return CHURN.format(**churn | {"note": _note(churn), "first": held[0], "full": held[CHURN_TURNS], "last": held[-1]})


def table(columns: dict[str, Callable[[Item], str]], rows: Sequence[Item]) -> str:
    lines = ["| " + " | ".join(columns) + " |", "|" + "---:|" * len(columns)]
    lines += ["| " + " | ".join(cell(row) for cell in columns.values()) + " |" for row in rows]
    return "\n".join(lines)


def _promises(live: Sequence[Row]) -> dict[str, Callable[[Target], str]]:
    """What is promised of 10,000, and what each run has."""
    columns: dict[str, Callable[[Target], str]] = {
        "": lambda target: target.text,
        "promised": lambda target: f"at most {target.most:,.{target.digits}f}" if target.most else "none",
    }
    return columns | {f"{run['objects']:,} objects{_note(run)}": _reached(run) for run in live}


def _note(run: Row) -> str:
    """What a reader must know of a run that is not a whole one of the code as it is."""
    return f", {run['note']}" if "note" in run else ""


def _reached(run: Row) -> Callable[[Target], str]:
    def cell(target: Target) -> str:
        if target.name not in run:
            return ""
        text = f"{run[target.name]:,.{target.digits}f}"
        return text if target.is_reached(run) else f"**{text}**"

    return cell


def number(name: str, digits: int = 0) -> Cell:
    return lambda row: f"{row[name]:,.{digits}f}" if name in row else ""


def pair(first: str, second: str, digits: int) -> Cell:
    return lambda row: f"{row[first]:.{digits}f} / {row[second]:.{digits}f}" if second in row else ""


def size(row: Row) -> str:
    return f"{row['objects']:,}{_note(row)}"


STEADY: dict[str, Cell] = {
    "objects": size,
    "pods": number("pods"),
    "namespaces": number("namespaces"),
    "fleet": lambda row: "mixed" if row["mixed"] else "by CPU",
    "a tick every, s": number("tick_interval_s", 2),
    "it takes, p50 / p99 s": pair("tick_p50_s", "tick_p99_s", 2),
    "operator, CPU-s per tick": number("operator_cpu_s", 3),
    "per object, ms": number("operator_cpu_ms_per_object", 3),
    "with API server, etcd, metrics, ms": number("all_cpu_ms_per_object", 3),
    "MB": number("rss_mb"),
    "requests per tick": number("idle_requests_per_tick", 1),
    "writes, GETs of one object": lambda row: f"{row['idle_writes']}, {row['idle_gets']}",
}
SPENT: dict[str, Cell] = {
    "objects": size,
    "operator": number("operator_cpu_s", 2),
    "API server": number("apiserver_cpu_s", 2),
    "etcd": number("etcd_cpu_s", 2),
    "metrics-server": number("metrics_server_cpu_s", 2),
    "Prometheus": number("prometheus_cpu_s", 2),
    "received by the operator, MB": lambda row: f"{row['received_bytes'] / 1e6:.1f}" if "received_bytes" in row else "",
}
HAPPENED: dict[str, Cell] = {
    "objects": size,
    "storm: scaled": number("storm_objects"),
    "from metric to scale, p50 / p99 s": pair("storm_p50_s", "storm_p99_s", 1),
    "first writes, from the first to the last, s": number("storm_writing_s", 1),
    "all writes": number("storm_scalings"),
    "the last after its tick, s": number("storm_after_tick_s", 1),
    "rollout: Deployments": number("rollout_deployments"),
    "scalings by it": number("rollout_scalings"),
    "restart: whole tick after, s": number("restart_s", 1),
    "scalings by it ": number("restart_scalings"),
    "last status written after, s": number("restart_settled_s", 1),
    "statuses that say something else then": number("restart_forgotten"),
    "leader killed: whole tick after, s": number("leader_change_s", 1),
    "scalings by it  ": number("leader_change_scalings"),
}
BUILT_IN: dict[str, Cell] = {
    "objects": size,
    "a look every, s": number("hpa_interval_s", 1),
    "controller, CPU-s in 15 s": number("hpa_cpu_s_in_15_s", 2),
    "trimtab, CPU-s in 15 s": number("operator_cpu_s", 3),
    "storm, p50 / p99 s": pair("hpa_storm_p50_s", "hpa_storm_p99_s", 1),
    "trimtab, p50 / p99 s": pair("storm_p50_s", "storm_p99_s", 1),
}
GROWN: dict[str, Cell] = {
    "objects": number("objects"),
    "CPU-s per tick": number("cpu_s_per_tick", 3),
    "ms per object": number("cpu_ms_per_object", 3),
}
BY_PODS: dict[str, Cell] = {
    "pods of each": number("pods_each"),
    "objects": number("objects"),
    "CPU-s per tick": number("cpu_s_per_tick", 3),
    "ms per object": number("cpu_ms_per_object", 3),
}
HELD: dict[str, Cell] = {
    "objects": number("objects"),
    "MB held by the operator's own records": number("held_mb", 1),
    "KB per object": number("held_kb_per_object", 1),
}
HEAD = """# How large it may be

Every figure is written here by `benchmarks/pages/scale.py` from runs of `benchmarks/live.py` and
`benchmarks/growth.py`; `make scale-docs` repeats them. Everything ran on the same two cores: CPU-seconds are
comparable, waiting times are upper bounds.
"""
PROMISED = """## What is promised, and what was measured

Promised of 10,000 objects with 20,000 pods; the largest run here has {largest:,} objects. On two cores of which the
control plane, its pods and its load take their part. What was not reached is bold, what was not measured is empty.

{table}
"""
LIVE = """## On a real control plane

etcd, API server, metrics-server and Prometheus as they are released, of the controllers those that Deployments need,
pods played by kwok. Mixed: 60 % by CPU, 20 % by queries (each its own), 10 % with forecasts, 10 % sized. Default
settings, nothing changes. Requests are those to the API server.

{steady}

CPU-seconds per tick of 15 s, by who spends them:

{spent}
"""
HAPPENS = """## When something happens

The load of a tenth doubles at once (metrics-server shows it over two scrapes, so that many are scaled twice, in two
ticks; the second meets a control plane that starts the first one's pods); a fifth of all Deployments is rolled out; the
operator is started again; its leader is killed, and its stand-by waits 15 s for the Lease before it may write.

{table}
"""
THEIRS = """## The built-in HPA controller in the same run

{table}

Others, measured on the same machine in other runs, 1,000 objects with one pod each, CPU-seconds in 15 s: KEDA 2.21 with
its adapter and HPA looks every 50 s (p99 62 s) for 3.0, while the API server takes 5.5; VPA 1.8.1's recommender is busy
for 38 s of its 60 s loop and takes 0.9, the API server 3.2. KEDA writes a status per poll, VPA two patches per object
and loop.
"""
GROWTH = """## How cost grows

The whole operator in one process under a virtual clock, without sockets; what the simulated API server costs is taken
off. One pod per object:

{objects}

More pods per object:

{pods}
"""
MEMORY = """## Memory

{held}

Imports take {imports:.0f} MB beside that.
"""
CHURN = """Over {hours:.1f} hours in which workloads and their namespaces come and go, objects are edited and pods are
replaced ({objects:,} objects{note}, scaled {scalings:,} times): {first:.1f} MB after the first minutes, {full:.1f} MB
when each was scaled once, {last:.1f} MB at the end: {mb_per_hour:+.2f} MB per hour from then on.
"""
BEYOND = """## Beyond it

- A tick that takes longer than its period delays the next one. Nothing is lost: who had no turn has it in the next,
  and windows and rates are counted in time, not in ticks. `trimtab_late_ticks_total` counts it and the log says it.
- Then divide: `shards: N` in the chart's values. A namespace is never divided, so that the largest namespace is the
  limit of one operator.
- Writes wait for the request budget (`--api-qps`, 200 per second), scalings before sizes before statuses before events;
  `trimtab_api_budget_waited_seconds_total` shows it. Up to 64 changes are under way at once, so that the budget is
  spent while the API server takes up to 0.3 s for each; nothing is told meanwhile, for 5 s at most.
- An API server that is slower still answers some scalings after their tick. They are given up then (its audit log says
  504), their objects say so (`AbleToScale`, `trimtab_object_failures_total`), and the next tick looks whether they were
  written before it decides again: none is lost and none is written twice.
"""


if __name__ == "__main__":
    main(*sys.argv[1:])
