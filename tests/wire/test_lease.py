"""Leadership: who may write, and when one must stop; a Lease kept by a few lines that can be told to hang."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
import pytest

from tests.virtual import loop
from tests.virtual.apiserver import Reply
from tests.virtual.clock import HandClock, VirtualClock
from tests.virtual.fields import encoded
from tests.wire.inside import Inside
from trimtab.errors import InvalidInput
from trimtab.wire.clock import SystemClock
from trimtab.wire.http import Outgoing
from trimtab.wire.lease import Leadership, micro_time


class LeaseServer:
    """One Lease with optimistic locking; `deaf` holders get no answer."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.deaf: set[str] = set()
        self.writes: list[tuple[str, int]] = []

    async def answer(self, asked: Outgoing) -> Reply:
        if asked.options["headers"]["X-Who"] in self.deaf:
            await asyncio.sleep(30)
        if asked.method == "GET":
            return Reply(200, encoded(self.lease)) if self.lease else Reply(404, b"")
        assert asked.body is not None
        return self._written(asked.method, msgspec.json.decode(asked.body))

    def _written(self, method: str, body: dict[str, Any]) -> Reply:
        if method == "PATCH":
            assert self.lease
            if body["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
                return Reply(409, b"")
            body["spec"] = {**self.lease["spec"], **body["spec"]}
        elif self.lease:
            return Reply(409, b"")
        version = str(int(self.lease["metadata"]["resourceVersion"]) + 1 if self.lease else 1)
        self.lease = {"metadata": {"resourceVersion": version}, "spec": body["spec"]}
        self.writes.append((body["spec"]["holderIdentity"], body["spec"]["leaseTransitions"]))
        return Reply(200, encoded(self.lease))

    def candidate(self, who: str, **settings: Any) -> Leadership:
        quick: dict[str, Any] = {"duration_s": 2.0, "renew_deadline_s": 1.0, "retry_s": 0.2}
        virtual = asyncio.get_running_loop()
        assert isinstance(virtual, loop.VirtualLoop)
        quick |= {"clock": VirtualClock(virtual, 1_700_000_000.0)} | settings
        access = Inside(self.answer).access(headers={"X-Who": who})
        return Leadership(access, "ns", "trimtab", who, **quick)


def competing(run: Callable[[LeaseServer], Coroutine[Any, Any, None]]) -> None:
    loop.run(run(LeaseServer()))


async def until(condition: Callable[[], bool]) -> float:
    """The seconds until it held, by the virtual clock."""
    started = loop.now()
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.01)
    return loop.now() - started


def test_micro_time_keeps_its_zeros() -> None:
    assert micro_time(1_700_000_000.0) == "2023-11-14T22:13:20.000000Z"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", micro_time(time.time()))


def test_the_deadline_must_be_shorter_than_the_lease() -> None:
    async def run(server: LeaseServer) -> None:
        with pytest.raises(InvalidInput, match="2/10/15"):
            server.candidate("a", renew_deadline_s=2.0)

    competing(run)


def test_one_leads_the_other_waits_and_takes_over_at_once_after_a_release() -> None:
    async def run(server: LeaseServer) -> None:
        a, b = server.candidate("a"), server.candidate("b")
        first = asyncio.create_task(a.run())
        await until(a.may_write)
        second = asyncio.create_task(b.run())
        await until(lambda: b.holder == "a")
        assert (a.may_write(), b.may_write()) == (True, False)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        assert not a.may_write()
        assert await until(b.may_write) < 1.0  # well before the two seconds of the lease
        assert b.term == 1
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        assert server.lease is not None
        assert server.lease["spec"]["holderIdentity"] == ""

    competing(run)


@pytest.mark.parametrize(("holder", "left"), [("a", ""), ("b", "b")])
def test_it_is_released_though_its_last_renewal_was_written_unseen(holder: str, left: str) -> None:
    async def run(server: LeaseServer) -> None:
        a = server.candidate("a")
        leading = asyncio.create_task(a.run())
        await until(a.may_write)
        assert server.lease
        server.lease = {
            "metadata": {"resourceVersion": "99"},
            "spec": {**server.lease["spec"], "holderIdentity": holder},
        }
        leading.cancel()
        await asyncio.wait([leading])
        assert server.lease["spec"]["holderIdentity"] == left, "another's is left alone"

    competing(run)


def test_a_leader_that_is_cut_off_stops_before_another_can_start() -> None:
    async def run(server: LeaseServer) -> None:
        heard: list[bool] = []
        a, b = server.candidate("a"), server.candidate("b")
        a.on_change(heard.append)
        tasks = [asyncio.create_task(a.run())]
        await until(a.may_write)
        tasks.append(asyncio.create_task(b.run()))
        await until(lambda: b.holder == "a")
        server.deaf.add("a")
        both: list[bool] = []

        def stopped() -> bool:
            both.append(a.may_write() and b.may_write())
            return not a.may_write()

        assert await until(stopped) <= 1.1
        assert not b.may_write()
        assert await until(b.may_write) <= 2.5
        assert not any(both)
        await until(lambda: heard == [True, False])
        assert [writer for writer, _ in server.writes[-1:]] == ["b"]
        for task in tasks:
            task.cancel()

    competing(run)


def test_an_old_leader_that_comes_back_does_not_write_over_the_new_one() -> None:
    async def run(server: LeaseServer) -> None:
        a, b = server.candidate("a"), server.candidate("b")
        await a._try()  # a leads, then stops for longer than its lease
        await b._try()
        await asyncio.sleep(2.1)
        await b._try()
        assert (a.may_write(), b.may_write()) == (False, True)
        await a._try()
        assert not a.may_write()
        assert server.writes == [("a", 0), ("b", 1)]

    competing(run)


def test_a_machine_that_slept_no_longer_leads() -> None:
    async def run(server: LeaseServer) -> None:
        clock = HandClock()
        a = server.candidate("a", clock=clock)
        await a._try()
        assert a.seconds_left() == pytest.approx(1.0)
        clock.wall = 4e9  # a step of the wall clock moves nothing
        assert a.may_write()
        clock.boot += 1.0  # the processes of a sleeping machine stand still, this clock does not
        assert not a.may_write() and a.seconds_left() <= 0
        await a.kube.close()

    competing(run)


def test_others_wait_by_the_clock_since_boot() -> None:
    async def run(server: LeaseServer) -> None:
        clock = HandClock()
        a, b = server.candidate("a", clock=clock), server.candidate("b", clock=clock)
        await a._try()
        await b._try()
        assert not b.may_write()
        clock.boot += 2.1
        await b._try()
        assert (a.may_write(), b.may_write()) == (False, True)
        await a.kube.close()
        await b.kube.close()

    competing(run)


def test_what_breaks_a_renewal_costs_the_lease_and_nobody_the_process(caplog: pytest.LogCaptureFixture) -> None:
    """A feed, an advisor and the ticks go on; the fence has closed by itself, and opens when a renewal succeeds."""

    class Breaking(LeaseServer):
        broken = False

        async def answer(self, asked: Outgoing) -> Reply:
            if self.broken:
                raise ZeroDivisionError("an answer of no kind")
            return await super().answer(asked)

    async def run(server: Breaking) -> None:
        a = server.candidate("a")
        running = asyncio.create_task(a.run())
        await until(a.may_write)
        server.broken = True
        assert await until(lambda: not a.may_write()) <= 1.01
        server.broken = False
        await until(a.may_write)
        assert not running.done() and "a bug of trimtab" in caplog.text
        running.cancel()
        await asyncio.wait([running])

    loop.run(run(Breaking()))


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="this platform does not count while it sleeps")
def test_the_clock_counts_suspended_time() -> None:
    before = time.clock_gettime(time.CLOCK_BOOTTIME)
    assert before <= SystemClock().since_boot() <= time.clock_gettime(time.CLOCK_BOOTTIME)
