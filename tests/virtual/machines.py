"""The machines of a cluster, one operator on each: started, stopped, killed, standing still; their clocks and disks."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from collections.abc import Callable, Sequence
from contextvars import Context, ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.virtual.apiserver import ApiServer
from tests.virtual.clock import VirtualClock
from tests.virtual.loop import VirtualLoop
from tests.virtual.metrics import FakePrometheus
from tests.virtual.transport import Link
from tests.virtual.weather import Weather
from trimtab.live.object_tick import ObjectTick
from trimtab.live.operator import Operator
from trimtab.live.settings import OperatorSettings
from trimtab.live.tuning.nightly import Tuner
from trimtab.wire.access import Access

OWN_NAMESPACE = "trimtab-system"
QUIET_LEASE_S = (120.0, 80.0, 30.0)  # of an operator that is alone: renewing would be most of what happens
_process: ContextVar[Process | None] = ContextVar("process", default=None)


@dataclass
class Process:
    """One operator and the machine it runs on."""

    who: str
    clock: VirtualClock
    settings: OperatorSettings
    operator: Operator | None = None
    stop: asyncio.Event | None = None
    tasks: list[asyncio.Task[Any]] = field(default_factory=list)
    died_of: BaseException | None = None  # what ended it by itself
    still: bool = False
    awaits_left: int = 0  # 0: nobody counts
    back_after_s: float | None = None
    look_again: int = 1000  # tasks: until then those that are done stay in the list

    @property
    def runs(self) -> bool:
        """It was started, and neither told to end nor ended by itself."""
        return self.stop is not None and not self.stop.is_set() and self.died_of is None

    def forget_done(self) -> None:
        self.tasks = [task for task in self.tasks if not task.done()]
        self.look_again = 1000 + 2 * len(self.tasks)


class Machines:
    """Of a cluster, which has the rest."""

    loop: VirtualLoop
    server: ApiServer
    weather: Weather
    prometheus: FakePrometheus | None
    processes: dict[str, Process]
    homes: dict[str, str]
    start: float
    on_tick: list[Callable[[Sequence[ObjectTick]], None]]
    tuner: Tuner | None
    _operators: int
    _settings: dict[str, Any]
    _folder: tempfile.TemporaryDirectory[str]

    def oom_kill(self, name: str) -> None:
        raise NotImplementedError

    def reinstall(self, gone: bool) -> None:
        raise NotImplementedError

    def refuse_pods(self, name: str, full: bool, quota: bool) -> None:
        raise NotImplementedError

    def start_operator(self, who: str, **settings: Any) -> None:
        """`settings` beside those of the cluster, of one that is new; one that runs is not started again."""
        process = self.processes.get(who)
        if process is not None and process.runs and who not in self.weather.dead:
            return
        self.weather.dead.discard(who)
        if process is None:
            journal = str(Path(self._folder.name, f"{who}.db"))
            lease = {"lease_s": QUIET_LEASE_S} if self._operators == 1 else {}
            home = {"lease_namespace": self.homes[who]} if who in self.homes else {}
            given: dict[str, Any] = {"journal": journal, "identity": who} | lease | home | self._settings | settings
            process = Process(who, VirtualClock(self.loop, self.start), OperatorSettings(**given))
            self.processes[who] = process
        process.operator = Operator(self._access(who), self._prometheus_access(who), process.settings, process.clock)
        process.operator.ticker.tuning.tuner = self.tuner
        process.operator.telemetry.watchers += self.on_tick
        process.stop = asyncio.Event()
        token = _process.set(process)
        task = self.loop.create_task(process.operator.run(process.stop))
        _process.reset(token)
        task.add_done_callback(lambda done: self._ended(process, done))

    def _ended(self, process: Process, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            process.died_of = task.exception()

    def stop_operator(self, who: str) -> None:
        """As SIGTERM does: it finishes and gives the lease back."""
        stop = self.processes[who].stop
        assert stop is not None
        stop.set()

    def kill(self, who: str, back_after_s: float | None = None) -> None:
        """As SIGKILL does: no request leaves any more, nothing is finished."""
        self.weather.dead.add(who)
        Context().run(self._end_process, who, back_after_s)  # not as a part of what is killed

    def _end_process(self, who: str, back_after_s: float | None) -> None:
        self.stand_still(who, False)
        self.loop.create_task(self._kill(self.processes[who]))
        if back_after_s is not None:
            self.loop.call_later(back_after_s, self.start_operator, who)

    def kill_after(self, who: str, awaits: int, back_after_s: float | None) -> None:
        self.processes[who].awaits_left = awaits
        self.processes[who].back_after_s = back_after_s
        self._hold_turns()

    def stand_still(self, who: str, still: bool) -> None:
        self.processes[who].still = still
        self._hold_turns()
        self.loop.release()

    def _hold_turns(self) -> None:
        watched = any(each.still or each.awaits_left for each in self.processes.values())
        self.loop.holds = self._holds if watched else None

    def _holds(self, context: Context) -> bool:
        """Whether the turn of a process has to wait; each is counted where one is to be its last."""
        process = context.get(_process)
        if process is None:
            return False
        if process.awaits_left:
            process.awaits_left -= 1
            if process.awaits_left == 0:
                self.kill(process.who, process.back_after_s)
        return process.still

    async def _kill(self, process: Process) -> None:
        tasks = [task for task in process.tasks if not task.done()]
        process.tasks.clear()
        while tasks := [task for task in tasks if not task.done()]:
            for task in tasks:
                task.cancel()
            await asyncio.sleep(0)
        if process.operator is not None and process.operator.journal is not None:
            process.operator.journal.close()

    def step_clock(self, who: str, by_s: float) -> None:
        self.processes[who].clock.stepped_s += by_s

    def journal_db(self, who: str) -> sqlite3.Connection:
        """The connection that an operator writes its journal by."""
        operator = self.processes[who].operator
        assert operator is not None and operator.journal is not None and operator.journal._journal is not None
        return operator.journal._journal.db

    def fill_disk(self, who: str, full: bool) -> None:
        db = self.journal_db(who)
        pages = db.execute("PRAGMA page_count").fetchone()[0] if full else 2**30
        db.execute(f"PRAGMA max_page_count = {pages}").fetchall()

    def damage_journal(self, who: str, back_after_s: float) -> None:
        path = Path(self.processes[who].settings.journal)
        self.kill(who, back_after_s)

        def damage() -> None:
            if path.exists():
                path.write_bytes(path.read_bytes()[:2000] + b"not a database" * 500)

        self.loop.call_later(back_after_s / 2, damage)

    def _access(self, who: str) -> Access:
        link = Link(self.server, who, self.weather, self)
        return Access("http://cluster", namespace=OWN_NAMESPACE, transport=link.transport)

    def _prometheus_access(self, who: str) -> Access | None:
        if self.prometheus is None:
            return None
        return Access("http://prometheus", transport=Link(self.prometheus, who, self.weather, self).transport)


def own(task: asyncio.Task[Any], context: Context | None) -> None:
    """Every process knows its tasks."""
    process = _process.get() if context is None else context.get(_process)
    if process is not None:
        process.tasks.append(task)
        if len(process.tasks) >= process.look_again:
            process.forget_done()
