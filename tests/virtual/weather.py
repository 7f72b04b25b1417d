"""Brings faults about: requests ask it on their way, and it touches watches, clocks, disks and objects in time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable
from typing import Protocol

from tests.virtual.administrator import Administrator
from tests.virtual.apiserver import ApiServer, Call, Reply, status_body
from tests.virtual.faults import (
    FOREVER,
    Away,
    BadMetrics,
    ClockStepped,
    Compacted,
    CutWatches,
    DamagedJournal,
    DiskFull,
    Fault,
    Flood,
    ForeignPods,
    ForgedLabels,
    Garbled,
    Killed,
    LostEvents,
    NodesFull,
    OnRequests,
    OomKilled,
    QuotaUsedUp,
    Refusing,
    Reinstalled,
    RepeatedEvents,
    Slow,
    SpoiledMetrics,
    Spoiling,
    StalledWatches,
    Suspended,
    Unanswered,
    Unreachable,
)
from trimtab.wire.http import NotConnected

PAGE = Reply(200, b"<html><body>Please sign in</body></html>")


class Processes(Protocol):
    """What a fault may do to operators."""

    def kill(self, who: str, back_after_s: float | None) -> None: ...

    def step_clock(self, who: str, by_s: float) -> None: ...

    def fill_disk(self, who: str, full: bool) -> None: ...

    def stand_still(self, who: str, still: bool) -> None: ...

    def kill_after(self, who: str, awaits: int, back_after_s: float | None) -> None: ...

    def damage_journal(self, who: str, back_after_s: float) -> None: ...

    def oom_kill(self, name: str) -> None: ...

    def reinstall(self, gone: bool) -> None: ...

    def refuse_pods(self, name: str, full: bool, quota: bool) -> None: ...


class Weather:
    """The faults of one cluster; `seconds` is the time since its start."""

    def __init__(self, seconds: Callable[[], float], seed: int) -> None:
        self.seconds, self.draw = seconds, random.Random(seed)
        self.faults: list[Fault] = []
        self.dead: set[str] = set()  # whose requests do not leave any more
        self.stands_still = False  # somebody may
        self._countdown: dict[int, int] = {}

    @property
    def forges_labels(self) -> bool:
        return any(isinstance(fault, ForgedLabels) and fault.holds(self.seconds()) for fault in self.faults)

    def add(self, faults: Iterable[Fault], server: ApiServer, processes: Processes) -> None:
        loop, now_s = asyncio.get_running_loop(), self.seconds()
        for fault in faults:
            self.faults.append(fault)
            loop.call_later(max(0.0, fault.start_s - now_s), self._begin, fault, server, processes)
            if fault.end_s != FOREVER:
                loop.call_later(max(0.0, fault.end_s - now_s), self._end, fault, server, processes)
        server.watching.spoil = self._spoil if self._has(LostEvents, RepeatedEvents) else None
        server.watching.stalls = self._stalls
        self.stands_still = self._has(Suspended)
        self._administrator = Administrator(server)

    def _begin(self, fault: Fault, server: ApiServer, processes: Processes) -> None:
        if isinstance(fault, CutWatches):
            server.watching.cut(fault.plural, fault.who)
        elif isinstance(fault, StalledWatches):
            server.watching.stall_again()
        elif isinstance(fault, Compacted):
            server.store.compact()
        elif isinstance(fault, ClockStepped):
            processes.step_clock(fault.who, fault.by_s)
        elif isinstance(fault, DiskFull):
            processes.fill_disk(fault.who, True)
        elif isinstance(fault, DamagedJournal):
            processes.damage_journal(fault.who, fault.end_s - fault.start_s)
        elif isinstance(fault, Suspended):
            processes.stand_still(fault.who, True)
        elif isinstance(fault, OomKilled):
            processes.oom_kill(fault.workload)
        elif isinstance(fault, Reinstalled):
            processes.reinstall(True)
        elif isinstance(fault, NodesFull | QuotaUsedUp):
            processes.refuse_pods(fault.workload, True, isinstance(fault, QuotaUsedUp))
        elif isinstance(fault, Killed):
            self._begin_kill(fault, processes)
        elif isinstance(fault, Away | Flood | ForeignPods):
            self._administrator.begin(fault)

    def _begin_kill(self, fault: Killed, processes: Processes) -> None:
        if fault.awaits:
            processes.kill_after(fault.who, fault.awaits, fault.back_after_s)
        elif fault.requests == 0:
            processes.kill(fault.who, fault.back_after_s)
        self._countdown[id(fault)] = fault.requests

    def _end(self, fault: Fault, server: ApiServer, processes: Processes) -> None:
        if isinstance(fault, StalledWatches):
            server.watching.stall_again()
        elif isinstance(fault, DiskFull):
            processes.fill_disk(fault.who, False)
        elif isinstance(fault, Suspended):
            processes.stand_still(fault.who, False)
        elif isinstance(fault, Reinstalled):
            processes.reinstall(False)
        elif isinstance(fault, NodesFull | QuotaUsedUp):
            processes.refuse_pods(fault.workload, False, isinstance(fault, QuotaUsedUp))
        elif isinstance(fault, Away | Flood | ForeignPods):
            self._administrator.end(fault)

    async def before(self, call: Call, plural: str, processes: Processes) -> Reply | None:
        """What befalls a request on its way: a pause, an error, an answer that is not the server's."""
        at_s = self.seconds()
        for fault in self.faults:
            if not fault.holds(at_s):
                continue
            if isinstance(fault, Killed) and not fault.done:
                await self._maybe_die(fault, call, processes)
            if not isinstance(fault, OnRequests) or not fault.befalls(call, plural) or not self._drawn(fault.share):
                continue
            if isinstance(fault, Slow):
                await asyncio.sleep(fault.seconds)
            elif isinstance(fault, Unreachable):
                raise NotConnected("cannot connect")
            elif isinstance(fault, Refusing):
                wait = {} if fault.retry_after_s is None else {"Retry-After": f"{fault.retry_after_s:g}"}
                return Reply(fault.status, status_body(fault.status, "", "a fault of the test"), wait)
            elif isinstance(fault, Garbled):
                return PAGE
        return None

    async def after(self, call: Call, plural: str, processes: Processes) -> None:
        """What befalls its answer."""
        at_s = self.seconds()
        for fault in self.faults:
            if not fault.holds(at_s):
                continue
            if isinstance(fault, Killed) and fault.done:
                await self._maybe_die(fault, call, processes)
            if isinstance(fault, Unanswered) and fault.befalls(call, plural) and self._drawn(fault.share):
                raise ConnectionError("connection reset")

    async def _maybe_die(self, fault: Killed, call: Call, processes: Processes) -> None:
        left = self._countdown.get(id(fault), 0)
        if call.who != fault.who or call.method not in fault.methods or left <= 0:
            return
        self._countdown[id(fault)] = left - 1
        if left == 1:
            processes.kill(fault.who, fault.back_after_s)
            await asyncio.get_running_loop().create_future()  # nobody is there any more

    def _spoil(self, who: str, plural: str, line: bytes) -> list[bytes]:
        for fault in self.faults:
            if not isinstance(fault, LostEvents | RepeatedEvents) or not fault.holds(self.seconds()):
                continue
            if fault.plural in ("", plural) and self._drawn(fault.share):
                return [] if isinstance(fault, LostEvents) else [line, line]
        return [line]

    def _stalls(self, who: str, plural: str) -> bool:
        return any(
            isinstance(fault, StalledWatches)
            and fault.holds(self.seconds())
            and fault.plural in ("", plural)
            and fault.who in ("", who)
            for fault in self.faults
        )

    def metrics(self, workload: str) -> BadMetrics | None:
        at_s = self.seconds()
        found = (fault for fault in self.faults if isinstance(fault, BadMetrics) and fault.holds(at_s))
        return next((fault for fault in found if fault.workload in ("", workload)), None)

    def spoiled(self, workload: str) -> Spoiling | None:
        at_s = self.seconds()
        found = (fault for fault in self.faults if isinstance(fault, SpoiledMetrics) and fault.holds(at_s))
        return next((fault.kind for fault in found if fault.workload in ("", workload)), None)

    def _drawn(self, share: float) -> bool:
        return share >= 1.0 or self.draw.random() < share

    def _has(self, *kinds: type[Fault]) -> bool:
        return any(isinstance(fault, kinds) for fault in self.faults)
