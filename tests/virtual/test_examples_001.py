"""Document 001's example 2 walked up and down by the whole operator: the shape of its figure."""

from __future__ import annotations

from typing import Any

from tests.virtual.cluster import Cluster
from trimtab.core.usage.settings import HistogramSettings
from trimtab.live.look.subject import ChangeRules

QUIET, BUSY, RAMP_S, REST_S = 0.04, 4.4, 900.0, 300.0
STAGES = ((1, 1, 1), (0.6, 2, 4), (0, 5, 10))


def load(seconds: float) -> float:
    """The same growth in every second, a rest, and the same way back."""
    up = min(1.0, max(0.0, (seconds - 60) / RAMP_S))
    down = min(1.0, max(0.0, (seconds - 60 - RAMP_S - REST_S) / RAMP_S))
    return float(QUIET * (BUSY / QUIET) ** (up - down))


def example_2() -> dict[str, Any]:
    """The target is above what sizes that follow usage show, so that each axis has its turn."""
    cpu = {"type": "Resource", "resource": {"name": "cpu", "targetAverageUtilization": 100}}
    bounds = {"containerName": "*", "minAllowed": {"cpu": "50m"}, "maxAllowed": {"cpu": "400m"}}
    return {
        "apiVersion": "autoscaling.k8s.io/v1alpha1",
        "kind": "Hvpa",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "scaleUpStabilizationWindow": "1s",
            "scaleDownStabilizationWindow": "1s",
            "minCpuChange": {"value": "10m", "percentage": 5},
            "minMemChange": {"value": "10M", "percentage": 5},
            "hpaTemplate": {"minReplicas": 1, "maxReplicas": 10, "metrics": [cpu]},
            "vpaTemplate": {"resourcePolicy": {"containerPolicies": [bounds]}},
            "weightBasedScalingIntervals": [
                {"vpaWeight": weight, "startReplicaCount": first, "lastReplicaCount": last}
                for weight, first, last in STAGES
            ],
        },
    }


def test_example_2_up_and_down() -> None:
    quick: dict[str, Any] = {
        "usage": HistogramSettings(half_life_s=60.0, memory_window_s=60.0),
        "usage_every_s": 15.0,
        "change_rules": ChangeRules(up_after_s=30.0, down_after_s=60.0, downscale_s=30.0),
    }
    with Cluster(seed=1, **quick) as cluster:
        cluster.deploy("shop/web", replicas=1, load=load, cpu="60m", startup_s=1)
        cluster.apply(example_2())
        cluster.run(seconds=60 + 2 * RAMP_S + 2 * REST_S)
        plans = [
            (act.seen.at - cluster.start, act.decision.plan) for act in cluster.journal().acts("shop", "web", last=9999)
        ]
    corners = [
        (at, plan.replicas, size.requests.cpu_cores or 0.0) for at, plan in plans for size in plan.sizes.values()
    ]
    top = 60 + RAMP_S + REST_S
    up, down = [each for each in corners if each[0] < top], [each for each in corners if each[0] >= top]
    leaves = next(place for place, (_, replicas, _) in enumerate(up) if replicas > 1)
    line = [cores for _, _, cores in up[:leaves]]
    assert max(line) >= 4 * min(line), "first a vertical line at one replica"
    assert max(replicas for _, replicas, _ in up) == 10
    for way in (up, down):
        level = [cores for _, replicas, cores in way if replicas >= 5]
        assert max(level) <= 1.05 * min(level), "from 5 replicas on sizes stay"
        assert any(2 <= replicas <= 4 for _, replicas, _ in way), "and between 2 and 4 it goes on"
    lower = [cores for _, replicas, cores in down if replicas <= 4]
    assert max(lower) >= 4 * min(lower) and down[-1][1] == 1, "sizes fall where they rose"
