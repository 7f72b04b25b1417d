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

LOW, HIGH = 0.02, 0.25  # of 0.25 cores, with a target of half


def after_ticks(api: MemoryApi, cluster: WatchedCluster, cores: float) -> int:
    async def run() -> None:
        made = ticker(api, cluster, Telemetry())
        for at in (AT + 60 * minute for minute in range(8)):  # longer than a stabilisation window
            for pod in ("web-a", "web-b"):
                measure(api, pod, cores, at)
            await made.tick(at)
        await made.teller.finish()

    asyncio.run(run())
    replicas: int = api.objects[f"{APPS}/deployments/web"]["spec"]["replicas"]
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
