"""Seven days of 1,000 workloads, minute by minute, out of a real Prometheus: ours beside prometheus-api-client.

Each client runs in a process of its own against a freshly started server, and their answers are compared. Time,
the client's peak memory, the number of requests and the growth of the server are measured. With --pods and --scrape
there are more samples than points in the answer, and --ours measures trimtab alone.
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
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.history.filled import Filled, fill, serve

END = 1_760_000_400  # a fixed moment, so that the data can be kept and used again
OWNER_STEP_S = 240  # often enough for kube-state-metrics' labels, which never change here


def series(workloads: int, days: float, scrape_s: int, namespaces: int, pods: int = 1) -> Iterator[Filled]:
    """A noisy day that every workload begins at another hour."""
    noise = np.random.default_rng(1)
    times = np.arange(END - int(days * 86400) - 600, END + scrape_s, scrape_s)
    seldom = np.arange(times[0], END, OWNER_STEP_S)
    for index in range(workloads):
        space, owner = f"team-{index % namespaces}", f"web-{index}-5d4f9c8b7"
        for suffix in ("x2v7k", *(f"y{extra}" for extra in range(pods - 1))):
            cores = 1.5 + np.sin(2 * np.pi * (times / 86400 + index / 24)) + noise.random(len(times)) / 10
            pod = f'namespace="{space}",pod="{owner}-{suffix}"'
            usage = f'container_cpu_usage_seconds_total{{{pod},container="main"}}'
            yield Filled(usage, times, np.cumsum(cores * scrape_s))
            ours = f'owner_kind="ReplicaSet",owner_name="{owner}",owner_is_controller="true",job="kube-state-metrics"'
            yield Filled(f"kube_pod_owner{{{pod},{ours}}}", seldom, np.ones(len(seldom)))
        above = f'owner_kind="Deployment",owner_name="web-{index}",owner_is_controller="true",job="kube-state-metrics"'
        labels = f'namespace="{space}",replicaset="{owner}",{above}'
        yield Filled(f"kube_replicaset_owner{{{labels}}}", seldom, np.ones(len(seldom)))


# The clients: each prints one line of JSON and is measured from outside, too.


async def with_trimtab(url: str, start: float, step_s: float) -> dict[str, Any]:
    from trimtab.history.source import Selection, fetch
    from trimtab.history.workload_history import WorkloadHistory
    from trimtab.wire.access import prometheus_access
    from trimtab.wire.prometheus import Prometheus

    async with Prometheus(prometheus_access(url), timeout_s=300) as prometheus:
        source = WorkloadHistory(prometheus)
        frame = await fetch(source, Selection("cpu"), start, END, step_s)
        return _summary(frame.values, sum(prometheus.counts.values()))


async def with_api_client(url: str, start: float, step_s: float) -> dict[str, Any]:
    """As its users write it: one query for everything."""
    everything = (
        'sum by (namespace,stem)(label_replace(rate(container_cpu_usage_seconds_total{container!="",container!="POD"}'
        '[180s]),"stem","$1","pod","(.+)-[^-]+"))'
    )
    return _by_api_client(url, [everything], start, step_s)


async def with_api_client_paged(url: str, start: float, step_s: float) -> dict[str, Any]:
    """With our pages, one after the other: what is left is compression, JSON and Python floats."""
    from trimtab.history.pod_owners import EVERYTHING, find_members
    from trimtab.history.source import Selection
    from trimtab.history.workload_history import plan
    from trimtab.wire.access import prometheus_access
    from trimtab.wire.prometheus import Prometheus

    async with Prometheus(prometheus_access(url)) as prometheus:
        members = await find_members(prometheus, None, (), EVERYTHING, start, END)
    pages = [page.expression for page in plan(members, Selection("cpu"), (), step_s)]
    return _by_api_client(url, pages, start, step_s)


def _by_api_client(url: str, queries: list[str], start: float, step_s: float) -> dict[str, Any]:
    from prometheus_api_client import PrometheusConnect

    client = PrometheusConnect(url=url)
    first, last = datetime.fromtimestamp(start, UTC), datetime.fromtimestamp(END - step_s, UTC)
    rows = [
        np.array([float(value) for _, value in one["values"]])
        for query in queries
        for one in client.custom_query_range(query, first, last, f"{step_s:g}")
    ]
    return _summary(np.stack(rows), len(queries))


def _summary(values: Any, requests: int) -> dict[str, Any]:
    samples, total = int(np.isfinite(values).sum()), float(np.nansum(values))
    return {"rows": values.shape[0], "samples": samples, "total": total, "requests": requests}


CLIENTS = {
    "trimtab": with_trimtab,
    "prometheus-api-client": with_api_client,
    "the same, in our pages": with_api_client_paged,
}


def run_client(name: str, url: str, start: float, step_s: float) -> None:
    started, busy = time.perf_counter(), time.process_time()
    answer = asyncio.run(CLIENTS[name](url, start, step_s))
    answer |= {"fetch_s": time.perf_counter() - started, "client_cpu_s": time.process_time() - busy}
    answer["client_peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(answer))


def measure(name: str, directory: Path, start: float, step_s: float) -> dict[str, Any]:
    with serve(directory) as (url, pid):
        before = server_mb(pid)
        watch = PeakWatch(pid)
        command = [sys.executable, __file__, "--client", name, url, str(start), str(step_s)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(done.stderr)
        answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return answer | {"server_growth_mb": watch.stop() - before, "server_cpu_s": server_cpu_s(pid)}


class PeakWatch:
    """The largest resident memory of a process while we look."""

    def __init__(self, pid: int) -> None:
        self.pid, self.peak, self._over = pid, 0.0, threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while not self._over.wait(0.05):
            self.peak = max(self.peak, server_mb(self.pid))

    def stop(self) -> float:
        self._over.set()
        self._thread.join()
        return self.peak


def server_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) / 1024


def server_cpu_s(pid: int) -> float:
    """All it has used since its start: on a busy machine CPU tells more than the clock."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def bench(args: argparse.Namespace, directory: Path) -> None:
    if not (directory / "data").exists():
        print(f"filling {args.workloads} workloads x {args.days:g} days at {args.scrape} s ...", flush=True)
        fill(directory, series(args.workloads, args.days, args.scrape, args.namespaces, args.pods))
    start = END - args.days * 86400
    results = {}
    print(f"{'':24}{'fetch':>9}{'CPU':>9}{'peak':>10}{'server CPU':>13}{'growth':>10}  requests")
    for name in list(CLIENTS)[: 1 if args.ours else None]:
        results[name] = one = measure(name, directory, start, args.step)
        print(
            f"{name:24}{one['fetch_s']:7.2f} s{one['client_cpu_s']:7.2f} s{one['client_peak_mb']:7.0f} MB"
            f"{one['server_cpu_s']:11.2f} s{one['server_growth_mb']:7.0f} MB  {one['requests']}",
            flush=True,
        )
    report(args, results)


def report(args: argparse.Namespace, results: dict[str, dict[str, Any]]) -> None:
    ours, *others = results.values()
    for theirs in others:
        assert ours["rows"] == theirs["rows"] == args.workloads
        assert ours["samples"] == theirs["samples"]
        assert abs(ours["total"] - theirs["total"]) <= 1e-9 * theirs["total"], "the clients disagree"
    faster = {name: one["fetch_s"] / ours["fetch_s"] for name, one in results.items() if one is not ours}
    print(f"{ours['samples'] / 1e6:.2f} M points; as fast as " + ", ".join(f"{n} x {f:.1f}" for n, f in faster.items()))
    shape = {key: getattr(args, key) for key in ("workloads", "days", "pods", "scrape", "step")}
    print(json.dumps({"benchmark": "history", **shape, "faster": faster, "runs": results}))


def main() -> None:
    if sys.argv[1:2] == ["--client"]:
        run_client(sys.argv[2], sys.argv[3], float(sys.argv[4]), float(sys.argv[5]))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workloads", type=int, default=1000)
    parser.add_argument("--days", type=float, default=7.0)
    parser.add_argument("--step", type=int, default=60, help="seconds between points of the answer")
    parser.add_argument("--scrape", type=int, default=60, help="seconds between samples")
    parser.add_argument("--pods", type=int, default=1, help="of each workload")
    parser.add_argument("--ours", action="store_true", help="leave prometheus-api-client out")
    parser.add_argument("--namespaces", type=int, default=10)
    parser.add_argument("--data", type=Path, help="keep the filled blocks here, and use them if they are there")
    args = parser.parse_args()
    if args.data:
        bench(args, args.data)
        return
    with tempfile.TemporaryDirectory() as directory:
        bench(args, Path(directory))


if __name__ == "__main__":
    main()
