"""Leading beside a slow API server: who can renew can also begin, and one lost answer costs nothing."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from tests.virtual import loop
from tests.virtual.apiserver import Reply
from tests.virtual.clock import VirtualClock
from tests.virtual.fields import encoded
from tests.wire.inside import Inside
from trimtab.wire.http import Outgoing
from trimtab.wire.shards import ALONE, ShardLeadership

DURATION_S, DEADLINE_S, RETRY_S = 15.0, 10.0, 2.0  # the defaults


class SlowServer:
    """One Lease, each answer after `takes_s`; of the next `lost` writes nobody hears."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.takes_s, self.lost = 0.05, 0

    async def answer(self, asked: Outgoing) -> Reply:
        await asyncio.sleep(self.takes_s)
        if asked.method == "GET" and asked.url.endswith("/leases"):
            items = [self.lease] if self.lease else []
            return Reply(200, encoded({"metadata": {"resourceVersion": "1"}, "items": items}))
        if asked.method == "GET":
            return Reply(200, encoded(self.lease)) if self.lease else Reply(404, b"")
        if self.lost:
            self.lost -= 1
            await asyncio.sleep(60)
        assert asked.body is not None
        return self._written(msgspec.json.decode(asked.body))

    def _written(self, body: dict[str, Any]) -> Reply:
        was = self.lease or {"metadata": {"resourceVersion": "0"}, "spec": {}}
        version = was["metadata"]["resourceVersion"]
        if body["metadata"].get("resourceVersion", "0") != version:
            return Reply(409, b"")
        meta = {"name": "trimtab", "namespace": "ns", "resourceVersion": str(int(version) + 1)}
        self.lease = {"metadata": meta, "spec": was["spec"] | body["spec"]}
        return Reply(200, encoded(self.lease))

    def candidate(self) -> ShardLeadership:
        virtual = asyncio.get_running_loop()
        assert isinstance(virtual, loop.VirtualLoop)
        times: dict[str, Any] = {"duration_s": DURATION_S, "renew_deadline_s": DEADLINE_S, "retry_s": RETRY_S}
        access, clock = Inside(self.answer).access(), VirtualClock(virtual, 1_700_000_000.0)
        return ShardLeadership(access, "ns", "trimtab", "a", shard=ALONE, clock=clock, **times)


async def led_share(leadership: ShardLeadership, seconds: int) -> float:
    """Of the next seconds."""
    led = 0
    for _ in range(10 * seconds):
        await asyncio.sleep(0.1)
        led += leadership.may_write()
    return led / (10 * seconds)


@pytest.mark.parametrize("takes_s", [0.2, 1.2, 1.3, 2.0, 3.0, 4.0, 4.5, 4.9])
def test_who_is_answered_slowly_begins_to_lead_and_goes_on(takes_s: float) -> None:
    async def run() -> None:
        server = SlowServer()
        server.takes_s = takes_s
        leadership = server.candidate()
        leading = asyncio.create_task(leadership.run())
        await asyncio.sleep(6 * takes_s)  # it looks twice, looks for itself, takes it, renews it
        assert await led_share(leadership, 300) == 1.0
        leading.cancel()
        await asyncio.wait([leading])

    loop.run(run())


@pytest.mark.parametrize("takes_s", [0.05, 1.5, 2.5])
def test_one_renewal_that_hangs_costs_nothing(takes_s: float) -> None:
    async def run() -> None:
        server = SlowServer()
        leadership = server.candidate()
        leading = asyncio.create_task(leadership.run())
        await asyncio.sleep(20)
        server.takes_s, server.lost = takes_s, 1
        assert await led_share(leadership, 60) == 1.0
        assert server.lost == 0
        leading.cancel()
        await asyncio.wait([leading])

    loop.run(run())
