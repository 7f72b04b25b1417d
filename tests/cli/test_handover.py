"""`trimtab handover` against the whole operator: Shadow beside another autoscaler, the switch, and back."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from tests.virtual.cluster import Cluster
from trimtab.cli import handover_steps as steps
from trimtab.cli.handover import table
from trimtab.errors import InvalidInput, NotEnoughData, Unavailable
from trimtab.web.packing import PageTable
from trimtab.web.shadow_comparison import beside
from trimtab.web.sources import JournalSource
from trimtab.wire.kube import Kube

Answer = TypeVar("Answer")
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
HPA: dict[str, Any] = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "web", "namespace": "shop", "labels": {"team": "a"}, "annotations": {"why": "because"}},
    "spec": {"scaleTargetRef": TARGET, "minReplicas": 2, "maxReplicas": 20, "metrics": [CPU]},
}
KEDA: dict[str, Any] = {
    "apiVersion": "keda.sh/v1alpha1",
    "kind": "ScaledObject",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {
        "scaleTargetRef": {"name": "web"},
        "minReplicaCount": 2,
        "maxReplicaCount": 20,
        "triggers": [{"type": "cpu", "metricType": "Utilization", "metadata": {"value": "50"}}],
    },
}


class Desk:
    """Somebody with a kubeconfig, beside the operator."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.kube = cluster, Kube(cluster._access("admin"))

    def do(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        answer = self.cluster.loop.run_until_complete(work)
        self.cluster._until = self.cluster.loop.time()  # what was waited for counts
        return answer

    def look(self) -> steps.Pair:
        return self.do(steps.look(self.kube, "shop", "web"))

    def start(self) -> None:
        self.do(steps.start(self.kube, self.look(), beside_keda=False))

    def take(self, within_s: float = 60.0) -> None:
        self.do(steps.take(self.kube, self.look(), within_s))

    def back(self) -> None:
        self.do(steps.back(self.kube, self.look()))

    def objections(self) -> list[str]:
        return list(steps.objections(self.look(), self.cluster.now()))


def shop(cluster: Cluster, other: dict[str, Any]) -> Desk:
    """Four pods of one core each at half of what they can."""
    cluster.deploy("shop/web", replicas=4, load=2.0, cpu="1")
    cluster.apply(other)
    return Desk(cluster)


@pytest.mark.parametrize("other", [pytest.param(HPA, id="an HPA"), pytest.param(KEDA, id="a ScaledObject")])
def test_there_and_back_without_a_change_at_either_switch(other: dict[str, Any]) -> None:
    with Cluster(seed=1) as cluster:
        desk = shop(cluster, other)
        desk.start()
        cluster.run(minutes=2)
        assert any("window of scaleDown" in text for text in desk.objections())
        cluster.run(minutes=10)
        assert desk.objections() == []
        desk.take()
        assert desk.look().other is None and cluster.writes("shop/web") == []
        cluster.load("shop/web", 4.0)
        cluster.run(minutes=3)
        assert cluster.replicas("shop/web") == 8
        writes = cluster.writes("shop/web")
        desk.back()
        cluster.load("shop/web", 8.0)
        cluster.run(minutes=3)
        assert cluster.writes("shop/web") == writes, "ours only watches again"
        returned = cluster.get(other["kind"], "shop/web")
        assert returned["spec"] == other["spec"]
        assert {key: returned["metadata"][key] for key in other["metadata"] if returned["metadata"][key]} == other[
            "metadata"
        ]
        assert cluster.get("Autoscaler", "shop/web")["spec"]["mode"] == "Shadow"


def test_a_switch_that_would_be_felt_is_named() -> None:
    with Cluster(seed=1) as cluster:
        desk = shop(cluster, HPA)
        desk.start()
        assert desk.objections()[0].startswith("no operator has looked")
        cluster.load("shop/web", 4.0)
        cluster.run(minutes=10)
        assert desk.objections() == ["it would change the replicas from 4 to 8 at once"]


def test_without_an_operator_everything_is_as_before() -> None:
    with Cluster(seed=1, operators=0) as cluster:
        desk = shop(cluster, HPA)
        desk.start()
        with pytest.raises(Unavailable, match="HorizontalPodAutoscaler shop/web is in charge again"):
            desk.take(within_s=30.0)
        pair = desk.look()
        assert pair.other is not None and pair.other.body.spec == HPA["spec"]
        assert pair.ours is not None and pair.ours.spec["mode"] == "Shadow" and pair.before is None


def test_what_cannot_be_handed_over_is_said() -> None:
    with Cluster(seed=1, operators=0) as cluster:
        desk = Desk(cluster)
        with pytest.raises(InvalidInput, match="no HorizontalPodAutoscaler, ScaledObject or Autoscaler of that name"):
            desk.look()
        queue = {"type": "ibmmq", "metadata": {"queueName": "a"}}
        cluster.apply(KEDA | {"spec": KEDA["spec"] | {"triggers": [queue]}})
        with pytest.raises(InvalidInput, match="its signal would be lost"):
            desk.start()
        cluster.apply(HPA)
        with pytest.raises(InvalidInput, match="both scale"):
            desk.look()
        cluster.delete("ScaledObject", "shop/web")
        desk.start()
        with pytest.raises(NotEnoughData, match="nothing to give back"):
            desk.back()


def test_both_are_judged_by_the_same_load() -> None:
    """Four pods stand, as a lazy HPA would leave them, while half an hour of six cores comes and goes."""
    with Cluster(seed=1) as cluster:
        desk = shop(cluster, HPA)
        desk.start()
        cluster.load("shop/web", lambda seconds: 6.0 if 1200 <= seconds < 3000 else 1.0)
        cluster.run(minutes=75)
        asked = {"kind": "Autoscaler", "namespace": "shop", "name": "web"}
        known = JournalSource(cluster.journal().path, "journal").answer("workload", asked)
        assert isinstance(known, PageTable)
        found = beside(known, 32.0)
        assert found.did.pod_hours == pytest.approx(5.0, abs=0.2)
        # Of 225 core-minutes 180 met four pods of one core
        assert found.did.figures.violations == pytest.approx(80.0, abs=2.0)
        assert found.would.figures.violations < 15 and found.would.pod_hours > 5
        assert found.would.figures.j < found.did.figures.j
        assert table(desk.look(), found).row_count == 2
