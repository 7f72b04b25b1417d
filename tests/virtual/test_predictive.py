"""An annotated HPA beside a whole operator: its floor rises before the load does, and comes back; in exact mode too."""

from __future__ import annotations

from math import ceil
from typing import Any

import pytest

from tests.virtual.cluster import Cluster

WEB, LOAD = "shop/web", (8.0, 16.0)
BEFORE_S, RAMP_S, STARTUP_S, TARGET = 900.0, 600.0, 135.0, 0.7


def load(seconds: float) -> float:
    """Eight cores; then sixteen, within ten minutes; then constant."""
    return LOAD[0] + (LOAD[1] - LOAD[0]) * min(1.0, max(0.0, seconds - BEFORE_S) / RAMP_S)


def hpa(**notes: str) -> dict[str, Any]:
    metric = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "shop", "annotations": {"predictive": "true"} | notes},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "minReplicas": 2,
            "maxReplicas": 100,
            "metrics": [{"type": "Resource", "resource": metric}],
        },
    }


class BuiltInHpa:
    """Kubernetes' own controller, in short: pods that are not ready count as idle, and five minutes of rest."""

    def __init__(self) -> None:
        self.wanted: list[int] = []

    def replicas(self, cluster: Cluster, seconds: float) -> int:
        now, pods = cluster.replicas(WEB), cluster.workload(WEB).pods.ready
        used = min(load(seconds), pods)
        self.wanted.append(now if abs(used / pods / TARGET - 1) <= 0.1 else ceil(used / TARGET - 1e-9))
        least = int(cluster.get("HorizontalPodAutoscaler", WEB)["spec"]["minReplicas"])
        return max(least, min(max(self.wanted[-20:]), 2 * now))


@pytest.mark.parametrize("notes", [{}, {"trimtab.dev/exact": "true"}], ids=["default", "exact"])
def test_the_floor_of_an_annotated_hpa_follows_a_ramp_and_comes_back(notes: dict[str, str]) -> None:
    floors, replicas, controller = [], [], BuiltInHpa()
    with Cluster(seed=8) as cluster:
        cluster.deploy(WEB, replicas=12, load=load, startup_s=STARTUP_S)
        cluster.apply(hpa(**notes))
        for step in range(4 * 60):
            cluster.run(seconds=15)
            wanted = controller.replicas(cluster, 15.0 * step)
            if wanted != cluster.replicas(WEB):
                cluster.patch("Deployment", WEB, {"spec": {"replicas": wanted}}, by="hpa")
            floors.append(int(cluster.get("HorizontalPodAutoscaler", WEB)["spec"]["minReplicas"]))
            replicas.append(wanted)
    need = ceil(LOAD[1] / TARGET)
    assert max(floors) > 2, "the forecast is in force on the ramp"
    assert max(replicas) <= 1.2 * need, "it asks for what the load will need, not for more and more"
    assert set(floors[-60:]) == {2} and len(set(replicas[-60:])) == 1, "under constant load it rests"
    assert need * 0.9 <= replicas[-1] <= need * 1.1
