"""`trimtab explain NAMESPACE/NAME --at TIME` on an operator's journal: what it wanted, what held it, until when."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner

from tests.virtual.cluster import Cluster, autoscaler
from tests.virtual.faults import BadMetrics, CutWatches, Refusing
from tests.virtual.machines import OWN_NAMESPACE
from trimtab.cli import main
from trimtab.wire.from_kubernetes import rfc3339

AT_ONCE = {"scaleDown": {"stabilizationWindowSeconds": 0}}
OTHER = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "old", "namespace": "shop"},
    "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "maxReplicas": 5},
}


def rises(seconds: float) -> float:
    return 6.0 if seconds >= 300 else 1.0


def falls(seconds: float) -> float:
    return 0.2 if seconds >= 300 else 4.0


def web(cluster: Cluster, load: Callable[[float], float], replicas: int, **spec: Any) -> None:
    cluster.deploy("shop/web", replicas=replicas, load=load)
    cluster.apply(autoscaler("shop/web", **spec))


def cooldown(cluster: Cluster) -> None:
    web(cluster, rises, 2, behavior={"scaleUp": {"cooldownSeconds": 600}})


def stabilisation(cluster: Cluster) -> None:
    web(cluster, falls, 8)


def quarrel(cluster: Cluster) -> None:
    web(cluster, falls, 8, behavior=AT_ONCE)
    cluster.run(minutes=5)
    for _ in range(5):
        cluster.run(seconds=30)
        cluster.patch("Deployment", "shop/web", {"spec": {"replicas": 16}}, by="argocd")


def breaker(cluster: Cluster) -> None:
    for name in ("web", *(f"w{number}" for number in range(20))):
        cluster.deploy(f"shop/{name}", replicas=8, load=falls)
        cluster.apply(autoscaler(f"shop/{name}", behavior=AT_ONCE))


def stale(cluster: Cluster) -> None:
    web(cluster, falls, 8, behavior=AT_ONCE)
    gone = Refusing(200.0, plural="pods", about="/api/v1/pods", methods=("GET",), status=403)
    cluster.faults(gone, CutWatches(200.0, plural="pods"))


def frozen(cluster: Cluster) -> None:
    meta = {"name": OWN_NAMESPACE, "annotations": {"trimtab.dev/frozen": "true"}}
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
    web(cluster, rises, 2)


def conflict(cluster: Cluster) -> None:
    cluster.apply(OTHER)
    web(cluster, rises, 2)


def shadow(cluster: Cluster) -> None:
    web(cluster, rises, 2, mode="Shadow")


def paused(cluster: Cluster) -> None:
    web(cluster, rises, 2, mode="Paused")


def missing(cluster: Cluster) -> None:
    web(cluster, rises, 2)
    cluster.faults(BadMetrics(200.0, workload="shop/web"))


def refused(cluster: Cluster) -> None:
    web(cluster, rises, 2)
    cluster.faults(Refusing(0.0, plural="deployments", about="/web/scale", methods=("PATCH",), status=403))


def rate(cluster: Cluster) -> None:
    policy = {"type": "Pods", "value": 1, "periodSeconds": 600}
    web(cluster, rises, 2, behavior={"scaleUp": {"policies": [policy]}})


def limit(cluster: Cluster) -> None:
    web(cluster, rises, 2, maxReplicas=3)


@pytest.mark.parametrize(
    ("happens", "wanted", "held"),
    [
        (cooldown, "cpu wants 14", r"cooldown until \d\d:\d\d UTC allows 4"),
        (stabilisation, "cpu wants 1", r"stabilisation until \d\d:\d\d UTC allows 8"),
        (quarrel, "cpu wants 1", r"argocd puts the replicas back .* \(until \d\d:\d\d UTC\)"),
        (breaker, "cpu wants 1", r"too many objects want to shrink at once: .* \(until \d\d:\d\d UTC\)"),
        (stale, "cpu wants 1", r"pods are not up to date: watch pods: 403"),
        (frozen, "cpu wants 8", r"shadow: the installation is frozen, until `trimtab unfreeze`"),
        (conflict, "cpu wants 8", r"shop/old moves the replicas .* kubectl delete hpa old -n shop"),
        (shadow, "cpu wants 8", r"shadow: the object's mode is Shadow"),
        (paused, "2 replicas", r"paused"),
        (missing, "2 replicas", r"metrics are missing"),
        (refused, "cpu wants 8", r"refused: patch .*/web/scale: 403"),
        (rate, "cpu wants 12", r"the rate policy allows 3"),
        (limit, "cpu wants 12", r"maxReplicas is 3"),
    ],
)
def test_why_did_it_not_scale(happens: Callable[[Cluster], None], wanted: str, held: str) -> None:
    with Cluster(seed=1) as cluster:
        happens(cluster)
        cluster.run(minutes=9)
        said = explained(cluster, 480.0)
        assert re.search(held, said) and wanted in said


def explained(cluster: Cluster, at_s: float) -> str:
    """As one line, whatever the width of the terminal."""
    words = ["explain", "shop/web", "--journal", str(cluster.journal().path), "--at", rfc3339(cluster.start + at_s)]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0
    return " ".join(result.output.split())


def test_what_it_wanted_is_that_of_the_time_and_not_of_when_it_was_first_held() -> None:
    """For a wish that moves while one rule holds it."""
    with Cluster(seed=1) as cluster:
        web(cluster, lambda seconds: 4.0 if seconds < 300 else 2.5 if seconds < 420 else 1.0, 8)
        cluster.run(minutes=10)
        assert "cpu wants 5" in explained(cluster, 400.0) and "cpu wants 2" in explained(cluster, 560.0)
