"""What a server sends is bounded before it is kept: answers, events of a watch, frames, samples of a chunk."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from tests.wire.fake import Fake, script
from trimtab.errors import ClusterUnavailable, Refused
from trimtab.wire import http
from trimtab.wire.objects import WirePod
from trimtab.wire.resources import PODS
from trimtab.wire.watch import lines


def test_an_answer_without_end_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "ANSWER_BYTES", 100_000)

    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"x" * 10_000)

    async def run() -> None:
        async with Fake(endless) as fake, fake.kube() as kube:
            with pytest.raises(ClusterUnavailable, match="more than 100,000 bytes is not read"):
                await kube.get(WirePod, PODS, "a", "b")

    asyncio.run(run())


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
