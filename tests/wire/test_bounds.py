"""What a server sends is bounded before it is kept: answers, events of a watch, frames, samples of a chunk."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec
import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.wire.fake import Fake, Handler, script
from trimtab.errors import ClusterUnavailable, Refused
from trimtab.wire import kube as kube_module
from trimtab.wire.access import prometheus_access
from trimtab.wire.kube import Kube
from trimtab.wire.objects import PodMetrics, WirePod
from trimtab.wire.prometheus import MOST_SERIES, RANGE_SERIES, Prometheus, TooManySeries
from trimtab.wire.resources import PODS
from trimtab.wire.watch import lines


async def forty_megabytes(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    for _ in range(40):
        await response.write(b"x" * 2**20)
    return response


FROM_KUBERNETES: list[Callable[[Kube], Awaitable[Any]]] = [
    lambda kube: kube.get(WirePod, PODS, "a", "b"),
    lambda kube: kube.patch(WirePod, PODS, "a", "b", {}),
    lambda kube: kube.raw("/apis"),
    lambda kube: kube.list(WirePod, PODS),
]
FROM_PROMETHEUS: list[Callable[[Prometheus], Awaitable[Any]]] = [
    lambda prometheus: prometheus.query("up"),
    lambda prometheus: prometheus.query_together(["up", "down"]),
    lambda prometheus: prometheus.query_range("up", 0.0, 60.0, 60.0, most_bytes=2**20),
    lambda prometheus: prometheus.series("up", 0.0, 60.0),
]


@pytest.mark.parametrize("ask", FROM_KUBERNETES)
def test_no_answer_of_the_api_server_is_read_beyond_its_limit(ask: Callable[[Kube], Awaitable[Any]]) -> None:
    async def run() -> None:
        async with Fake(forty_megabytes) as fake, fake.kube() as kube:
            with pytest.raises(ClusterUnavailable, match=r"more than [\d,]+ bytes is not read"):
                await ask(kube)

    asyncio.run(run())


@pytest.mark.parametrize("ask", FROM_PROMETHEUS)
def test_no_answer_of_prometheus_is_read_beyond_its_limit(ask: Callable[[Prometheus], Awaitable[Any]]) -> None:
    async def run() -> None:
        async with Fake(forty_megabytes) as fake, Prometheus(prometheus_access(fake.url)) as prometheus:
            with pytest.raises(TooManySeries, match=r"more than [\d,]+ bytes is not read"):
                await ask(prometheus)

    asyncio.run(run())


def answered(kind: str, count: int) -> web.Response:
    value = {"value": [0.0, "1"]} if kind == "vector" else {"values": [[0.0, "1"]]}
    result = [{"metric": {"n": str(number)}} | value for number in range(count)]
    return web.json_response({"status": "success", "data": {"resultType": kind, "result": result}})


@pytest.mark.parametrize("kind, most", [("vector", MOST_SERIES), ("matrix", RANGE_SERIES)])
def test_series_are_counted_before_anything_is_made_of_them(kind: str, most: int) -> None:
    async def count(series: int) -> int:
        answer = script(answered(kind, series))
        async with Fake(answer) as fake, Prometheus(prometheus_access(fake.url)) as prometheus:
            if kind == "vector":
                return len(await prometheus.query("up"))
            return len(await prometheus.query_range("up", 0.0, 60.0, 60.0))

    assert asyncio.run(count(most)) == most
    with pytest.raises(TooManySeries, match="series: wrap the query in sum"):
        asyncio.run(count(most + 1))


def pages(names: list[str], note: str) -> Handler:
    """Lists as the API server does: `limit` of them, and where to go on."""

    async def answer(request: web.Request) -> web.Response:
        first = int(request.query.get("continue", 0))
        last = min(first + int(request.query.get("limit", len(names))), len(names))
        items = [{"metadata": {"name": name, "labels": {"note": note}}} for name in names[first:last]]
        return web.json_response({"metadata": {"continue": str(last) if last < len(names) else ""}, "items": items})

    return answer


@given(count=st.integers(0, 1200), note=st.integers(0, 2000), most=st.integers(3000, 10**6))
@settings(max_examples=15, deadline=None)
def test_a_list_is_whole_however_long_its_objects_are(count: int, note: int, most: int) -> None:
    names = [f"p{number}" for number in range(count)]

    async def run() -> list[str]:
        async with Fake(pages(names, "x" * note)) as fake, fake.kube() as kube:
            return [pod.metadata.name for pod in (await kube.list(WirePod, PODS)).items]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(kube_module, "PAGE_BYTES", most)
        assert asyncio.run(run()) == names


@pytest.mark.parametrize("count", [100, 20_000])
def test_others_get_their_turns_while_a_long_list_is_decoded(count: int) -> None:
    item = {"metadata": {"name": "web", "namespace": "shop"}, "containers": [{"name": "x" * 100}]}
    body = msgspec.json.encode({"items": [item] * count})
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def run() -> int:
        task = asyncio.create_task(others())
        async with Fake(forty_megabytes) as fake, fake.kube() as kube:
            before = turns
            assert len(await kube.items(body, PodMetrics)) == count
            task.cancel()
            return turns - before

    assert asyncio.run(run()) >= (count // 500 - 1 if len(body) > 2**20 else 0)


def test_of_a_long_refusal_the_beginning_is_read() -> None:
    async def run() -> None:
        long = web.Response(status=403, body=b"x" * 2_000_000)
        async with Fake(script(long)) as fake, fake.kube() as kube:
            with pytest.raises(Refused) as caught:
                await kube.get(WirePod, PODS, "a", "b")
            assert len(str(caught.value)) < 200

    asyncio.run(run())


def test_an_event_of_a_watch_has_a_longest_length() -> None:
    async def sent(*pieces: bytes) -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    async def run() -> None:
        assert [line async for line in lines(sent(b"ab", b"cd\nef", b"\n" * 9 + b"g\n"), 5)] == [b"abcd", b"ef", b"g"]
        with pytest.raises(ClusterUnavailable, match="more than 5 bytes"):
            _ = [line async for line in lines(sent(b"abc", b"def"), 5)]

    asyncio.run(run())
