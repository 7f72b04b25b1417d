"""No write leaves after the lease's deadline, however long it queued, and none is waited for beyond it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp import web

from tests.virtual import loop
from tests.virtual.apiserver import Reply
from tests.wire.fake import Fake
from tests.wire.inside import FINE, Inside
from trimtab.errors import ClusterUnavailable, NotLeading
from trimtab.wire.access import Access
from trimtab.wire.budget import Budget
from trimtab.wire.http import Outgoing
from trimtab.wire.kube import Kube
from trimtab.wire.objects import Scale
from trimtab.wire.resources import DEPLOYMENTS

DEADLINE_S = 10.0


def left() -> float:
    return DEADLINE_S - loop.now()


async def scale(kube: Kube, name: str) -> Scale:
    return await kube.patch(Scale, DEPLOYMENTS, "shop", name, {"spec": {"replicas": 2}}, subresource="scale")


def test_of_700_queued_writes_none_leaves_after_the_fence() -> None:
    left_at: list[float] = []

    async def answer(_: Outgoing) -> Reply:
        left_at.append(loop.now())
        return FINE

    async def run() -> list[Any]:
        budget = Budget(per_s=50.0, burst=100.0)  # 700 writes take twelve seconds
        async with Kube(Inside(answer).access(), budget, fence=left) as kube:
            return await asyncio.gather(
                *(scale(kube, f"web-{number}") for number in range(700)), return_exceptions=True
            )

    results = loop.run(run())
    refused = [result for result in results if isinstance(result, NotLeading)]
    assert max(left_at) <= DEADLINE_S
    assert len(left_at) + len(refused) == 700
    assert 590 <= len(left_at) <= 600


def test_a_write_without_an_answer_is_given_up_before_the_fence() -> None:
    async def hang(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(60)
        return web.json_response({})

    async def run() -> None:
        async with Fake(hang) as fake, Kube(Access(fake.url), timeout_s=30.0, fence=left) as kube:
            await asyncio.sleep(2.5)
            with pytest.raises(ClusterUnavailable, match="no answer"):
                await scale(kube, "web")
            assert loop.now() <= DEADLINE_S

    loop.run(run(), loop.SOCKETS_S)


def test_a_429_that_asks_for_a_pause_beyond_the_fence_ends_the_write() -> None:
    asked: list[float] = []

    async def busy(request: web.Request) -> web.StreamResponse:
        asked.append(loop.now())
        return web.Response(status=429, headers={"Retry-After": "6"})

    async def run() -> None:
        async with Fake(busy) as fake, Kube(Access(fake.url), fence=left) as kube:
            with pytest.raises(NotLeading):
                await scale(kube, "web")

    loop.run(run(), loop.SOCKETS_S)
    assert len(asked) == 2 and max(asked) <= DEADLINE_S


def test_who_does_not_lead_reads_but_neither_writes_nor_queues() -> None:
    async def run() -> None:
        async def answer(request: web.Request) -> web.StreamResponse:
            return web.json_response({})

        async with Fake(answer) as fake, Kube(Access(fake.url), fence=lambda: float("-inf")) as kube:
            assert not kube.may_write()
            with pytest.raises(NotLeading):
                await scale(kube, "web")
            assert kube.budget.spent == 0
            await kube.get(Scale, DEPLOYMENTS, "shop", "web", "scale")
            assert [request.method for request in fake.requests] == ["GET"]

    loop.run(run(), loop.SOCKETS_S)
