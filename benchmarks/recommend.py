"""Advice on many workloads: the analysis alone of 10,000, fetch and analysis of 1,000 from a real Prometheus, both by
Crane's formulas and tuned and backtested (what `trimtab recommend` does by default).

The first part makes up each chunk when it is needed and does not count that time; its memory must not grow with the
number of workloads. The others are what `trimtab recommend` does after it has listed the workloads.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))
from benchmarks.history import END, PeakWatch, series, server_mb
from tests.history.filled import fill, serve
from trimtab.advisor.run import CHUNK, advise_all, analyse
from trimtab.advisor.targets import AdvisedTarget
from trimtab.advisor.workloads import HistoryWindow, PastLoad
from trimtab.core.advise import WorkloadAdvice, advise
from trimtab.core.model import Pod
from trimtab.history.workload_history import WorkloadHistory
from trimtab.policy import Advice, Inspection, Size
from trimtab.sim.prices import OBJECTIVES
from trimtab.tune.proven_advice import AdviceTerms
from trimtab.wire.access import prometheus_access
from trimtab.wire.prometheus import Prometheus

RULES = Inspection(min_cpu_usage_cores=0.0)
PROVEN = Inspection(advice=Advice.BOTH)
WEEK_S, STEP_S, PODS = 604800.0, 60.0, 3


def target(index: int, namespaces: int, pods: int, replicas: int = 0) -> AdvisedTarget:
    since = END - WEEK_S
    names = [f"web-{index}-5d4f9c8b7-x2v7k", *(f"web-{index}-5d4f9c8b7-y{extra}" for extra in range(pods - 1))]
    return AdvisedTarget(
        "apps/v1",
        "Deployment",
        f"team-{index % namespaces}",
        f"web-{index}",
        replicas or pods,
        {"main": Size(cpu_cores=1.0, memory_bytes=2.0**30)},
        tuple(Pod(name=name, started_at=since, ready_since=since) for name in names),
    )


# --- the analysis alone ----------------------------------------------------------------------------------------------


def past(chunk: list[AdvisedTarget], noise: np.random.Generator) -> PastLoad:
    """A noisy day that every workload begins at another hour; its pods share it, on their own coarser grid."""
    times = END - WEEK_S + STEP_S * np.arange(int(WEEK_S / STEP_S))
    cpu, single = {}, {}
    for index, one in enumerate(chunk):
        cores = 3 + 2 * np.sin(2 * np.pi * (times / 86400 + index / 24)) + noise.random(len(times)) / 5
        cpu[one.row] = cores
        single[one.row] = {("main", pod.name): cores[::5] / len(one.pods) for pod in one.pods}
    return PastLoad(END - WEEK_S, STEP_S, cpu, {}, single, {})


def analysis(workloads: int) -> dict[str, Any]:
    noise, spent, busy, early_mb, advised = np.random.default_rng(1), 0.0, 0.0, 0.0, 0
    for first in range(0, workloads, CHUNK):
        chunk = [target(index, 10, PODS) for index in range(first, min(workloads, first + CHUNK))]
        given = past(chunk, noise)
        started, started_busy = time.perf_counter(), time.process_time()
        outcomes = analyse(RULES, chunk, given, END)
        spent += time.perf_counter() - started
        busy += time.process_time() - started_busy
        advised += sum(isinstance(one.result, WorkloadAdvice) for one in outcomes)
        if first // CHUNK == 4:
            early_mb = peak_mb()
    assert advised == workloads, "every workload should have got its advice"
    took = {"analysis_s": spent, "analysis_cpu_s": busy, "ms_a_workload": busy / workloads * 1e3}
    return took | {"peak_mb": peak_mb(), "after_500_mb": early_mb}


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


# --- fetch and analysis ----------------------------------------------------------------------------------------------


async def fetched(url: str, workloads: int, namespaces: int, proven: bool) -> dict[str, Any]:
    """Of a tuned one there may be several pods; its usage is the same."""
    targets = [target(index, namespaces, 1, replicas=4 if proven else 1) for index in range(workloads)]
    rules, judge = (PROVEN, AdviceTerms(OBJECTIVES["balanced"], 120.0).prove) if proven else (RULES, advise)
    window = HistoryWindow(END - WEEK_S, END)
    started, busy, advised = time.perf_counter(), time.process_time(), 0
    async with Prometheus(prometheus_access(url), timeout_s=300) as prometheus:
        async for some in advise_all(rules, targets, WorkloadHistory(prometheus), window, END, judge):
            advised += sum(isinstance(one.result, WorkloadAdvice) for one in some)
        requests = sum(prometheus.counts.values())
    assert advised == workloads, f"only {advised} of {workloads} got advice"
    took = {"total_s": time.perf_counter() - started, "client_cpu_s": time.process_time() - busy}
    return took | {"client_peak_mb": peak_mb(), "requests": requests}


def from_prometheus(args: argparse.Namespace, directory: Path, proven: bool) -> dict[str, Any]:
    if not (directory / "data").exists():
        print(f"filling a Prometheus with {args.fetched} workloads x 7 days ...", flush=True)
        fill(directory, series(args.fetched, 7.0, 60, args.namespaces))
    with serve(directory) as (url, pid):
        before, watch, busy = server_mb(pid), PeakWatch(pid), cpu_s(pid)
        command = [
            sys.executable,
            __file__,
            "--client",
            url,
            str(args.fetched),
            str(args.namespaces),
            "proven" * proven,
        ]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(done.stderr)
        answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return answer | {"server_growth_mb": watch.stop() - before, "server_cpu_s": cpu_s(pid) - busy}


def cpu_s(pid: int) -> float:
    """What a process has worked so far: on a busy machine this says more than the clock."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    if sys.argv[1:2] == ["--client"]:
        print(json.dumps(asyncio.run(fetched(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), bool(sys.argv[5])))))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workloads", type=int, default=10_000, help="for the analysis alone")
    parser.add_argument("--fetched", type=int, default=1000, help="from a real Prometheus; 0 leaves it out")
    parser.add_argument("--namespaces", type=int, default=10)
    parser.add_argument("--data", type=Path, help="keep the filled blocks here, and use them if they are there")
    args = parser.parse_args()
    result: dict[str, Any] = {"benchmark": "recommend", "workloads": args.workloads}
    alone = analysis(args.workloads)
    print(
        f"analysis of {args.workloads} workloads x 10,080 samples: {alone['analysis_s']:.1f} s "
        f"({alone['analysis_cpu_s']:.1f} s of CPU, {alone['ms_a_workload']:.2f} ms each); "
        f"peak {alone['peak_mb']:.0f} MB, after the first 500 {alone['after_500_mb']:.0f} MB",
        flush=True,
    )
    result |= alone
    if args.fetched:
        with tempfile.TemporaryDirectory() as directory:
            data = args.data or Path(directory)
            by_rules = {word: from_prometheus(args, data, word == "proven") for word in ("crane", "proven")}
        for word, both in by_rules.items():
            print(
                f"fetch and analysis of {args.fetched}, {word}: {both['total_s']:.1f} s, {both['requests']} requests; "
                f"client {both['client_cpu_s']:.1f} s of CPU and {both['client_peak_mb']:.0f} MB, server "
                f"{both['server_cpu_s']:.1f} s and +{both['server_growth_mb']:.0f} MB"
            )
        result |= {"fetched": args.fetched, **by_rules}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
