"""How the operator's cost grows: CPU and memory of a tick by the number of objects and of pods, and memory over hours.

In one process under the virtual clock, with watches, journal and lease; what the simulated API server and its pods cost
is taken off. `benchmarks/live.py` has the same on a real control plane, where sockets and TLS come on top.
"""

from __future__ import annotations

import argparse
import gc
import json
import logging
import re
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.virtual.apiserver import ApiServer, Audited
from tests.virtual.cluster import Cluster, autoscaler
from trimtab.live.operator import Operator
from trimtab.wire.resources import EVENTS

OBJECTS, PODS = (100, 1000, 3000, 10000), (1, 5, 50)
NAMESPACES = 100
CORES = 0.5  # per pod: its target
TICK_S, WARM_S, MEASURED_S = 15.0, 120.0, 120.0
CHURN_OBJECTS, CHURN_STEP_MIN, CHURN_TURNS = 1000, 5, 10
CHURN_HOURS = 1.0 + CHURN_TURNS * CHURN_STEP_MIN / 60


class Meter:
    """CPU-seconds within ticks, without what the API server took meanwhile."""

    def __init__(self) -> None:
        self.ticks, self.cpu_s, self._others_s = 0, 0.0, 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        tick, handle = Operator._tick, ApiServer.handle

        async def measured_tick(operator: Operator, at: float) -> None:
            began, others = time.process_time(), self._others_s
            await tick(operator, at)
            await operator.ticker.teller.finish()
            self.cpu_s += time.process_time() - began - (self._others_s - others)
            self.ticks += 1

        def measured_handle(server: ApiServer, *args: Any) -> Any:
            began = time.process_time()
            try:
                return handle(server, *args)
            finally:
                self._others_s += time.process_time() - began

        Operator._tick, ApiServer.handle = measured_tick, measured_handle  # type: ignore[method-assign, assignment]
        try:
            yield
        finally:
            Operator._tick, ApiServer.handle = tick, handle  # type: ignore[method-assign]


def fill(cluster: Cluster, objects: int, pods: int) -> None:
    for number in range(objects):
        name = f"team-{number % NAMESPACES:03}/web-{number:05}"
        cluster.deploy(name, replicas=pods, load=CORES * pods)
        cluster.apply(autoscaler(name, maxReplicas=10 * pods))


def settle(cluster: Cluster) -> None:
    """Until a tick has nothing to write: the first statuses of ten thousand objects alone take most of a minute."""
    cluster.run(seconds=WARM_S)
    while any(_is_write(asked) for asked in cluster.server.audit if asked.at > cluster.now() - 2 * TICK_S):
        cluster.run(seconds=2 * TICK_S)


def _is_write(asked: Audited) -> bool:
    return asked.verb in ("create", "patch", "update") and "/leases/" not in asked.path


def steady(objects: int, pods: int) -> dict[str, Any]:
    meter = Meter()
    with meter.running(), Cluster(seed=1) as cluster:
        fill(cluster, objects, pods)
        settle(cluster)
        gc.collect()
        meter.ticks, meter.cpu_s = 0, 0.0
        cluster.run(seconds=MEASURED_S)
    return {
        "objects": objects,
        "pods_each": pods,
        "cpu_s_per_tick": meter.cpu_s / meter.ticks,
        "cpu_ms_per_object": 1000 * meter.cpu_s / meter.ticks / objects,
        "ticks": meter.ticks,
    }


def memory(objects: int, pods: int) -> dict[str, Any]:
    """What the operator's own code holds, by where it was made."""
    tracemalloc.start()
    with Cluster(seed=1) as cluster:
        fill(cluster, objects, pods)
        cluster.run(seconds=WARM_S)
        held = held_mb(cluster)
    tracemalloc.stop()
    return {"objects": objects, "pods_each": pods, "held_mb": held, "held_kb_per_object": 1000 * held / objects}


def held_mb(cluster: Cluster) -> float:
    for process in cluster.processes.values():
        process.forget_done()  # the test double does so only now and then
    gc.collect()
    ours = tracemalloc.Filter(True, "*/trimtab/live/*"), tracemalloc.Filter(True, "*/trimtab/[cwjtm]*")
    found = tracemalloc.take_snapshot().filter_traces(ours)
    simulated = tracemalloc.Filter(False, "*/trimtab/sim/*")
    return sum(each.size for each in found.filter_traces([simulated]).statistics("filename")) / 2**20


def imports_mb() -> float:
    """A process that has imported the operator and has done nothing yet."""
    code = "import trimtab.live.operator, trimtab.web.operator; print(open('/proc/self/status').read())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found = re.search(r"VmRSS:\s+(\d+)", done.stdout)
    return int(found[1]) / 1024 if found else 0.0


def churn(objects: int, hours: float) -> dict[str, Any]:
    """Workloads come and go with their namespaces, objects are edited, pods are replaced: what stays in memory?"""
    held, scaled = list[float](), 0
    tracemalloc.start()
    with Cluster(seed=1) as cluster:
        fill(cluster, objects, 2)
        cluster.run(seconds=7.5)  # looked at between two ticks
        for step in range(round(60 * hours / CHURN_STEP_MIN)):
            name = f"passing-{step}/web"
            cluster.deploy(name, replicas=2, load=lambda seconds: 0.25 if seconds % 600 < 300 else 1.0)
            cluster.apply(autoscaler(name))
            for turn, pods in ((step, 4), (step - 1, 2)):  # a tenth doubles, the one before goes back
                for number in range(turn % CHURN_TURNS, objects, CHURN_TURNS):
                    edited = f"team-{number % NAMESPACES:03}/web-{number:05}"
                    cluster.load(edited, CORES * pods)  # pods are made and deleted
                    cluster.apply(autoscaler(edited, maxReplicas=20 + step))
            cluster.run(minutes=CHURN_STEP_MIN - 1)
            cluster.delete("Autoscaler", name)
            cluster.delete("Deployment", name)
            cluster.run(minutes=1)
            scaled += sum(asked.path.endswith("/scale") for asked in cluster.server.audit)
            cluster.server.audit.clear()  # what the simulated API server keeps of the past is not the operator's
            cluster.server.store.compact()
            cluster.server.store.of(EVENTS).items.clear()
            held.append(held_mb(cluster))
            print(f"  churn: {held[-1]:.1f} MB after {CHURN_STEP_MIN * (step + 1)} minutes", flush=True)
    tracemalloc.stop()
    late = held[CHURN_TURNS:]  # until each was scaled once, its memory and its status grow
    slope = float(np.polyfit(np.arange(len(late)) * CHURN_STEP_MIN / 60, late, 1)[0])
    return {"objects": objects, "hours": hours, "scalings": scaled, "held_mb": held, "mb_per_hour": slope}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--objects", type=int, nargs="*", default=OBJECTS)
    parser.add_argument("--pods", type=int, nargs="*", default=PODS, help="of each, at the smallest number of objects")
    parser.add_argument("--hours", type=float, default=CHURN_HOURS, help="of coming and going; 0: none")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    args = parser.parse_args()
    logging.disable(logging.WARNING)
    result: dict[str, Any] = {"benchmark": "growth", "imports_mb": imports_mb()}
    result["objects"] = [_said(steady(objects, 1)) for objects in args.objects]
    result["pods"] = [_said(steady(min(args.objects), pods)) for pods in args.pods]
    result["memory"] = [_said(memory(objects, 1)) for objects in args.objects if objects <= 1000]
    if args.hours:
        result["churn"] = _said(churn(CHURN_OBJECTS, args.hours))
    print(json.dumps(result))
    if args.json:
        args.json.write_text(json.dumps(result, indent=1) + "\n")


def _said(row: dict[str, Any]) -> dict[str, Any]:
    print(
        ", ".join(f"{key} {value:.3f}" if isinstance(value, float) else f"{key} {value}" for key, value in row.items())
    )
    return row


if __name__ == "__main__":
    main()
