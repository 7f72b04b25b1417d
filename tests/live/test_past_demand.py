"""The past of demand: read once in the background for every kind that Prometheus knows, kept in a checkpoint else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
from aiohttp import web

from tests.live.build import AT, custom, object_tick, spec, subject
from tests.live.memory_api import MemoryApi
from tests.live.shop import watched
from tests.wire.fake import Fake
from trimtab.core.demand import keys_of
from trimtab.core.forecast.demand_forecasts import DemandForecasts
from trimtab.core.model import Forecast, Observation, Pod, PodSamples
from trimtab.core.usage.settings import HistogramSettings
from trimtab.live.measure.checkpoint import Checkpoints
from trimtab.live.measure.forecasts import Forecasts
from trimtab.live.measure.past_demand import ASK_AGAIN_S, LONGEST_REST_S, TRY_AGAIN_S, PastDemand, all_read_back
from trimtab.live.measure.usage import UsageWatch
from trimtab.live.object_tick import ObjectTick
from trimtab.series import Series
from trimtab.wire.access import Access
from trimtab.wire.http import ATTEMPTS

TARGET = {"type": "AverageValue", "averageValue": "1"}
CPU = {"type": "Resource", "resource": {"name": "cpu", "target": TARGET}}
MEMORY = {"type": "Resource", "resource": {"name": "memory", "target": TARGET}}
APP = {"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "app", "target": TARGET}}
QUERY = {"type": "Prometheus", "prometheus": {"query": "sum(orders)", "target": TARGET}}
PODS = {"type": "Pods", "pods": {"metric": {"name": "rate"}, "target": TARGET}}
NAMES = ("web-abc-1", "web-abc-2")


def owned(pod: str) -> dict[str, str]:
    return {"namespace": "shop", "pod": pod, "owner_kind": "ReplicaSet", "owner_name": "web-abc"}


SET = {"namespace": "shop", "replicaset": "web-abc", "owner_kind": "Deployment", "owner_name": "web"}


def wave(at: float) -> float:
    return 2.0 + float(np.sin(2 * np.pi * at / 86400.0))


async def prometheus(request: web.Request) -> web.StreamResponse:
    """Two pods, each with a daily wave of half its height; an order rate of the whole; no stored samples."""
    asked: Any = await request.post()
    if request.method == "GET":  # the API server, where nothing of it exists any more
        return web.json_response({"items": []})
    if request.path.endswith("/read"):
        return web.Response(status=404)
    if request.path.endswith("/series"):
        owners = [owned(pod) for pod in NAMES] if "kube_pod_owner" in asked["match[]"] else [SET]
        return web.json_response({"status": "success", "data": owners})
    start, end, step = float(asked["start"]), float(asked["end"]), float(asked["step"])
    times = [start + step * n for n in range(round((end - start) / step) + 1)]
    query = asked["query"]

    def series(share: float, **labels: str) -> dict[str, Any]:
        return {"metric": labels, "values": [[at, str(share * wave(at))] for at in times]}

    if query == "sum(orders)":
        found = [series(100.0)]
    elif "stem,pod" in query:
        found = [series(0.5, namespace="shop", pod=pod, container="app", stem="web-abc") for pod in NAMES]
    else:
        found = [series(1.0 if "cpu" in query else 1e9, namespace="shop", stem="web-abc")]
    return web.json_response({"status": "success", "data": {"resultType": "matrix", "result": found}})


async def silent(request: web.Request) -> web.StreamResponse:
    return web.Response(status=503)


def tick(
    model: str, *metrics: dict[str, Any], at: float = AT, name: str = "web", namespace: str = "shop"
) -> ObjectTick:
    wanted = spec(metrics=list(metrics), forecast={"model": model, "horizon": "1h"})
    about = subject(custom(name, spec=wanted, metadata={"namespace": namespace}))
    return object_tick(about, Observation(at=at, spec_replicas=2, status_replicas=2))


def read_back(answer: Any, check: Callable[[PastDemand, Fake], Awaitable[None]]) -> None:
    async def run() -> None:
        async with Fake(answer) as fake:
            kube = fake.kube()
            try:
                await check(PastDemand(Access(fake.url), kube, DemandForecasts()), fake)
            finally:
                await kube.close()

    asyncio.run(run())


def test_every_kind_that_prometheus_knows_has_its_past_at_first_sight() -> None:
    first, other = tick("seasonal", CPU, MEMORY, APP, QUERY), tick("seasonal", CPU, PODS)
    keys = keys_of(first.subject.uid, first.subject.policy)

    async def check(past: PastDemand, fake: Fake) -> None:
        past.follow([first], AT)
        await past.finished()
        frame = past.demand.log.frame(keys, AT, 300.0)
        expected = np.array([wave(at) for at in frame.times + 300.0])
        for row, scale in enumerate((1.0, 1e9, 1.0, 100.0)):
            assert np.isfinite(frame.values[row]).sum() > 14 * 288
            assert np.nanmax(np.abs(frame.values[row] / scale - expected)) < 0.05
        asked = len(fake.requests)
        past.follow([first], AT + 15.0)
        await past.finished()
        assert len(fake.requests) == asked, "once"
        past.follow([other], AT + 30.0)
        await past.finished()
        assert len(fake.requests) > asked, "new signals are new"
        frame = past.demand.log.frame(keys_of(other.subject.uid, other.subject.policy), AT, 300.0)
        assert np.isnan(frame.values[1]).all(), "nobody remembers a metric of the pods"

    read_back(prometheus, check)


def test_who_leads_again_reads_back_what_it_has_missed() -> None:
    about, again = tick("seasonal", CPU), AT + 86400.0

    async def check(past: PastDemand, fake: Fake) -> None:
        for at in (AT, again):
            past.take_over()
            past.follow([about], at)
            await past.finished()
        frame = past.demand.log.frame(keys_of(about.subject.uid, about.subject.policy), again, 300.0)
        assert np.isfinite(frame.values[0, -280:]).all()

    read_back(prometheus, check)


def test_a_week_in_prometheus_is_a_forecast_after_two_ticks() -> None:
    async def check(past: PastDemand, fake: Fake) -> None:
        about, forecasts = tick("dsp", CPU).subject, Forecasts(past.demand, past)
        pods = tuple(Pod(name=name, ready=True) for name in NAMES)
        for at in (AT, AT + 15.0, AT + 30.0):
            samples = PodSamples(values=dict.fromkeys(NAMES, wave(at) / 2), at=at)
            seen = Observation(at=at, spec_replicas=2, status_replicas=2, pods=pods, samples=(samples,))
            forecasts.read_back([tick("dsp", CPU, at=at)], at)
            forecasts.note(about, seen)
            (found,) = forecasts.look(about, seen)
            forecasts.follow()
            await past.finished()
            await forecasts.finished()
        assert isinstance(found, Forecast)
        assert abs(found.at_quantile(0.5) - max(wave(AT + ahead) for ahead in range(0, 3600, 60))) < 0.4

    read_back(prometheus, check)


def test_a_line_reads_the_last_hour_only() -> None:
    first = tick("linear", CPU)

    async def check(past: PastDemand, fake: Fake) -> None:
        past.follow([first], AT)
        await past.finished()
        (key,) = keys_of(first.subject.uid, first.subject.policy)
        recent = past.demand.log.recent(key, AT, 1800.0)
        assert AT - recent.times[0] >= 1800.0 and len(recent) >= 60

    read_back(prometheus, check)


def test_who_answers_nobody_is_asked_once_a_minute_whether_it_is_back() -> None:
    async def check(past: PastDemand, fake: Fake) -> None:
        for at, more in ((AT, True), (AT + ASK_AGAIN_S - 1, False), (AT + ASK_AGAIN_S, True)):
            asked = len(fake.requests)
            past.follow([tick("seasonal", CPU)], at)
            await past.finished()
            assert (len(fake.requests) > asked) == more

    read_back(silent, check)


def test_an_object_whose_query_failed_or_was_not_allowed_is_tried_again_alone_and_ever_less_often() -> None:
    """The others of its round are done, and it is done as soon as it is answered."""
    fine, broken = tick("seasonal", CPU, name="other"), tick("seasonal", CPU, QUERY)
    refuses, queried = True, 0

    async def answer(request: web.Request) -> web.StreamResponse:
        nonlocal queried
        asked: Any = await request.post()
        queried += asked.get("query") == "sum(orders)"
        refused = refuses and asked.get("query") == "sum(orders)"
        return web.json_response({"status": "error"}, status=400) if refused else await prometheus(request)

    async def asked_at(past: PastDemand, fake: Fake, at: float) -> bool:
        before = queried
        past.follow([fine, broken], at)
        await past.finished()
        return queried > before

    async def check(past: PastDemand, fake: Fake) -> None:
        nonlocal refuses
        rest_s, at = TRY_AGAIN_S, AT
        assert await asked_at(past, fake, at)
        for _ in range(6):
            assert not await asked_at(past, fake, at + rest_s - 1.0)
            assert await asked_at(past, fake, at := at + rest_s)
            assert past.remembers(fine.subject) and not past.remembers(broken.subject)
            rest_s = min(2 * rest_s, LONGEST_REST_S)
        refuses = False
        assert await asked_at(past, fake, at := at + rest_s)
        assert not await asked_at(past, fake, at + 1.0)
        key = keys_of(broken.subject.uid, broken.subject.policy)[1]
        assert key in past.demand.log

    read_back(answer, check)


def test_queries_of_one_namespace_that_nobody_answers_keep_no_other_waiting() -> None:
    """Each would take a minute of everybody's time."""
    evil = {"type": "Prometheus", "prometheus": {"query": "sum(evil)", "target": TARGET}}
    slow = [tick("seasonal", evil, name=f"e{number}", namespace="evil") for number in range(5)]
    honest, asked_evil = tick("seasonal", QUERY), 0

    async def answer(request: web.Request) -> web.StreamResponse:
        nonlocal asked_evil
        asked: Any = await request.post()
        if asked.get("query") != "sum(evil)":
            return await prometheus(request)
        asked_evil += 1
        return web.Response(status=503)

    async def check(past: PastDemand, fake: Fake) -> None:
        past.follow([*slow, honest], AT)
        await past.finished()
        assert asked_evil == ATTEMPTS, "of the first of them alone"
        assert keys_of(honest.subject.uid, honest.subject.policy)[0] in past.demand.log
        assert past.remembers(honest.subject) and not any(past.remembers(each.subject) for each in slow)

    read_back(answer, check)


def test_an_object_that_begins_anew_ends_nobody_elses_reading() -> None:
    first, other, begun, go_on = (
        tick("seasonal", QUERY),
        tick("seasonal", QUERY, name="other"),
        asyncio.Event(),
        asyncio.Event(),
    )

    async def answer(request: web.Request) -> web.StreamResponse:
        begun.set()
        await go_on.wait()
        return await prometheus(request)

    async def check(past: PastDemand, fake: Fake) -> None:
        past.follow([first, other], AT)
        await begun.wait()
        past.begin_anew(first.subject.uid)
        go_on.set()
        await past.finished()
        read = [keys_of(each.subject.uid, each.subject.policy)[0] in past.demand.log for each in (first, other)]
        assert read == [False, True], "what was read is of the workload that it pointed at before"
        past.follow([first, other], AT + 15.0)
        await past.finished()
        assert keys_of(first.subject.uid, first.subject.policy)[0] in past.demand.log

    read_back(answer, check)


def test_a_checkpoint_that_comes_after_the_past_and_knows_more_is_kept() -> None:
    """Nobody knew of a hole in what Prometheus gave back."""
    about = tick("seasonal", QUERY)
    subject = about.subject
    (key,) = keys_of(subject.uid, subject.policy)
    days = AT - 300.0 * np.arange(15 * 288.0, 0.0, -1.0)

    async def answer(request: web.Request) -> web.StreamResponse:
        holed = [[at, "5"] for at in days.tolist() if not 3 * 86400.0 < AT - at < 8 * 86400.0]
        result = {"resultType": "matrix", "result": [{"metric": {}, "values": holed}]}
        return web.json_response({"status": "success", "data": result})

    async def check(past: PastDemand, fake: Fake) -> None:
        kept = DemandForecasts()
        kept.restore(subject.uid, subject.policy, key, Series(days, np.full(len(days), 5.0)), 300.0)
        past.follow([about], AT)
        await past.finished()
        assert past.remembers(subject)
        past.demand.load(subject.uid, subject.policy, kept.save(subject.uid, subject.policy, AT))
        past.doubt(subject.uid)
        for at in (AT + 15.0, AT + 15.0 + TRY_AGAIN_S):
            assert not past.remembers(subject)
            past.follow([about], at)
            await past.finished()
        assert not past.remembers(subject)

    read_back(answer, check)


# --- without a Prometheus --------------------------------------------------------------------------------------------


def test_demand_outlives_the_operator_in_a_checkpoint() -> None:
    api = MemoryApi()
    first = tick("seasonal", PODS)
    about = first.subject
    (key,) = keys_of(about.uid, about.policy)
    assert not all_read_back(about.policy) and all_read_back(tick("seasonal", CPU, APP).subject.policy)

    async def run() -> None:
        cluster = watched(api)
        cluster.ours["Autoscaler"].store.put(about.object)
        writer, usage = cluster.kube, UsageWatch(cluster, HistogramSettings())
        old, new = DemandForecasts(), DemandForecasts()
        keeper = Checkpoints(writer, usage, 600.0, "trimtab", old)
        for minute in range(11):
            old.log.note(AT + 60.0 * minute, key, 5.0 + minute)
            keeper.follow([first], AT + 60.0 * minute)
            await keeper.finished()
        stored = api.objects["/api/v1/namespaces/trimtab/configmaps/trimtab-usage.autoscaler.shop.web"]["data"]
        assert len(stored["demand.json"]) <= 20_000
        reader = Checkpoints(writer, usage, 600.0, "trimtab", new)
        reader.follow([first], AT + 700.0)
        await reader.finished()
        assert len(new.log.recent(key, AT + 600.0, 600.0)) == 11
        stored["demand.json"] = json.dumps({"version": 99})
        broken = Checkpoints(writer, usage, 600.0, "trimtab", DemandForecasts())
        broken.follow([first], AT + 800.0)
        await broken.finished()
        assert key not in broken.demand.log, "a bad one is refused, and everything goes on"

    asyncio.run(run())


def test_an_object_that_prometheus_remembers_is_not_written() -> None:
    api = MemoryApi()

    async def run() -> None:
        cluster = watched(api)
        usage = UsageWatch(cluster, HistogramSettings())
        async with Fake(prometheus) as fake:
            past = PastDemand(Access(fake.url), fake.kube(), DemandForecasts())
            keeper = Checkpoints(cluster.kube, usage, 600.0, "trimtab", past.demand, past)
            for at in (AT, AT + 601.0):
                past.follow([tick("seasonal", CPU)], at)
                await past.finished()
                keeper.follow([tick("seasonal", CPU)], at)
                await keeper.finished()
            await past.reader.kube.close()

    asyncio.run(run())
    assert not [path for path in api.objects if "configmaps" in path]
