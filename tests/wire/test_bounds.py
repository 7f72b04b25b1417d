"""What a server sends is bounded before it is kept: answers, events of a watch, frames, samples of a chunk."""

from __future__ import annotations

import asyncio
import time
import tracemalloc
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from tests.history.chunks import chunk, series, varint
from tests.wire.fake import Fake, script
from trimtab.errors import ClusterUnavailable, MetricsUnavailable, Refused
from trimtab.history import gorilla
from trimtab.wire import http, remote_read
from trimtab.wire.objects import WirePod
from trimtab.wire.remote_read import Frames
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


def test_a_frame_that_says_it_is_huge_is_refused_at_once() -> None:
    with pytest.raises(MetricsUnavailable, match="are the most"):
        list(Frames().feed(varint(remote_read.FRAME_BYTES + 1)))


def test_a_length_without_end_is_refused() -> None:
    with pytest.raises(MetricsUnavailable, match="64 bits"):
        list(Frames().feed(b"\xff" * 100))


def test_a_large_frame_in_small_pieces_takes_time_in_proportion() -> None:
    """Copying all that waits with every piece would copy 32 GB here."""
    message = series({"pod": "a"}, bytes(8 * 2**20))
    whole = varint(len(message)) + bytes(4) + message
    started, frames, found = time.process_time(), Frames(), 0
    for at in range(0, len(whole), 1024):
        found += len(list(frames.feed(whole[at : at + 1024])))
    frames.end()
    assert found == 1
    assert time.process_time() - started < 2.0


def test_chunks_that_claim_more_samples_than_they_have_bits_for_cost_nothing() -> None:
    """Ten kilobytes that would become five gigabytes."""
    tracemalloc.start()
    with pytest.raises(MetricsUnavailable, match="ends before its samples"):
        gorilla.decode([b"\xff\xff"] * 5000)
    assert tracemalloc.get_traced_memory()[1] < 2_000_000
    tracemalloc.stop()


def test_the_densest_chunk_is_not_refused() -> None:
    """The same value at the same distance: two bits per sample."""
    dense = chunk([(60_000 * index, 1.0) for index in range(1000)])
    assert gorilla.decode([dense]).counts.tolist() == [1000]
