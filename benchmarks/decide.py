"""10,000 different decisions: two metrics, behavior, cooldown, three in ten acting, nothing memoised."""

from __future__ import annotations

import json
import random
import time

from trimtab.core.decide import decide
from trimtab.core.explain import sentence
from trimtab.core.model import Memory, Observation, Pod, PodSamples
from trimtab.policy import (
    Bounds,
    Cooldown,
    Metric,
    MetricKind,
    PodAverage,
    Policy,
    Rate,
    Size,
    Stabilise,
    Utilization,
)

NOW = 1_700_000_000.0
CPU = Metric(kind=MetricKind.RESOURCE, name="cpu")
QPS = Metric(kind=MetricKind.PODS, name="qps")
DECISIONS = 10_000


def cases(pods: int) -> list[tuple[Policy, Observation, Memory]]:
    draw = random.Random(1)
    return [_case(draw, index, pods) for index in range(DECISIONS)]


def _case(draw: random.Random, index: int, pods: int) -> tuple[Policy, Observation, Memory]:
    policy = Policy(
        signals=(Utilization(metric=CPU, percent=50), PodAverage(metric=QPS, target=100.0)),
        settle=(Stabilise(down_s=300.0), Rate(), Cooldown(up_s=30.0, down_s=30.0)),
        bounds=Bounds(min_replicas=1, max_replicas=1000),
    )
    load = draw.uniform(0.6, 0.9) if index % 10 < 3 else draw.uniform(0.46, 0.54)
    names = [f"pod-{index}-{one}" for one in range(pods)]
    members = tuple(
        Pod(name=name, started_at=NOW - 4000, ready_since=NOW - 3900, requests=Size(cpu_cores=1.0)) for name in names
    )
    cpu = PodSamples(values=dict.fromkeys(names, load), at=NOW - 10)
    qps = PodSamples(values=dict.fromkeys(names, 100 * load / 0.5), at=NOW - 10)
    seen = Observation(at=NOW, spec_replicas=pods, status_replicas=pods, pods=members, samples=(cpu, qps))
    memory = Memory(wanted=tuple((NOW - 15 * age, pods) for age in range(20, 0, -1)), up_at=NOW - 600 - index)
    return policy, seen, memory


def measure(pods: int) -> dict[str, float]:
    work = cases(pods)
    started = time.process_time()
    decisions = [decide(*case) for case in work]
    decided = time.process_time()
    for case, decision in zip(work, decisions, strict=True):
        sentence(*case, decision)
    explained = time.process_time()
    acting = sum(decision.change is not None for decision in decisions)
    assert 0.25 * DECISIONS < acting < 0.35 * DECISIONS, acting
    return {
        "decide_s": round(decided - started, 3),
        "explain_s": round(explained - decided, 3),
        "acting": acting,
    }


def main() -> None:
    figures = {f"pods_{pods}": measure(pods) for pods in (5, 100)}
    for name, one in figures.items():
        print(f"{DECISIONS} decisions, {name}: {one['decide_s']} s, explained in {one['explain_s']} s more")
    print(json.dumps({"benchmark": "decide", "limits_s": {"pods_5": 0.5, "pods_100": 3.0}} | figures))


if __name__ == "__main__":
    main()
