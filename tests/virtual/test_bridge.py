"""The bridge over a whole operator: pods that take two minutes, a jump of 60 %, and how it is taken back."""

from __future__ import annotations

from typing import Any

import pytest

from tests.virtual.cluster import Cluster, autoscaler
from tests.virtual.faults import BadMetrics, Killed
from trimtab.journal_replay import replay
from trimtab.live.act.restore import restore_all
from trimtab.live.look.subject import ChangeRules
from trimtab.quantity import parse_quantity
from trimtab.wire.kube import Kube

JUMP_S, SERVICE_LEVEL = 600.0, 0.8
WEB = "shop/web"
GIB = 2.0**30


def jump(seconds: float) -> float:
    return 6.0 if seconds < JUMP_S else 9.6


def over_service_level(cluster: Cluster, minutes: int) -> int:
    """How many steps of the next minutes ready pods carry more than they should."""
    steps = 0
    for _ in range(minutes * 4):
        cluster.run(seconds=15)
        load = jump(cluster.now() - cluster.start)
        steps += load > SERVICE_LEVEL * cluster.workload(WEB).pods.ready_cores
    return steps


def cpus(cluster: Cluster, of: str = "requests") -> list[str]:
    return [pod["spec"]["containers"][0]["resources"].get(of, {}).get("cpu") for pod in cluster.pods(WEB)]


def with_bridge(**spec: Any) -> Any:
    return autoscaler(WEB, percent=60, bridge={"maxFactor": "1.5"}, **spec)


def deploy(cluster: Cluster, load: Any = jump, replicas: int = 10) -> None:
    cluster.deploy(WEB, replicas=replicas, load=load, startup_s=120.0, limits=True)


def test_a_jump_is_carried_by_ready_pods_until_the_new_ones_are_ready() -> None:
    over, writes = dict[str, int](), dict[str, list[tuple[float, int]]]()
    for name, manifest in (("without", autoscaler(WEB, percent=60)), ("with", with_bridge())):
        with Cluster(seed=1) as cluster:
            deploy(cluster)
            cluster.apply(manifest)
            cluster.run(minutes=10)
            before = {pod["metadata"]["uid"] for pod in cluster.pods(WEB)}
            over[name], writes[name] = over_service_level(cluster, 20), cluster.writes(WEB)
            assert before <= {pod["metadata"]["uid"] for pod in cluster.pods(WEB)}, "no pod was made anew"
            assert set(cpus(cluster)) == {"1"}, "back at the written size"
            checked = replay(cluster.journal().path)
            assert checked.checked > 0 and not checked.differences
            told = cluster.get("Autoscaler", WEB)["status"].get("bridge")
            assert told == ({"factor": "1", "pods": 0} if name == "with" else None)
    assert writes["with"] == writes["without"], "the number of pods never sees the bridge"
    assert over["without"] > 0 and over["with"] <= over["without"] / 3


def test_what_is_in_force_is_told_apart_from_the_size() -> None:
    with Cluster(seed=2) as cluster:
        deploy(cluster)
        cluster.apply(with_bridge())
        cluster.run(seconds=JUMP_S + 90)
        found = cluster.get("Autoscaler", WEB)["status"]
        bridged = [cpu for cpu in cpus(cluster) if cpu != "1"]
        assert len(bridged) == 10 and set(bridged) <= {"1250m", "1500m"}
        assert found["bridge"]["factor"] in ("1.25", "1.5") and found["bridge"]["pods"] == 10
        assert "ready ones have" in found["lastDecision"]
        acts = list(cluster.journal().acts("shop", "web"))
        assert any(part.axis == "bridge" for act in acts for part in act.outcome)
        assert all(act.decision.change is None or act.decision.change.sizes is None for act in acts)
        memory = {pod["spec"]["containers"][0]["resources"]["requests"].get("memory") for pod in cluster.pods(WEB)}
        assert len(memory) == 1


def test_deleting_the_object_takes_it_back() -> None:
    with Cluster(seed=3) as cluster:
        deploy(cluster)
        cluster.apply(with_bridge())
        cluster.run(seconds=JUMP_S + 90)
        assert set(cpus(cluster)) != {"1"}
        cluster.delete("Autoscaler", WEB)
        cluster.run(minutes=1)
        assert set(cpus(cluster)) == {"1"}


def test_an_object_deleted_while_nobody_looked_is_noticed() -> None:
    with Cluster(seed=4) as cluster:
        deploy(cluster)
        cluster.apply(with_bridge())
        cluster.run(seconds=JUMP_S + 90)
        cluster.faults(Killed(JUMP_S + 95, back_after_s=120.0))
        cluster.run(seconds=30)
        cluster.delete("Autoscaler", WEB)
        assert set(cpus(cluster)) != {"1"}
        cluster.run(minutes=5)
        assert set(cpus(cluster)) == {"1"}


def test_a_restart_keeps_it_until_it_is_calm() -> None:
    with Cluster(seed=5) as cluster:
        deploy(cluster)
        cluster.apply(with_bridge())
        cluster.run(seconds=JUMP_S + 60)
        before = cpus(cluster)
        cluster.faults(Killed(JUMP_S + 65, back_after_s=30.0))
        cluster.run(seconds=75)
        assert [cpu for cpu in cpus(cluster) if cpu != "1"] == [cpu for cpu in before if cpu != "1"] != []
        cluster.run(minutes=20)
        assert set(cpus(cluster)) == {"1"}


def test_missing_metrics_keep_it() -> None:
    with Cluster(seed=6) as cluster:
        deploy(cluster)
        cluster.apply(with_bridge())
        cluster.run(seconds=JUMP_S + 60)
        cluster.faults(BadMetrics(JUMP_S + 60, JUMP_S + 1260, workload=WEB))
        cluster.run(minutes=15)
        assert set(cpus(cluster)) != {"1"}
        cluster.run(minutes=15)
        assert set(cpus(cluster)) == {"1"}


def test_shadow_and_paused_touch_no_pod() -> None:
    with Cluster(seed=7) as cluster:
        deploy(cluster)
        cluster.apply(with_bridge(mode="Shadow"))
        cluster.run(minutes=20)
        assert set(cpus(cluster)) == {"1"} and not cluster.audit("operator-0", "patch", "/resize")


def test_requests_that_follow_usage_never_take_a_bridge_for_a_size() -> None:
    rules = ChangeRules(up_after_s=300.0, down_after_s=300.0)
    with Cluster(seed=8, change_rules=rules) as cluster:
        deploy(cluster, load=lambda seconds: 2.0 if seconds % 1800 < 1200 else 3.4, replicas=4)
        cluster.apply(with_bridge(vertical={"apply": "InPlace"}, minReplicas=4, maxReplicas=4))
        cluster.run(hours=3)
        status = cluster.get("Autoscaler", WEB)["status"]
        assert parse_quantity(status["sizes"][0]["cpu"]) <= 1.3, "usage, not a factor on a factor"
        acts = list(cluster.journal().acts("shop", "web"))
        assert any(part.axis == "bridge" for act in acts for part in act.outcome)


def test_memory_that_grows_under_a_bridge_leaves_no_bridge_behind() -> None:
    with Cluster(seed=1) as cluster:
        cluster.prometheus = None
        cluster.deploy(WEB, replicas=10, startup_s=300.0, limits=True)
        cluster.load(WEB, lambda at: 6.0 if at < 1200 else 9.6, memory=lambda at: GIB * (5.0 if at < 1230 else 15.0))
        cluster.apply(with_bridge(vertical={"apply": "InPlace"}))
        cluster.run(seconds=1500)
        assert any("trimtab-bridge" in row["manager"] and _wrote_memory(row) for row in _rows(cluster))
        cluster.run(seconds=1200)
        status, before = cluster.get("Autoscaler", WEB)["status"], cpus(cluster)
        assert status["bridge"] == {"factor": "1", "pods": 0}
        cluster.delete("Autoscaler", WEB)
        cluster.run(minutes=2)
        assert cpus(cluster) == before


def _rows(cluster: Cluster) -> list[Any]:
    return [row for pod in cluster.pods(WEB) for row in pod["metadata"]["managedFields"]]


def _wrote_memory(row: Any) -> bool:
    return "f:memory" in str(row["fieldsV1"])


@pytest.mark.parametrize("most", [2, 12])
def test_resizes_of_a_pod_are_limited(most: int) -> None:
    with Cluster(seed=9, change_rules=ChangeRules(bridge_resizes_per_hour=most)) as cluster:
        deploy(cluster, load=lambda seconds: 9.0 if seconds % 660 < 60 else 5.0)
        cluster.apply(with_bridge(minReplicas=10, maxReplicas=10))
        cluster.run(hours=1)
        resizes = [call.path for call in cluster.audit("operator-0", "patch", "/resize")]
        assert resizes and max(resizes.count(path) for path in set(resizes)) <= most


def test_another_object_of_the_same_workload_leaves_it_alone() -> None:
    with Cluster(seed=11) as cluster:
        deploy(cluster)
        beside = autoscaler(WEB, vertical={"apply": "Never"})
        beside["metadata"]["name"] = "sizes"
        for field in ("maxReplicas", "metrics"):
            del beside["spec"][field]
        cluster.apply(with_bridge(), beside)
        cluster.run(minutes=25)
        resizes = [call.path for call in cluster.audit("operator-0", "patch", "/resize")]
        assert resizes and max(resizes.count(path) for path in set(resizes)) <= 4, "up, up, down, down at most"
        assert set(cpus(cluster)) == {"1"}


HPA = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "maxReplicas": 40},
}


def test_beside_an_hpa_no_pod_grows() -> None:
    with Cluster(seed=1) as cluster:
        deploy(cluster)
        cluster.apply(HPA)
        cluster.apply(with_bridge())
        cluster.run(seconds=JUMP_S + 90)
        assert cluster.conditions("Autoscaler", WEB)["Conflict"] == ("True", "Conflict")
        assert not cluster.audit("operator-0", "patch", "/resize")


def test_an_hpa_that_comes_later_finds_the_written_size() -> None:
    with Cluster(seed=1) as cluster:
        deploy(cluster)
        cluster.apply(with_bridge())
        cluster.run(seconds=JUMP_S + 60)
        assert set(cpus(cluster)) != {"1"}
        cluster.apply(HPA)
        cluster.run(minutes=1)
        assert set(cpus(cluster)) == {"1"}, "though the load still needs it"


def test_the_younger_of_two_objects_leaves_the_bridge_of_the_older_one() -> None:
    with Cluster(seed=1) as cluster:
        deploy(cluster)
        cluster.apply(with_bridge())
        cluster.run(minutes=1)
        younger = with_bridge()
        younger["metadata"]["name"] = "younger"
        cluster.apply(younger)
        cluster.run(seconds=JUMP_S + 30)
        resizes = [call.path for call in cluster.audit("operator-0", "patch", "/resize")]
        assert resizes and max(resizes.count(path) for path in set(resizes)) <= 2, "only up"
        assert len([cpu for cpu in cpus(cluster) if cpu != "1"]) == 10


def test_taking_the_field_away_takes_it_back() -> None:
    with Cluster(seed=12) as cluster:
        deploy(cluster)
        cluster.apply(with_bridge())
        cluster.run(seconds=JUMP_S + 90)
        assert set(cpus(cluster)) != {"1"}
        cluster.patch("Autoscaler", WEB, {"spec": {"bridge": None}})
        cluster.run(minutes=1)
        assert set(cpus(cluster)) == {"1"}


def test_restore_takes_it_back_by_hand() -> None:
    async def restored() -> list[str]:
        async with Kube(cluster._access("person")) as kube:
            return [restored.text async for restored in restore_all(kube, "", dry_run=False) if not restored.trouble]

    with Cluster(seed=10) as cluster:
        deploy(cluster)
        cluster.apply(with_bridge())
        cluster.run(seconds=JUMP_S + 90)
        cluster.stop_operator("operator-0")
        cluster.run(seconds=5)
        lines = cluster.loop.run_until_complete(restored())
        assert len(lines) == 10 and all("times its cpu" in line for line in lines)
        assert set(cpus(cluster)) == {"1"}
