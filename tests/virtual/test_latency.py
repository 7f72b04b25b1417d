"""objective.latency in the whole operator: the level is learned from what is seen, and everything goes by it."""

from __future__ import annotations

from math import log, pi, sin
from typing import Any

from tests.virtual.cluster import Cluster, autoscaler
from tests.virtual.fields import Object

RATE, LATENCY = "requests_per_second", "p99_seconds"
SERVED = 50.0  # requests per second that one pod finishes at most
DAY_S = 86400.0


def spec(below: str = "300ms") -> Object:
    target = {"type": "AverageValue", "averageValue": "44"}
    return {
        "metrics": [{"type": "Prometheus", "prometheus": {"name": "requests/s", "query": RATE, "target": target}}],
        "objective": {"latency": {"query": LATENCY, "below": below}},
        "minReplicas": 2,
        "maxReplicas": 60,
    }


def rate(at: float) -> float:
    """A day's wave, highest after 20 hours."""
    return 200.0 + 150.0 * sin(2.0 * pi * at / DAY_S - 7.0 * pi / 6.0) + 8.0 * sin(at / 61.0)


def shop(cluster: Cluster, latency: Any, below: str = "300ms") -> None:
    cluster.metrics.external |= {RATE: rate, LATENCY: latency}
    cluster.deploy("shop/web", replicas=8, load=lambda _: 0.0)
    cluster.apply(autoscaler("shop/web", **spec(below)))


def of_a_queue(cluster: Cluster) -> Any:
    """The 99th percentile of M/M/1 at each pod."""

    def latency(at: float) -> float:
        usage = rate(at) / max(1, cluster.replicas("shop/web"))
        return log(100.0) / max(SERVED - usage, 1.0)

    return latency


def capacity(cluster: Cluster) -> Object:
    status = cluster.get("Autoscaler", "shop/web")["status"]
    return next(each for each in status["conditions"] if each["type"] == "CapacityKnown")


def test_the_level_is_learned_and_the_target_follows_it() -> None:
    with Cluster() as cluster:
        shop(cluster, of_a_queue(cluster))
        cluster.run(hours=20)
        said = capacity(cluster)
        assert said["status"] == "True", said
        memory = cluster.get("Autoscaler", "shop/web")["status"]["memory"]["latency"]
        truth = SERVED - log(100.0) / 0.3
        assert 0.9 * truth <= memory["level"] <= 1.02 * truth, (memory, truth)
        assert cluster.replicas("shop/web") >= 11  # the target is 7/8 of the level, not the 44 that is written
        assert "one pod serves" in said["message"] and "requests/s below 300 ms" in said["message"]


def test_a_promise_below_the_service_time_is_said_and_scales_nothing() -> None:
    with Cluster() as cluster:
        shop(cluster, of_a_queue(cluster), below="20ms")
        cluster.run(hours=16)
        said = capacity(cluster)
        assert said["status"] == "False"
        assert "not reachable with any number of pods" in said["message"]


def test_a_latency_query_without_an_answer_is_named() -> None:
    with Cluster() as cluster:
        shop(cluster, lambda at: float("nan"))
        cluster.run(minutes=10)
        said = capacity(cluster)
        assert said["status"] == "False"
        assert "the latency query has no answer" in said["message"]
