"""Targets from the cluster's own words: pods by owner, what an HPA leaves to inherit, what an OOM kill tells."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from trimtab.advisor.targets import by_owner, inherited, oom_bytes, own_hpa, target_of
from trimtab.advisor.workloads import _pooled
from trimtab.policy import Size
from trimtab.wire.objects import Custom, WirePod, WireWorkload
from trimtab.wire.resources import DEPLOYMENTS

NOW = 1_700_000_000.0


def owned(name: str, kind: str, uid: str, **rest: Any) -> dict[str, Any]:
    owner = {"kind": kind, "name": "any", "uid": uid, "controller": True}
    return {"metadata": {"name": name, "namespace": "shop", "uid": name, "ownerReferences": [owner]}, **rest}


def pod(name: str, uid: str, kind: str = "ReplicaSet", phase: str = "Running", **rest: Any) -> WirePod:
    return msgspec.convert(owned(name, kind, uid, status={"phase": phase, **rest}), WirePod)


def test_pods_belong_to_their_owners_whatever_their_names() -> None:
    sets = [msgspec.convert(owned("rs-web", "Deployment", "web"), WireWorkload)]
    free = {"name": "rs-free", "namespace": "shop", "uid": "rs-free"}
    sets.append(msgspec.convert({"metadata": free}, WireWorkload))
    pods = [
        pod("web-1", "rs-web"),
        pod("web-api-1", "rs-free"),
        pod("web-done", "rs-web", phase="Succeeded"),
        pod("db-0", "db", kind="StatefulSet"),
        msgspec.convert({"metadata": {"name": "alone"}}, WirePod),
    ]
    found = {uid: [one.metadata.name for one in some] for (_, uid), some in by_owner(pods, sets).items()}
    assert found == {"web": ["web-1"], "rs-free": ["web-api-1"], "db": ["db-0"]}


def test_pods_and_replica_sets_of_another_namespace_do_not_belong() -> None:
    evil = owned("evil", "ReplicaSet", "rs-web", status={"phase": "Running"})
    evil["metadata"]["namespace"] = "tenant"
    forged = owned("rs-evil", "Deployment", "web")
    forged["metadata"]["namespace"] = "tenant"
    sets = [msgspec.convert(each, WireWorkload) for each in (owned("rs-web", "Deployment", "web"), forged)]
    found = by_owner([pod("web-1", "rs-web"), msgspec.convert(evil, WirePod)], sets)
    assert [one.metadata.name for one in found["shop", "web"]] == ["web-1"]


def hpa(kind: str, name: str, labels: dict[str, str] | None = None) -> Custom:
    cpu = {"type": "Resource", "resource": {"name": "cpu"}}
    memory = {"type": "Resource", "resource": {"name": "memory"}}
    spec = {"scaleTargetRef": {"kind": kind, "name": name}, "metrics": [cpu, memory], "behavior": {"scaleUp": {}}}
    return msgspec.convert({"metadata": {"name": "h", "namespace": "shop", "labels": labels}, "spec": spec}, Custom)


def test_everything_but_cpu_is_inherited_from_the_workloads_own_hpa() -> None:
    metrics, behavior = inherited(
        own_hpa([hpa("StatefulSet", "web"), hpa("Deployment", "web")], "shop", "Deployment", "web")
    )
    assert [one["resource"]["name"] for one in metrics] == ["memory"] and behavior == {"scaleUp": {}}
    assert inherited(own_hpa([hpa("Deployment", "web-api")], "shop", "Deployment", "web")) == ((), None)
    assert inherited(own_hpa([hpa("Deployment", "web")], "other", "Deployment", "web")) == ((), None)


@pytest.mark.parametrize(
    "target, kept",
    [
        pytest.param(
            {"type": "Utilization", "averageUtilization": 50}, 0, id="000: CpuUtilization is recommended anew"
        ),
        pytest.param({"type": "AverageValue", "averageValue": "500m"}, 1, id="000: other MetricSpecs are inherited"),
    ],
)
def test_a_cpu_target_in_cores_is_inherited(target: dict[str, Any], kept: int) -> None:
    found = hpa("Deployment", "web")
    found.spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    metrics, _ = inherited(own_hpa([found], "shop", "Deployment", "web"))
    assert list(metrics) == found.spec["metrics"][:kept]


def test_the_hpa_of_an_effective_hpa_is_no_users_word() -> None:
    made = hpa("Deployment", "web", {"app.kubernetes.io/managed-by": "effective-hpa-controller"})
    assert inherited(own_hpa([made], "shop", "Deployment", "web")) == ((), None)


def test_memory_at_the_last_kill_of_the_week() -> None:
    def killed(at: str, resources: dict[str, Any]) -> WirePod:
        ended = {"reason": "OOMKilled", "finishedAt": at}
        status = {"containerStatuses": [{"name": "app", "lastState": {"terminated": ended}}]}
        spec = {"containers": [{"name": "app", "resources": resources}]}
        return msgspec.convert({"spec": spec, "status": status}, WirePod)

    week_ago = NOW - 604800  # 2023-11-07T22:13:20Z
    limited = killed("2023-11-14T00:00:00Z", {"requests": {"memory": "1Gi"}, "limits": {"memory": "2Gi"}})
    unlimited = killed("2023-11-14T00:00:00Z", {"requests": {"memory": "1Gi"}})
    old = killed("2023-11-01T00:00:00Z", {"requests": {"memory": "8Gi"}})
    assert oom_bytes([limited, unlimited, old], week_ago) == {"app": 2.0 * 2**30}
    assert oom_bytes([unlimited], week_ago) == {"app": 1.0 * 2**30}
    assert oom_bytes([old], week_ago) == {}


def test_a_workload_as_a_target() -> None:
    container = {"name": "app", "resources": {"requests": {"cpu": "250m"}}}
    template = {"spec": {"containers": [container, {"name": "proxy"}]}}
    spec = {"selector": {"matchLabels": {"app": "web"}}, "template": template}
    meta = {"name": "web", "namespace": "shop", "uid": "u", "labels": {"team": "red"}}
    found = target_of(DEPLOYMENTS, msgspec.convert({"metadata": meta, "spec": spec}, WireWorkload), [], [], NOW)
    assert (found.key, found.row, found.replicas) == ("shop/Deployment/web", "shop/Deployment/web", 1)
    assert found.requests == {"app": Size(cpu_cores=0.25), "proxy": Size()}  # not set is not zero
    assert found.matched == {"app": "web", "team": "red"} and found.labels == {"team": "red"}


def test_containers_of_one_pod_stand_at_the_same_place() -> None:
    """So that they can be added up; a container that a pod lacks is a hole, injected ones are left out."""
    single = {
        ("app", "p1"): np.array([1.0, 2.0]),
        ("app", "p2"): np.array([3.0, np.nan]),
        ("proxy", "p2"): np.array([10.0, 20.0]),
        ("injected", "p1"): np.array([7.0, 7.0]),
    }
    found = _pooled(single, ["app", "proxy"])
    np.testing.assert_array_equal(found["app"], [1.0, 2.0, 3.0, np.nan])
    np.testing.assert_array_equal(found["proxy"], [np.nan, np.nan, 10.0, 20.0])
    assert set(found) == {"app", "proxy"}
