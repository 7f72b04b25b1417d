"""Checkpoints are read and written beside the ticks; what fails for one object is that object's alone."""

from __future__ import annotations

import asyncio
import json
import logging

import pytest

from tests.live.build import AT, AUTOSCALERS, HPAS, hpa, object_tick, pod_metrics, subject
from tests.live.memory_api import MemoryApi
from tests.live.shop import stock, watched
from trimtab.core.model import Missing, Observation
from trimtab.core.usage.settings import HistogramSettings
from trimtab.live.look.cluster import WatchedCluster
from trimtab.live.look.memory import OomKill
from trimtab.live.look.subject import Compiler
from trimtab.live.measure.checkpoint import READ_AGAIN_S, Checkpoints
from trimtab.live.measure.usage import UsageWatch
from trimtab.live.object_tick import ObjectTick

EVERY_S = 600.0
STORED = "/api/v1/namespaces/trimtab/configmaps/trimtab-usage.autoscaler.shop."


class Watching:
    """An operator's usage and checkpoints of the Deployments of a shop, tick by tick."""

    def __init__(self, api: MemoryApi) -> None:
        self.cluster: WatchedCluster = watched(api)
        self.usage = UsageWatch(self.cluster, HistogramSettings())
        self.checkpoints = Checkpoints(self.cluster.kube, self.usage, EVERY_S, "trimtab")
        self.compiler = Compiler()

    async def tick(self, at: float) -> None:
        """One look, and the end of what it began in the background."""
        ticks = [await self._object(name, at) for _, name in self.cluster.workloads["Deployment"].store.items]
        targets = [tick.target for tick in ticks]
        pods = [f"shop/{pod.name}" for target in targets for pod in self.cluster.pods_of(target)]
        self.usage.look(targets, {pod: pod_metrics(0.2, 2.0**25, at) for pod in pods}, at)
        self.checkpoints.follow(ticks, at)
        await self.checkpoints.finished()

    async def _object(self, name: str, at: float) -> ObjectTick:
        found = self.cluster.ours["Autoscaler"].store.get("shop", name)
        target = await self.cluster.target("shop", None, "Deployment", name)
        assert found is not None
        subject = self.compiler.subject(AUTOSCALERS, found, True, at)
        return object_tick(subject, Observation(at=at, spec_replicas=2, status_replicas=2), target=target)

    async def observed_s(self, name: str) -> float:
        usage = self.usage.of(await self.cluster.target("shop", None, "Deployment", name))
        return 0.0 if isinstance(usage, Missing) else usage.containers["app"].observed_s


def shop(*names: str) -> MemoryApi:
    api = MemoryApi()
    for name in names:
        stock(api, name, vertical={"apply": "InPlace"})
    return api


def test_what_was_seen_outlives_the_operator() -> None:
    api = shop("web")

    async def run() -> float:
        first = Watching(api)
        for at in (AT, AT + 300, AT + EVERY_S):
            await first.tick(at)
        assert json.loads(api.objects[f"{STORED}web"]["data"]["app"])["version"] == "v3"
        second = Watching(api)
        await second.tick(AT + EVERY_S + 60)
        await second.tick(AT + EVERY_S + 120)
        return await second.observed_s("web")

    assert asyncio.run(run()) >= EVERY_S


def test_a_kill_that_was_seen_before_the_checkpoint_came_still_counts() -> None:
    api = shop("web")

    async def memory_after(killed: bool) -> float:
        second = Watching(api)
        if killed:
            web = await second.cluster.target("shop", None, "Deployment", "web")
            kill = OomKill(finished_at=AT + EVERY_S + 30, request_bytes=2.0**27, pod="web-a")
            second.usage.look([web], {}, AT + EVERY_S + 45, {web.uid: {"app": kill}})
        for at in (AT + EVERY_S + 60, AT + EVERY_S + 75):
            await second.tick(at)
        usage = second.usage.of(await second.cluster.target("shop", None, "Deployment", "web"))
        assert not isinstance(usage, Missing) and usage.containers["app"].observed_s >= EVERY_S
        return usage.containers["app"].oom_need_bytes or 0.0

    async def run() -> tuple[float, float]:
        first = Watching(api)
        for at in (AT, AT + EVERY_S):
            await first.tick(at)
        return await memory_after(killed=False), await memory_after(killed=True)

    without, with_kill = asyncio.run(run())
    assert with_kill > 2.0**27 and without == 0.0


def test_a_tick_waits_for_no_checkpoint() -> None:
    api = shop("web")

    async def run() -> None:
        watching = Watching(api)
        watching.checkpoints.follow([await watching._object("web", AT)], AT)
        assert api.asked == [], "it has begun, and nobody has waited for it"
        await watching.checkpoints.finished()
        assert api.asked == [("GET", f"{STORED}web")]

    asyncio.run(run())


def test_one_that_is_refused_holds_up_no_other_and_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    api = shop("web", "shy")
    api.refused[("GET", f"{STORED}shy")] = 403

    async def run() -> None:
        watching = Watching(api)
        for at in (AT, AT + 15, AT + EVERY_S):
            await watching.tick(at)
        assert f"{STORED}web" in api.objects, "the others are kept"
        assert f"{STORED}shy" not in api.objects, "what was not read is not written over"
        api.refused.clear()
        await watching.tick(AT + EVERY_S + READ_AGAIN_S)
        await watching.tick(AT + 2 * EVERY_S)
        assert f"{STORED}shy" in api.objects

    with caplog.at_level(logging.WARNING):
        asyncio.run(run())
    assert len(caplog.messages) == 1 and "Autoscaler shop/shy" in caplog.messages[0]


def test_a_write_that_is_refused_is_tried_again_the_next_time() -> None:
    api = shop("web", "shy")
    api.refused[("PATCH", f"{STORED}shy")] = 403

    async def run() -> None:
        watching = Watching(api)
        for at in (AT, AT + EVERY_S):
            await watching.tick(at)
        assert f"{STORED}web" in api.objects and f"{STORED}shy" not in api.objects
        api.refused.clear()
        await watching.tick(AT + 2 * EVERY_S)
        assert f"{STORED}shy" in api.objects

    asyncio.run(run())


ODD = ("[]", "7", "null", "{", '{"version": "v3", "cpuHistogram": []}', '{"version": "v3", "lastUpdateTime": []}')


@pytest.mark.parametrize("text", [*ODD, "[" * 10_000, '{"version":' * 500])
def test_an_odd_checkpoint_starts_afresh_and_costs_nobody_else(text: str) -> None:
    api = shop("odd", "web")
    labels = {"trimtab.dev/object-uid": "auto-odd"}

    async def run() -> None:
        watching = Watching(api)
        uid = watching.cluster.ours["Autoscaler"].store.get("shop", "odd")
        assert uid is not None
        labels["trimtab.dev/object-uid"] = uid.metadata.uid
        api.put(f"{STORED}odd", {"metadata": {"labels": labels}, "data": {"app": text}})
        for at in (AT, AT + EVERY_S):
            await watching.tick(at)
        for name in ("odd", "web"):
            assert json.loads(api.objects[f"{STORED}{name}"]["data"]["app"])["version"] == "v3"

    asyncio.run(run())


def test_every_checkpoint_is_in_the_operators_own_namespace_and_goes_with_its_object() -> None:
    api = shop("web")
    foreign = "/api/v1/namespaces/trimtab/configmaps/settings"
    gone = f"{STORED}gone"
    api.put(foreign, {"data": {}})
    api.put(gone, {"metadata": {"labels": {"trimtab.dev/object-uid": "gone"}}})

    async def run() -> None:
        watching = Watching(api)
        for at in (AT, AT + EVERY_S):
            await watching.tick(at)

    asyncio.run(run())
    assert gone not in api.objects and foreign in api.objects and f"{STORED}web" in api.objects
    assert all("/namespaces/trimtab/" in path for _, path in api.asked if "configmaps" in path)


def test_the_checkpoint_of_the_last_object_goes_too_and_nobody_looks_more_often_than_it_is_due() -> None:
    api, home = MemoryApi(), "/api/v1/namespaces/trimtab/configmaps"
    api.put(f"{STORED}gone", {"metadata": {"labels": {"trimtab.dev/object-uid": "gone"}}})

    async def run() -> None:
        watching = Watching(api)
        for at in (AT, AT + EVERY_S, AT + EVERY_S + 15, AT + EVERY_S + 30):
            await watching.tick(at)

    asyncio.run(run())
    assert f"{STORED}gone" not in api.objects
    assert [path for _, path in api.asked if "configmaps" in path].count(home) == 1


def test_the_demand_of_an_annotated_hpa_stays_as_long_as_the_hpa() -> None:
    api, found = MemoryApi(), hpa(predictive="true")
    kept = "/api/v1/namespaces/trimtab/configmaps/trimtab-usage.horizontalpodautoscaler.shop.web"

    async def run() -> None:
        watching, about = Watching(api), subject(found, HPAS)
        hpas, seen = watching.cluster.hpas.store, Observation(at=AT, spec_replicas=2, status_replicas=2)
        for at, there in ((AT, True), (AT + EVERY_S, True), (AT + 2 * EVERY_S, False)):
            hpas.put(found) if there else hpas.drop(("shop", "web"))
            watching.checkpoints.follow([object_tick(about, seen)] if there else [], at)
            await watching.checkpoints.finished()
            assert (kept in api.objects) is (there and at > AT)

    asyncio.run(run())


def test_the_usage_of_an_object_that_was_made_anew_is_not_its_own() -> None:
    api = shop("web")

    async def run() -> float:
        first = Watching(api)
        for at in (AT, AT + 300, AT + EVERY_S):
            await first.tick(at)
        api.objects[f"{STORED}web"]["metadata"]["labels"]["trimtab.dev/object-uid"] = "before"
        second = Watching(api)
        await second.tick(AT + EVERY_S + 60)
        return await second.observed_s("web")

    assert asyncio.run(run()) < 300


def test_the_time_in_which_nobody_asked_for_sizes_was_not_observed() -> None:
    """`vertical` is taken away for a day and given back: an hour of samples is no reason to shrink."""
    api = shop("web")

    async def run() -> float:
        watching = Watching(api)
        for minute in range(60):
            await watching.tick(AT + 60.0 * minute)
        for hour in range(1, 26):
            watching.usage.look([], {}, AT + 3600.0 * hour)
        await watching.tick(AT + 26 * 3600.0)
        return await watching.observed_s("web")

    assert asyncio.run(run()) == 59 * 60.0
