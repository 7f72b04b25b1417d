"""Sizes and replicas in a closed loop over the whole operator, with default histograms: what we write is not load."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pytest

from tests.virtual.cluster import Cluster, autoscaler
from tests.virtual.faults import Unreachable
from trimtab.core.model import Missing
from trimtab.live.act.restore import Restored, restore_all
from trimtab.live.look.subject import ChangeRules
from trimtab.live.object_tick import ObjectTick
from trimtab.quantity import parse_quantity
from trimtab.wire.kube import Kube

WEB = "shop/web"
PODS_METRICS = "/apis/metrics.k8s.io"
BOUNDS = {"minAllowed": {"cpu": "50m", "memory": "64Mi"}, "maxAllowed": {"cpu": "16", "memory": "32Gi"}}
EVERY_CONTAINER = {"containerPolicies": [{"containerName": "*"} | BOUNDS]}
RPS_PER_CORE = 50.0  # so a pod at the target of 10 uses 0.2 cores
WRITTEN = 1.0  # cores of a pod as the manifest says


def cpu(**target: Any) -> list[dict[str, Any]]:
    return [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]


def external(name: str, **target: Any) -> list[dict[str, Any]]:
    return [{"type": "External", "external": {"metric": {"name": name}, "target": target}}]


class MetricCase(NamedTuple):
    metrics: list[dict[str, Any]]
    margin: float = 1.15  # over usage


METRICS = {
    "utilization 50": MetricCase(cpu(type="Utilization", averageUtilization=50), 2.2),  # within the tolerance of 10 %
    "utilization 70": MetricCase(cpu(type="Utilization", averageUtilization=70), 1.58),
    "average of cpu": MetricCase(cpu(type="AverageValue", averageValue="500m")),
    "requests per second": MetricCase(external("rps", type="AverageValue", averageValue="10")),
    "a value": MetricCase(external("latency", type="Value", value="10")),
}


def bucket(replicas: tuple[int, int], cores: tuple[str, str], memory: tuple[str, str]) -> dict[str, Any]:
    edges = {"cpu": cores, "memory": memory, "replicas": replicas}
    return {name: dict(zip(("min", "max"), ends, strict=True)) for name, ends in edges.items()}


LADDER = [
    bucket((1, 2), ("0.1", "2"), ("128Mi", "2Gi")),
    bucket((3, 6), ("2", "4"), ("2Gi", "4Gi")),
    bucket((7, 10), ("4", "16"), ("4Gi", "32Gi")),
]


def stages(*shares: tuple[float, int, int]) -> dict[str, Any]:
    intervals = [
        {"vpaWeight": share, "startReplicaCount": first, "lastReplicaCount": last} for share, first, last in shares
    ]
    return {"weights": {"intervals": intervals}}


JOINT: dict[str, dict[str, Any]] = {
    "capacity": {"capacity": {}},
    "capacity of small pods": {"capacity": {"preferred": {"cpu": "1", "memory": "2Gi"}}},
    "buckets": {"buckets": {"buckets": LADDER}},
    "buckets without an end": {"buckets": {"buckets": LADDER, "growPastLast": True}},
}
WEIGHTS = {"example 2": stages((1, 1, 1), (0.6, 2, 4), (0, 5, 10)), "half": stages((0.5, 1, 10))}
SHAPES: dict[str, Callable[[float], float]] = {
    "0.6 cores": lambda seconds: 0.6,
    "5 cores": lambda seconds: 5.0,
    "noise": lambda seconds: 2.0 * (1.0 + 0.2 * random.Random(int(seconds // 60)).gauss(0.0, 1.0)),
    "spikes": lambda seconds: 6.0 if seconds % 7200 < 300 else 1.0,
    "ramp": lambda seconds: 0.5 + 5.0 * min(1.0, seconds / 3600),
}


class Shape(NamedTuple):
    """What the pods of the workload are."""

    replicas: int
    cores: float  # of all of them
    memory_bytes: float
    used: float = 0.0  # cores of all of them, at most


def shape(cluster: Cluster) -> Shape:
    requests = [pod["spec"]["containers"][0]["resources"]["requests"] for pod in cluster.pods(WEB)]
    cores, sizes = ([parse_quantity(each[name]) for each in requests] for name in ("cpu", "memory"))
    return Shape(len(requests), sum(cores), sum(sizes))


def furnish(
    cluster: Cluster, load: Callable[[float], float], blend: dict[str, Any], metrics: list[dict[str, Any]], **more: Any
) -> None:
    cluster.prometheus = None
    cluster.metrics.external["rps"] = lambda seconds: load(seconds) * RPS_PER_CORE
    cluster.metrics.external["latency"] = lambda seconds: load(seconds) * 4.0
    cluster.workloads.set(WEB, burst=8.0)  # no load has to wait, so what is used is the load
    cluster.deploy(WEB, replicas=2, load=load, cpu=f"{WRITTEN:g}", memory="1Gi")
    vertical = {"apply": "InPlace", "resourcePolicy": EVERY_CONTAINER} | more
    cluster.apply(autoscaler(WEB, metrics=metrics, maxReplicas=10, vertical=vertical, blend=blend))


def usage_of(ticks: Sequence[ObjectTick]) -> list[float]:
    """What the operator has measured of all pods together."""
    found = [tick.seen.usage for tick in ticks]
    recent = [usage.recent for usage in found if not isinstance(usage, Missing) and usage.recent is not None]
    return [size.cpu_cores or 0.0 for usage in recent for size in usage.totals.values()]


def walk(load: Callable[[float], float], hours: int, *given: Any, **more: Any) -> list[Shape]:
    """The shape after each ten minutes."""
    shapes = []
    with Cluster(seed=9, step_s=60.0) as cluster:
        furnish(cluster, load, *given, **more)
        used = [0.0]  # at most: more than the load while what waited is caught up with
        cluster.on_tick.append(lambda ticks: used.extend(usage_of(ticks)))
        for _ in range(6 * hours):
            cluster.run(minutes=10)
            shapes.append(shape(cluster)._replace(used=max(used)))
        assert cluster.conditions("Autoscaler", WEB)["Ready"][0] == "True"
    return shapes


def most(case: MetricCase, found: Shape) -> float:
    """The cores that usage explains: its margin, a step of 5 %, and pods as written or as their bucket has them."""
    least = next(float(each["cpu"]["min"]) for each in LADDER[::-1] if found.replicas >= each["replicas"]["min"])
    return max(found.used * case.margin * 1.06, found.replicas * max(least, WRITTEN))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("name", JOINT)
def test_a_constant_load_settles_at_what_it_explains(name: str, metric: str) -> None:
    """2 pods of 1 core became 3 of 13.5 within a minute, where 0.6 cores were used."""
    for load in (0.6, 5.0):
        shapes = walk(lambda seconds, load=load: load, 2, JOINT[name], METRICS[metric].metrics)  # type: ignore[misc]
        assert len({found[:3] for found in shapes[5:]}) == 1, "settled within an hour"
        assert shapes[-1].cores >= load and shapes[-1].used < 1.1 * load
        assert all(found.cores <= most(METRICS[metric], found) for found in shapes)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("name", WEIGHTS)
def test_a_constant_load_settles_by_weights(name: str, metric: str) -> None:
    """Both axes answer the same need, so the total may be more, and never grows by itself."""
    for load in (0.6, 5.0):
        shapes = walk(lambda seconds, load=load: load, 2, WEIGHTS[name], METRICS[metric].metrics)  # type: ignore[misc]
        assert len({found[:3] for found in shapes[5:]}) == 1, "settled within an hour"
        assert load <= shapes[-1].cores <= max(3.2 * load, shapes[-1].replicas * WRITTEN)


@pytest.mark.parametrize("load", ["noise", "spikes", "ramp"])
@pytest.mark.parametrize(("name", "metric", "apply"), [
    ("capacity", "requests per second", "InPlace"),
    ("buckets", "utilization 50", "Recreate"),
    ("capacity of small pods", "utilization 70", "Recreate"),
    ("buckets without an end", "a value", "InPlace"),
])  # fmt: skip
def test_totals_never_exceed_what_any_load_explains(name: str, metric: str, apply: str, load: str) -> None:
    shapes = walk(SHAPES[load], 4, JOINT[name], METRICS[metric].metrics, apply=apply)
    assert all(found.cores <= most(METRICS[metric], found) for found in shapes)


@pytest.mark.parametrize(("name", "metric"), [
    ("buckets", "utilization 70"),
    ("capacity of small pods", "requests per second"),
])  # fmt: skip
def test_a_daily_load_is_followed_down_the_same_night(name: str, metric: str) -> None:
    """Buckets stayed at 7 pods of 3 cores around the clock."""

    def load(seconds: float) -> float:
        return 8.0 if seconds % 86400 < 6 * 3600 else 1.0

    with Cluster(seed=9, step_s=300.0) as cluster:
        furnish(cluster, load, JOINT[name], METRICS[metric].metrics)
        cluster.run(hours=6)
        peak = shape(cluster)
        cluster.run(hours=1)
        night = shape(cluster)
    assert peak.cores >= 8.0
    assert night.replicas <= 2 and night.cores <= 4.0 and night.memory_bytes < peak.memory_bytes


def test_a_restart_lowers_nothing_that_a_window_kept() -> None:
    """A new leader has seen no usage: totals from histograms would say something else."""
    load = SHAPES["spikes"]
    with Cluster(seed=9, step_s=60.0) as cluster:
        furnish(cluster, load, JOINT["buckets"], METRICS["utilization 70"].metrics)
        cluster.run(minutes=128)
        before = shape(cluster)
        cluster.kill("operator-0", back_after_s=20.0)
        cluster.run(minutes=3)
        assert shape(cluster).replicas >= before.replicas


@pytest.mark.parametrize("name", ["buckets", "capacity of small pods"])
def test_usage_that_is_missing_lowers_nothing(name: str) -> None:
    def load(seconds: float) -> float:
        return 5.0 if seconds < 3600 else 0.5

    with Cluster(seed=9, step_s=60.0) as cluster:
        furnish(cluster, load, JOINT[name], METRICS["requests per second"].metrics)
        cluster.run(minutes=55)
        before = shape(cluster)
        cluster.faults(Unreachable(cluster.now() - cluster.start, path=PODS_METRICS))
        cluster.run(minutes=40)
        assert shape(cluster) == before


def test_restore_lists_a_template_that_it_cannot_put_back() -> None:
    async def restored() -> list[Restored]:
        async with Kube(cluster._access("person")) as kube:
            return [each async for each in restore_all(kube, "", dry_run=False)]

    with Cluster(seed=9, step_s=60.0) as cluster:
        furnish(cluster, SHAPES["5 cores"], JOINT["capacity"], METRICS["a value"].metrics, apply="Recreate")
        cluster.run(minutes=30)
        cluster.stop_operator("operator-0")
        cluster.run(minutes=1)
        (found,) = cluster.loop.run_until_complete(restored())
        assert found.stays and "apply your own manifest (main cpu 1, memory 1Gi)" in found.text


def test_a_stage_that_keeps_sizes_for_ever_says_so() -> None:
    """Example 3 ended at 1 pod of 5.8 cores for a load of 0.2, and all conditions were green."""
    with Cluster(seed=9, step_s=60.0, change_rules=ChangeRules(down_after_s=3600.0)) as cluster:
        blend = stages((0, 1, 2), (0.6, 3, 10))
        load: Callable[[float], float] = lambda seconds: 9.0 if seconds < 3600 else 0.3  # noqa: E731
        furnish(cluster, load, blend, METRICS["utilization 50"].metrics)
        cluster.run(hours=12)
        assert shape(cluster).replicas <= 2 and shape(cluster).cores > 0.6
        cluster.run(hours=30)
        assert cluster.conditions("Autoscaler", WEB)["ResizeBlocked"] == ("True", "StageOfWeightZero")
