"""A latency promise against the built-in HPA, on a service with one request at a time at each pod, simulated.

    python benchmarks/promise.py [--days 7]

Load comes by the minute, and pods start in two minutes. Each pod serves 50 requests a second at most, so the 99th
percentile of a minute is ln(100) / (50 - requests per second and pod), scattered as that of a sample is. The level is
learned from the first half, under the HPA alone; the second half is judged. No night raises the level.
"""

from __future__ import annotations

import argparse
from itertools import product

import numpy as np

from benchmarks.latency import m_m_1
from trimtab import kinds
from trimtab.core.latency import LatencyLevel, MinutePairs, learn
from trimtab.core.latency_level import at_level
from trimtab.policy import Policy
from trimtab.series import Floats
from trimtab.sim.cluster import run
from trimtab.sim.cluster_spec import ClusterSpec
from trimtab.sim.generate import generate, parse_shape
from trimtab.sim.grid import DAY_STEPS

SERVED, START = 50.0, 1_760_000_000.0
PROMISES_S = (0.3, 1.0)
MINUTE = 4  # steps
SHAPES = ("diurnal", "office", "bursty")
"""Of `trimtab backtest --load generate:`."""


def policy_of(target: float, **more: object) -> Policy:
    metric = {"query": "rate", "target": {"type": "AverageValue", "averageValue": f"{target:g}"}}
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": 2,
        "maxReplicas": 200,
        "metrics": [{"type": "Prometheus", "prometheus": metric}],
        **more,
    }
    manifest = {"apiVersion": "trimtab.dev/v1alpha1", "kind": "Autoscaler", "metadata": {"name": "web"}, "spec": spec}
    read = kinds.read(manifest)
    assert isinstance(read, kinds.Autoscaler)
    return read.to_policy(START)


def played(policy: Policy, load: Floats, seed: int) -> tuple[Floats, MinutePairs]:
    """Return the pods billed in each minute, and the usage per pod and the latency of each minute."""
    pods = ClusterSpec(startup_s=120.0, pod_capacity=SERVED)
    done = run(policy, load, pods, first_pods=int(load[0] / 25.0) + 2, start=START)
    by_minute = lambda values: values[: len(values) // MINUTE * MINUTE].reshape(-1, MINUTE).mean(axis=1)  # noqa: E731
    usage = by_minute(load) / np.maximum(by_minute(done.ready.astype(float)), 1.0)
    latency = m_m_1(SERVED)(usage, np.random.default_rng(seed))
    return by_minute(done.billed), MinutePairs(START + 60.0 * np.arange(len(usage), dtype=np.float64), usage, latency)


def compared(
    shape: str, days: int, below_s: float, seed: int = 1
) -> tuple[LatencyLevel, list[tuple[str, float, float]]]:
    """What was learned, and for each policy the pod-hours and the share of minutes that kept the promise."""
    load = generate(parse_shape(f"{shape},days={2 * days},peak=400,seed={seed}"))
    half = days * DAY_STEPS
    hpa = policy_of(0.7 * SERVED)
    _, past = played(hpa, load[:half], seed)
    found = learn(past, below_s)
    promise = {"latency": {"query": "p99", "below": f"{1000 * below_s:.0f}ms"}}
    ours = at_level(policy_of(0.7 * SERVED, objective=promise), found.level or None, "", ())
    table = []
    for name, policy in (("HPA at 70 %", hpa), ("promise", ours)):
        billed, lived = played(policy, load, seed + 1)
        judged = slice(half // MINUTE, None)
        kept = float((lived.latency[judged] <= below_s).mean())
        table.append((name, float(billed[judged].sum()) / 60.0, kept))
    return found, table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--days", type=int, default=7)
    days = parser.parse_args().days
    print("| promise | load | policy | pod hours | minutes that kept it | learned level |")
    print("|---|---|---|---|---|---|")
    for below_s, shape in product(PROMISES_S, SHAPES):
        found, table = compared(shape, days, below_s)
        level = f"{found.level:.1f}" if found.level else found.reason
        for name, hours, kept in table:
            print(f"| {below_s:g} s | {shape} | {name} | {hours:.0f} | {100.0 * kept:.2f} % | {level} |", flush=True)


if __name__ == "__main__":
    main()
