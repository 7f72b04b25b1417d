"""Faults are data: what goes wrong, from when to when (seconds from the cluster's start), for whom.

`Weather` brings them about: requests ask it on their way, and it touches watches, clocks and disks when their time
comes. A new fault is a dataclass here and a few lines in `Weather`.
"""

from __future__ import annotations

import asyncio
import enum
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from tests.virtual.apiserver import ApiServer, Call, Reply, status_body
from trimtab.sim.cluster_spec import FaultKind
from trimtab.wire.transport import NotConnected

FOREVER = float("inf")


@dataclass(frozen=True)
class Fault:
    start_s: float
    end_s: float = FOREVER

    def holds(self, at_s: float) -> bool:
        return self.start_s <= at_s < self.end_s


@dataclass(frozen=True)
class OnRequests(Fault):
    """Which requests it befalls: whose, to which collection ("prometheus": that server), by which methods, and what
    their path or their body holds."""

    who: str = ""
    plural: str = ""
    methods: tuple[str, ...] = ("GET", "POST", "PATCH", "DELETE")
    share: float = 1.0
    about: str = ""

    def befalls(self, call: Call, plural: str) -> bool:
        there = self.about in call.path or self.about.encode() in (call.body or b"")
        return there and self.who in ("", call.who) and self.plural in ("", plural) and call.method in self.methods


@dataclass(frozen=True)
class Slow(OnRequests):
    """Answers take this long."""

    seconds: float = 1.0


@dataclass(frozen=True)
class Refusing(OnRequests):
    """Nothing is done, a status says so."""

    status: int = 500
    retry_after_s: float | None = None


@dataclass(frozen=True)
class Unreachable(OnRequests):
    """No connection: nothing leaves."""


@dataclass(frozen=True)
class Unanswered(OnRequests):
    """It is done, but the answer is lost."""


@dataclass(frozen=True)
class CutWatches(Fault):
    """At the start the streams of a feed end, of all of them without a name."""

    plural: str = ""
    who: str = ""


@dataclass(frozen=True)
class StalledWatches(Fault):
    """Streams stay open and say nothing; what happened meanwhile is told afterwards."""

    plural: str = ""
    who: str = ""


@dataclass(frozen=True)
class LostEvents(Fault):
    plural: str = ""
    share: float = 1.0


@dataclass(frozen=True)
class RepeatedEvents(Fault):
    plural: str = ""
    share: float = 1.0


@dataclass(frozen=True)
class Compacted(Fault):
    """At the start the history is forgotten: a watch that comes back is told 410."""


@dataclass(frozen=True)
class Killed(Fault):
    """From the start on, at its n-th request (of these methods), as by SIGKILL: before it is done, or before its answer
    comes. It may come back."""

    who: str = "operator-0"
    requests: int = 0  # 0: at once
    methods: tuple[str, ...] = ("GET", "POST", "PATCH", "DELETE")
    done: bool = False  # the last request is carried out
    back_after_s: float | None = None


@dataclass(frozen=True)
class ClockStepped(Fault):
    """At the start the wall clock of an operator's machine is set."""

    by_s: float = 0.0
    who: str = "operator-0"


@dataclass(frozen=True)
class DiskFull(Fault):
    """The journal's file cannot grow."""

    who: str = "operator-0"


@dataclass(frozen=True)
class BadMetrics(Fault):
    """What is measured of one workload: missing, stale, NaN, negative, zero or late, as in the simulator."""

    workload: str = ""
    kind: FaultKind = FaultKind.MISSING
    amount: float = 0.0


class Spoiling(enum.StrEnum):
    HUGE = "huge"
    FUTURE = "from the future"
    PARTIAL = "of half the pods"


@dataclass(frozen=True)
class SpoiledMetrics(Fault):
    """What metrics.k8s.io says of one workload, beyond what the simulator knows."""

    workload: str = ""
    kind: Spoiling = Spoiling.FUTURE


class Processes(Protocol):
    """What a fault may do to operators."""

    def kill(self, who: str, back_after_s: float | None) -> None: ...

    def step_clock(self, who: str, by_s: float) -> None: ...

    def fill_disk(self, who: str, full: bool) -> None: ...


class Weather:
    """The faults of one cluster; `seconds` is the time since its start."""

    def __init__(self, seconds: Callable[[], float], seed: int) -> None:
        self.seconds, self.draw = seconds, random.Random(seed)
        self.faults: list[Fault] = []
        self.dead: set[str] = set()  # whose requests do not leave any more
        self._countdown: dict[int, int] = {}

    def add(self, faults: Iterable[Fault], server: ApiServer, processes: Processes) -> None:
        loop, now_s = asyncio.get_running_loop(), self.seconds()
        for fault in faults:
            self.faults.append(fault)
            loop.call_later(max(0.0, fault.start_s - now_s), self._begin, fault, server, processes)
            if isinstance(fault, StalledWatches | DiskFull) and fault.end_s != FOREVER:
                loop.call_later(max(0.0, fault.end_s - now_s), self._end, fault, server, processes)
        server.watching.spoil = self._spoil if self._has(LostEvents, RepeatedEvents) else None
        server.watching.stalls = self._stalls

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
        elif isinstance(fault, Killed):
            if fault.requests == 0:
                processes.kill(fault.who, fault.back_after_s)
            self._countdown[id(fault)] = fault.requests

    def _end(self, fault: Fault, server: ApiServer, processes: Processes) -> None:
        if isinstance(fault, StalledWatches):
            server.watching.stall_again()
        elif isinstance(fault, DiskFull):
            processes.fill_disk(fault.who, False)

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
