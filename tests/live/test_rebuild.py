"""The past of workloads: asked for once at first sight, never waited for, tried again where it could not be had."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from aiohttp import web

from tests.live.build import AT
from tests.wire.fake import Fake
from trimtab.core.usage import HistogramSettings, usages
from trimtab.live.look.cluster import ScaleTarget
from trimtab.live.measure.usage import TRY_AGAIN_S, PastUsage, Rebuild
from trimtab.wire.access import Access
from trimtab.wire.resources import DEPLOYMENTS

QUICK = HistogramSettings(memory_window_s=900.0)  # a past of two hours
WEB = ScaleTarget(DEPLOYMENTS, "shop", "web", "uid-web", "7", 1, 1)
POD = {"namespace": "shop", "pod": "web-abc-1", "container": "app"}
OWNED = {"namespace": "shop", "pod": "web-abc-1", "owner_kind": "ReplicaSet", "owner_name": "web-abc"}
SET = {"namespace": "shop", "replicaset": "web-abc", "owner_kind": "Deployment", "owner_name": "web"}


async def prometheus(request: web.Request) -> web.StreamResponse:
    """A server that knows one pod, which always used half a core and 300 MB; it hands over no stored samples."""
    asked: Any = await request.post()
    if request.method == "GET":  # the API server, where nothing of it exists any more
        return web.json_response({"items": []})
    if request.path.endswith("/read"):
        return web.Response(status=404)
    if request.path.endswith("/series"):
        owners = [OWNED] if "kube_pod_owner" in asked["match[]"] else [SET]
        return web.json_response({"status": "success", "data": owners})
    start, end, step = float(asked["start"]), float(asked["end"]), float(asked["step"])
    value = "0.5" if "cpu" in asked["query"] else "3e8"
    values = [[start + step * n, value] for n in range(round((end - start) / step) + 1)]
    found = [{"metric": POD | {"stem": "web-abc"}, "values": values}]
    return web.json_response({"status": "success", "data": {"resultType": "matrix", "result": found}})


async def silent(request: web.Request) -> web.StreamResponse:
    return web.Response(status=503)


def looked(answer: Any, check: Callable[[Rebuild, Fake], Any]) -> Any:
    async def run() -> Any:
        async with Fake(answer) as fake:
            kube = fake.kube()
            try:
                return await check(Rebuild(Access(fake.url), kube, QUICK, every_s=60.0), fake)
            finally:
                await kube.close()

    return asyncio.run(run())


async def until_found(rebuild: Rebuild, at: float, target: ScaleTarget = WEB) -> PastUsage:
    async with asyncio.timeout(300):
        while not (found := rebuild.look([target], at)):
            await asyncio.sleep(0.01)
    return found[0]


def test_the_past_comes_later_and_once() -> None:
    async def check(rebuild: Rebuild, fake: Fake) -> None:
        assert not rebuild.look([WEB], AT), "nobody waits"
        found = await until_found(rebuild, AT)
        assert found.since == AT - 8 * 900
        estimate = usages(found.book, AT)["uid-web"].containers["app"]
        assert estimate.observed_s >= 7200 - 120 and 0.5 < (estimate.target.cpu_cores or 0) < 0.7
        assert estimate.memory_peak_bytes == 3e8
        assert not rebuild.look([WEB], AT + 60) and not rebuild.look([WEB], AT + 6000)
        assert not rebuild._reading, "it is known now"

    looked(prometheus, check)


def test_a_workload_that_was_made_anew_has_a_past_of_its_own() -> None:
    async def check(rebuild: Rebuild, fake: Fake) -> None:
        await until_found(rebuild, AT)
        found = await until_found(rebuild, AT, WEB._replace(uid="another"))
        assert found.book.keys() == [("another", "app")]

    looked(prometheus, check)


def test_who_leads_again_reads_it_again_and_what_was_under_way_is_given_up() -> None:
    async def check(rebuild: Rebuild, fake: Fake) -> None:
        await until_found(rebuild, AT)
        for under_way in (False, True):
            rebuild.take_over()
            assert not rebuild.look([WEB], AT + 9000) and rebuild._reading, under_way
        assert (await until_found(rebuild, AT + 9000)).since == AT + 9000 - 8 * 900

    looked(prometheus, check)


def test_what_could_not_be_read_is_tried_again_after_a_while() -> None:
    async def check(rebuild: Rebuild, fake: Fake) -> None:
        rebuild.look([WEB], AT)
        while not rebuild._rest_until:
            assert not rebuild.look([WEB], AT)
            await asyncio.sleep(0.01)
        failed = len(fake.requests)
        rebuild.look([WEB], AT + TRY_AGAIN_S - 1)
        assert not rebuild._reading, "not in every tick"
        rebuild.look([WEB], AT + TRY_AGAIN_S)
        async with asyncio.timeout(300):
            while len(fake.requests) == failed:
                await asyncio.sleep(0.01)

    looked(silent, check)


def test_a_page_is_one_question() -> None:
    days = Rebuild(Access("http://127.0.0.1:1"), None, HistogramSettings(), every_s=60.0)  # type: ignore[arg-type]
    assert days.history_s == 8 * 86400 and 60 < days.step_s < 63
