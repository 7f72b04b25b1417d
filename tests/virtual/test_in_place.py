"""Sizes in place over a whole operator: how long they last, and what ends them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.virtual.cluster import Cluster, autoscaler
from tests.virtual.workloads import deployment
from trimtab.live.look.subject import ChangeRules

WEB = "shop/web"
UNSIZED = {"containerPolicies": [{"containerName": "*", "mode": "Off"}]}


def sized(**vertical: Any) -> Any:
    return autoscaler(WEB, metrics=[], minReplicas=2, maxReplicas=2, vertical=vertical)


def cpus(cluster: Cluster) -> set[str]:
    return {pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] for pod in cluster.pods(WEB)}


def test_who_turns_to_recreate_gets_the_size_into_the_template() -> None:
    with Cluster(seed=9) as cluster:
        cluster.prometheus = None
        cluster.deploy(WEB, replicas=2, load=3.0)
        cluster.apply(sized(apply="InPlace"))
        cluster.run(minutes=30)
        (in_place,) = cpus(cluster)
        assert in_place != "1"
        cluster.apply(sized(apply="Recreate"))
        cluster.run(minutes=30)
        template = cluster.get("Deployment", WEB)["spec"]["template"]["spec"]["containers"][0]["resources"]
        assert cpus(cluster) == {template["requests"]["cpu"]} != {"1"}


def test_sizes_in_place_do_not_outlive_their_policy() -> None:
    with Cluster(seed=9, change_rules=ChangeRules(up_after_s=300.0, down_after_s=300.0)) as cluster:
        cluster.prometheus = None
        cluster.deploy(WEB, replicas=2, load=1.0, cpu="4")
        cluster.apply(sized(apply="InPlace"))
        cluster.run(minutes=20)
        assert cpus(cluster) != {"4"}
        cluster.patch("Autoscaler", WEB, {"spec": {"vertical": None}})
        cluster.run(minutes=1)
        cluster.deploy(WEB, replicas=2, image="web:2", cpu="4")
        cluster.run(minutes=10)
        assert cpus(cluster) == {"4"}
        cluster.apply(sized(apply="InPlace", resourcePolicy=UNSIZED))
        cluster.run(minutes=5)
        assert cpus(cluster) == {"4"}, "nobody asks for what was in force before"


@pytest.mark.parametrize(("container", "rests"), [("main", True), ("proxy", False)])
def test_a_kill_keeps_requests_from_falling_for_its_rest_and_not_for_ever(container: str, rests: bool) -> None:
    """Of a container of the template; nobody sizes a sidecar that was put into the pod."""
    rules = ChangeRules(up_after_s=300.0, down_after_s=300.0, oom_rest_s=3600.0)
    with Cluster(seed=9, change_rules=rules) as cluster:
        cluster.prometheus = None
        cluster.deploy(WEB, replicas=2, load=1.0, cpu="4")
        cpu_only = {"containerName": "main", "controlledResources": ["cpu"]}
        cluster.apply(sized(apply="InPlace", resourcePolicy={"containerPolicies": [cpu_only]}))
        cluster.run(minutes=2)
        cluster.oom_kill(WEB, container=container)
        cluster.run(minutes=30)
        assert (cpus(cluster) == {"4"}) is rests
        cluster.run(minutes=40)
        assert "4" not in cpus(cluster)


@pytest.mark.parametrize("other", ["HPA", "Autoscaler"])
def test_sizes_are_only_advised_beside_who_scales_on_a_share_of_them(other: str) -> None:
    """Each would move what the other aims at: 2 pods of 500m became 17 of 49m."""
    alone = autoscaler(WEB)
    alone["spec"] = {"scaleTargetRef": alone["spec"]["scaleTargetRef"], "vertical": {"apply": "InPlace"}}
    rival = autoscaler(WEB)
    rival["metadata"] = {"name": "old", "namespace": "shop"}
    if other == "HPA":
        rival |= {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}
    with Cluster(seed=9, change_rules=ChangeRules(up_after_s=300.0, down_after_s=300.0)) as cluster:
        cluster.prometheus = None
        cluster.deploy(WEB, replicas=2, load=1.8, cpu="1")
        cluster.apply(alone, rival)
        cluster.run(minutes=30)
        assert cpus(cluster) == {"1"}
        (conflict,) = [
            each for each in cluster.get("Autoscaler", WEB)["status"]["conditions"] if each["type"] == "Conflict"
        ]
        assert conflict["status"] == "True" and "averageValue of cpu" in conflict["message"]
        assert "advised: main cpu" in conflict["message"]
        cluster.delete("HorizontalPodAutoscaler" if other == "HPA" else "Autoscaler", "shop/old")
        cluster.run(minutes=15)
        assert cpus(cluster) != {"1"}, "nobody scales on them any more"


def test_pods_with_resources_of_their_own_are_left_alone_and_named() -> None:
    """A resize of one container would change nothing about what the pod reserves."""
    with Cluster(seed=9) as cluster:
        cluster.prometheus = None
        cluster.deploy(WEB, replicas=2, load=3.0)
        found = deployment(WEB, replicas=2)
        found["spec"]["template"]["spec"]["resources"] = {"requests": {"cpu": "1", "memory": "1Gi"}}
        cluster.apply(found)
        cluster.apply(sized(apply="InPlace"))
        cluster.run(minutes=30)
        assert cpus(cluster) == {"1"}
        assert cluster.conditions("Autoscaler", WEB)["ResizeBlocked"] == ("True", "PodLevelResources")
