"""What the most expensive objects that are admitted cost: time of a tick and memory, each on its own, in this process.

It ends with 1 where an object costs more than the limits.
"""

from __future__ import annotations

import json
import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from trimtab.core.decide import decide
from trimtab.core.forecast import forecast_rows
from trimtab.core.model import Observation, Pod, PodSamples, TotalSample
from trimtab.core.remember import first_sight
from trimtab.errors import InvalidInput
from trimtab.kinds import read
from trimtab.kinds.metric import LONGEST_QUERY, MOST_FORECASTS, MOST_METRICS
from trimtab.kinds.schedule import MOST_PER_DAY
from trimtab.live.look import memory
from trimtab.policy import Policy, Size
from trimtab.series import Frame

AT = 1_794_811_716.0
LIMIT_MS, LIMIT_MB = 50.0, 5.0
REPEATED = 5
COARSE_STEP_S, COARSE_STEPS = 60.0, 15 * 1440  # fifteen days of minutes
REF = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
CONTAINERS = 50
PODS = tuple(Pod(name=f"web-{index}") for index in range(100))


class Price(NamedTuple):
    what: str
    ms: float
    mb: float


def manifest(kind: str, version: str, **spec: Any) -> dict[str, Any]:
    meta = {"name": "x", "namespace": "tenant"}
    return {"apiVersion": version, "kind": kind, "metadata": meta, "spec": {"scaleTargetRef": REF} | spec}


def query(index: int, length: int) -> dict[str, Any]:
    text = f"sum(rate(requests_{index}[5m]))".ljust(length, "x")
    return {"type": "Prometheus", "prometheus": {"query": text, "target": {"type": "Value", "value": "1"}}}


def many_queries(turn: int = 0) -> dict[str, Any]:
    metrics = [query(turn * MOST_METRICS + index, LONGEST_QUERY) for index in range(MOST_METRICS)]
    return manifest("Autoscaler", "trimtab.dev/v1alpha1", minReplicas=1, maxReplicas=1000, metrics=metrics)


def many_schedules(turn: int = 0) -> dict[str, Any]:
    """As many windows as there may be; every turn has other minutes, as equal ones are worked out once."""
    assert MOST_PER_DAY == 2 * 16
    start, end = f"{turn},{turn + 30} 0-15 * * *", f"{turn + 15},{turn + 45} 0-15 * * *"
    zone = {"timezone": "Europe/Berlin", "minReplicas": 2}
    schedules = [{"name": "all", "start": start, "end": end} | zone]
    return manifest("Autoscaler", "trimtab.dev/v1alpha1", maxReplicas=9, schedules=schedules)


def forecasting(turn: int = 0) -> dict[str, Any]:
    named = [
        {"type": "External", "external": {"metric": {"name": f"m{turn}-{index}"}}} for index in range(MOST_FORECASTS)
    ]
    for metric in named:
        metric["external"]["target"] = {"type": "Value", "value": "1"}  # type: ignore[index]
    margins = [{"marginFraction": f"0.{number}"} for number in range(1, 11)]
    dsp = {"historyLength": "15d", "estimators": {"fft": margins, "maxValue": margins}}
    algorithm = {"predictionWindowSeconds": 3600, "predictionAlgorithm": {"algorithmType": "dsp", "dsp": dsp}}
    kind = ("EffectiveHorizontalPodAutoscaler", "autoscaling.crane.io/v1alpha1")
    return manifest(*kind, maxReplicas=9, metrics=named, prediction=algorithm)


def sized(turn: int = 0) -> dict[str, Any]:
    """As many buckets and containers as there may be."""
    buckets = [
        {"replicas": {"min": 20 * n + 1, "max": 20 * n + 20}, "cpu": {"min": f"{n + 1}", "max": f"{n + 2}"}}
        for n in range(50)
    ]
    policies = [{"containerName": f"c{turn}-{n}", "minAllowed": {"cpu": "10m"}} for n in range(CONTAINERS)]
    vertical = {"resourcePolicy": {"containerPolicies": policies}}
    more = {"metrics": [query(turn, 30)], "vertical": vertical, "blend": {"buckets": {"buckets": buckets}}}
    return manifest("Autoscaler", "trimtab.dev/v1alpha1", minReplicas=1, maxReplicas=1000, **more)


def refused(turn: int) -> object:
    """One in which everything is wrong."""
    try:
        return compiled(manifest("Autoscaler", "trimtab.dev/v1alpha1", **{f"x{turn}-{n}": n for n in range(2000)}))
    except InvalidInput as error:
        return str(error)


def remembered(turn: int) -> object:
    """A status as large as it is read."""
    events = [[AT - n, 1] for n in range(2000)]
    status = {"memory": {"is": "Kept", "version": 1, "core": {"is": "Memory", "grown": events, "shrunk": events}}}
    return memory.read(status, AT + turn, 9)


def compiled(made: dict[str, Any]) -> Policy:
    policy: Policy = read(made).to_policy(AT)  # type: ignore[attr-defined]
    return policy


def many_pod_metrics() -> dict[str, Any]:
    metrics = [
        {"type": "Pods", "pods": {"metric": {"name": f"m{n}"}, "target": {"type": "AverageValue", "averageValue": "9"}}}
        for n in range(MOST_METRICS)
    ]
    return manifest("Autoscaler", "trimtab.dev/v1alpha1", maxReplicas=20_000, metrics=metrics)


def decided_on_many_pods(policy: Policy, count: int = 10_000) -> Callable[[int], object]:
    request = {"app": Size(cpu_cores=0.5)}
    pods = tuple(
        Pod(name=f"web-{n}", started_at=AT - 999, ready_since=AT - 990, requests=request["app"], containers=request)
        for n in range(count)
    )
    samples = tuple(PodSamples(values={pod.name: 9.5 for pod in pods}, at=AT) for _ in policy.signals)
    seen = Observation(at=AT, spec_replicas=count, status_replicas=count, pods=pods, samples=samples)
    return lambda _: decide(policy, seen, first_sight(AT - 999, count))


def decided(policy: Policy) -> Callable[[int], object]:
    samples = tuple(TotalSample(value=500.0, at=AT) for _ in policy.signals)
    seen = Observation(at=AT, spec_replicas=100, status_replicas=100, pods=PODS, samples=samples)
    return lambda _: decide(policy, seen, first_sight(AT - 999, 100))


def forecast(policy: Policy) -> Callable[[int], object]:
    """Fifteen days of minutes for each of its metrics; in the operator this is not part of a tick's decision."""
    times = np.arange(COARSE_STEPS) * COARSE_STEP_S
    noise = np.random.default_rng(7).normal(0, 0.1, (len(policy.signals), COARSE_STEPS))
    values = 5 + 2 * np.sin(times / 86400 * 2 * np.pi) + noise
    frame = Frame(tuple(f"m{row}" for row in range(len(values))), AT - times[-1], COARSE_STEP_S, values)
    choice = policy.forecast
    assert choice is not None and choice.horizon_s is not None
    horizon_s = choice.horizon_s
    return lambda _: forecast_rows(choice, frame, horizon_s, AT)


def price(what: str, work: Callable[[int], object]) -> Price:
    """Of the cheapest run the time, of the last one the memory that it has at its most."""
    spent = []
    for turn in range(REPEATED):
        started = time.process_time()
        work(turn)
        spent.append(time.process_time() - started)
    tracemalloc.start()
    kept = work(REPEATED)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    del kept
    return Price(what, 1000 * min(spent), most / 1e6)


def prices() -> list[Price]:
    queries, ahead = compiled(many_queries()), compiled(forecasting())
    return [
        price(f"{MOST_METRICS} queries of {LONGEST_QUERY} characters: compile", lambda t: compiled(many_queries(t))),
        price("the same: decide on 100 pods", decided(queries)),
        price(f"schedules, {MOST_PER_DAY} windows per day: compile", lambda turn: compiled(many_schedules(turn))),
        price("the same: decide on 100 pods", decided(compiled(many_schedules(9)))),
        price(f"{MOST_FORECASTS} forecasts: compile", lambda turn: compiled(forecasting(turn))),
        price("the same: forecast them, 20 estimators over 15 days", forecast(ahead)),
        price(f"50 buckets and {CONTAINERS} containers: compile", lambda turn: compiled(sized(turn))),
        price("the same: decide on 100 pods", decided(compiled(sized()))),
        price(f"{MOST_METRICS} metrics of 10,000 pods: decide", decided_on_many_pods(compiled(many_pod_metrics()))),
        price("2,000 mistakes: refuse", refused),
        price("4,000 scalings in its status: remember", remembered),
    ]


def _mb(found: list[Price]) -> list[float]:
    return [round(each.mb, 2) for each in found]


def main() -> int:
    found = prices()
    for each in found:
        print(f"{each.what:70} {each.ms:8.1f} ms {each.mb:8.2f} MB")
    print(json.dumps({"dearest_ms": round(max(each.ms for each in found), 1), "dearest_mb": max(_mb(found))}))
    dear = [each for each in found if each.ms > LIMIT_MS or each.mb > LIMIT_MB]
    for each in dear:
        print(f"over {LIMIT_MS:g} ms or {LIMIT_MB:g} MB: {each.what}", file=sys.stderr)
    return 1 if dear else 0


if __name__ == "__main__":
    raise SystemExit(main())
