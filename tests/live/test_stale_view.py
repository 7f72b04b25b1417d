"""A view that is old, or not whole, lowers nothing; more load is followed as ever."""

from __future__ import annotations

import asyncio

import pytest

from tests.live.build import AT
from tests.live.memory_api import MemoryApi
from tests.live.shop import APPS, CORE, OURS, measure, stock, ticker, watched
from trimtab.errors import ClusterUnavailable
from trimtab.live.look.cluster import WatchedCluster
from trimtab.live.tell.telemetry import Telemetry
from trimtab.wire.from_kubernetes import rfc3339

LOW, HIGH = 0.02, 0.25  # of 0.25 cores, with a target of half


def after_ticks(api: MemoryApi, cluster: WatchedCluster, cores: float, plural: str = "deployments") -> int:
    async def run() -> None:
        made = ticker(api, cluster, Telemetry())
        for at in (AT + 60 * minute for minute in range(8)):  # longer than a stabilisation window
            for pod in ("web-a", "web-b"):
                measure(api, pod, cores, at)
            await made.tick(at)
        await made.teller.finish()

    asyncio.run(run())
    replicas: int = api.objects[f"{APPS}/{plural}/web"]["spec"]["replicas"]
    return replicas


def reason(api: MemoryApi) -> str:
    conditions = {found["type"]: found for found in api.objects[f"{OURS}/web"]["status"]["conditions"]}
    return str(conditions["AbleToScale"]["reason"])


@pytest.mark.parametrize(
    ("cores", "replicas"), [pytest.param(LOW, 2, id="less load"), pytest.param(HIGH, 4, id="more load")]
)
def test_pods_that_cannot_be_followed_lower_nothing(cores: float, replicas: int) -> None:
    api = MemoryApi()
    stock(api, cores=cores)
    cluster = watched(api)
    cluster.pods.store.trouble = ClusterUnavailable("pods is forbidden")
    assert after_ticks(api, cluster, cores) == replicas
    if cores == LOW:
        assert reason(api) == "StaleView"


def test_pods_that_are_not_known_may_be_the_busy_ones() -> None:
    api = MemoryApi()
    stock(api, cores=LOW)
    api.remove(f"{CORE}/pods/web-a")
    assert after_ticks(api, watched(api), LOW) == 2 and reason(api) == "StaleView"


def test_a_whole_and_fresh_view_may_lower() -> None:
    api = MemoryApi()
    stock(api, cores=LOW)
    assert after_ticks(api, watched(api), LOW) == 1


@pytest.mark.parametrize(("kind", "lowered"), [("StatefulSet", 1), ("Deployment", 2)])
@pytest.mark.parametrize("phase", ["Running", "Failed"])
def test_a_pod_on_its_way_out_is_known_where_its_controller_still_counts_it(
    kind: str, lowered: int, phase: str
) -> None:
    """A StatefulSet's status has the pods of a lost node, which may stay for ever; a Deployment's has them no more."""
    api, ref = MemoryApi(), {"apiVersion": "apps/v1", "kind": kind, "name": "web"}
    stock(api, cores=LOW, kind=kind, scaleTargetRef=ref)
    path, plural = f"{CORE}/pods/web-c", f"{kind.lower()}s"
    leaving = api.objects[f"{CORE}/pods/web-b"]
    meta = {"uid": "p-web-c", "ownerReferences": leaving["metadata"]["ownerReferences"]}
    meta |= {"creationTimestamp": rfc3339(AT - 3600), "deletionTimestamp": rfc3339(AT)}
    api.put(path, {"metadata": meta, "spec": leaving["spec"], "status": leaving["status"] | {"phase": phase}})
    workload = api.objects[f"{APPS}/{plural}/web"]
    api.put(f"{APPS}/{plural}/web", workload | {"status": {"replicas": 3}})
    assert after_ticks(api, watched(api), LOW, plural) == lowered
