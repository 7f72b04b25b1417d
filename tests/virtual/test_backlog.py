"""A Backlog metric in the whole operator: from queries to replicas, to zero and back, and when a query is silent."""

from __future__ import annotations

from typing import Any

import pytest

from tests.virtual.cluster import Cluster, autoscaler
from tests.virtual.fields import Object

ARRIVALS, WAITING = "jobs_arrivals", "jobs_waiting"


def backlog(**more: Any) -> Object:
    queue = {
        "name": "jobs",
        "arrivals": {"query": ARRIVALS},
        "waiting": {"query": WAITING},
        "serviceTime": "20s",
        "concurrency": 32,
        "waitBelow": "10s",
    }
    return {"type": "Backlog", "backlog": queue | more}


def shop(cluster: Cluster, arrivals: Any, waiting: Any) -> None:
    """A workload that follows a queue."""
    cluster.metrics.external |= {ARRIVALS: arrivals, WAITING: waiting}
    cluster.deploy("shop/worker", replicas=1, load=lambda _: 0.0)
    behavior = {"scaleDown": {"stabilizationWindowSeconds": 60}}
    cluster.apply(autoscaler("shop/worker", minReplicas=0, maxReplicas=50, metrics=[backlog()], behavior=behavior))


def test_workers_follow_the_queue_to_zero_and_back() -> None:
    with Cluster() as cluster:
        shop(cluster, lambda at: 6.4 if at < 1200 else 0.0, lambda at: 3.0 if at >= 3600 else 0.0)
        cluster.run(minutes=15)
        assert cluster.replicas("shop/worker") == 5
        status = cluster.get("Autoscaler", "shop/worker")["status"]
        assert status["currentMetrics"] == [
            {"type": "Backlog", "backlog": {"name": "jobs", "current": {"arrivalsPerSecond": "6400m", "waiting": "0"}}}
        ]
        cluster.run(minutes=40)
        assert cluster.replicas("shop/worker") == 0
        cluster.run(minutes=10)
        assert cluster.replicas("shop/worker") == 1


@pytest.mark.parametrize("unknown", [float("nan"), -3.0], ids=["NaN", "a negative length"])
def test_a_queue_that_is_not_known_removes_no_pod_and_is_named(unknown: float) -> None:
    with Cluster() as cluster:
        shop(cluster, lambda at: 6.4 if at < 1200 else 0.1, lambda at: 0.0 if at < 1200 else unknown)
        cluster.run(minutes=60)
        assert cluster.replicas("shop/worker") == 5
        conditions = cluster.get("Autoscaler", "shop/worker")["status"]["conditions"]
        assert any("items waiting" in each.get("message", "") for each in conditions)
