"""forecasts: the core's forecasts, fed with each tick's samples and start-ups; what takes longer is made between ticks.

The frames of a round are cut on the event loop, a batch at a time, and given to a worker thread: a tick waits for none
of it, and a huge one is done in later rounds.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from trimtab.core.demand import remembers_demand
from trimtab.core.forecast.demand_forecasts import BatchAnswers, DemandForecasts, ForecastBatch, make
from trimtab.core.forecast.forecaster import unpredictable
from trimtab.core.model import Forecast, Missing, Observation, Pod, Startup
from trimtab.core.startup import StartupLog, after_others, as_of, not_looked_for_a_while, startup_of, watch
from trimtab.live.look.subject import Subject
from trimtab.live.measure.background import Background
from trimtab.live.measure.past_demand import PastDemand
from trimtab.live.object_tick import ObjectTick

SHORT_WAIT_S = 5.0  # of all forecasts for the history of some
LONGEST_READ_S = 300.0  # after a takeover: then what is known has to do
log = logging.getLogger(__name__)


class NotedStartups(NamedTuple):
    """What is known of a workload's start-ups since these pods were looked at."""

    pods: tuple[Pod, ...] | None
    log: StartupLog
    usual: Startup | Missing


NOTHING_NOTED = NotedStartups(None, StartupLog(), startup_of(StartupLog(), 0.0))


class Forecasts(Background):
    """Feed it with each tick's samples; ask it for forecasts and start-up times."""

    def __init__(self, demand: DemandForecasts | None = None, past: PastDemand | None = None) -> None:
        super().__init__()
        self.demand, self.past = demand or DemandForecasts(), past
        self._startups: dict[str, NotedStartups] = {}  # by workload
        self._workloads: dict[str, str] = {}  # by object

    def note_pods(self, owner: str, workload: str, pods: tuple[Pod, ...]) -> None:
        """Record the start-up of each pod that is ready for the first time; `owner` is the object that asks."""
        self._workloads[owner] = workload
        known = self._startups.get(workload, NOTHING_NOTED)
        if known.pods is not pods:
            noted = watch(known.log, pods)
            self._startups[workload] = NotedStartups(pods, noted, startup_of(noted, 0.0))

    def startup(self, workload: str, at: float) -> Startup | Missing:
        return as_of(self._startups.get(workload, NOTHING_NOTED).usual, at)

    def witnessed(self, workload: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """The start-ups that were seen and how long pods waited for a node, in seconds, oldest first."""
        log = self._startups.get(workload, NOTHING_NOTED).log
        return log.witnessed, log.waits

    def take_up_startups(self, workload: str, times_s: tuple[float, ...], waits_s: tuple[float, ...]) -> None:
        """Those that another leader saw come before our own."""
        noted = self._startups.get(workload, NOTHING_NOTED)
        known = after_others(noted.log, times_s, waits_s)
        self._startups[workload] = noted._replace(log=known, usual=startup_of(known, 0.0))

    def note(self, subject: Subject, seen: Observation) -> None:
        """Remember what each signal measured. Note all objects of a tick before the first one looks: learned forecasts
        are then made for all of them at once."""
        if remembers_demand(subject.policy):
            self.demand.note(subject.uid, subject.policy, seen)

    def look(self, subject: Subject, seen: Observation, reading: bool = False) -> tuple[Forecast | Missing, ...]:
        """What is expected of each signal, after all that was noted.

        `reading`: another leader served it, and what that one knew is still being read.
        """
        if subject.policy.forecast is None:
            return ()
        return self.demand.of(subject.uid, subject.policy, seen, reading)

    def read_back(self, ticks: Sequence[ObjectTick], at: float) -> None:
        """The past of objects that are new, where somebody remembers it."""
        if self.past is not None:
            self.past.follow(ticks, at)

    def has_read(self, tick: ObjectTick) -> bool:
        """Whether Prometheus was asked for the past of this object, if there is one."""
        return self.past is None or self.past.has_looked(tick)

    def is_whole(self, tick: ObjectTick) -> bool:
        """Whether Prometheus has given back all that is known of this object."""
        return self.past is not None and self.past.remembers(tick.subject)

    def take_over(self) -> None:
        """What we know stays; what others have seen meanwhile is read back into its holes."""
        for workload, noted in self._startups.items():
            self._startups[workload] = noted._replace(pods=None, log=not_looked_for_a_while(noted.log))
        if self.past is not None:
            self.past.take_over()

    def begin_anew(self, owner: str) -> None:
        """It asks for another workload: neither the demand of the old one nor what is being made of it is its own."""
        self.demand.forget(owner)
        if self.past is not None:
            self.past.begin_anew(owner)

    def follow(self, readers: Sequence[Background] = (), whole: Callable[[], Collection[str]] = tuple) -> None:
        """After each tick: make what is due, unless the last round is still at it.

        After a takeover what `readers` are reading is waited for, so that the first forecasts of those whose history is
        `whole` then are there at the second tick.
        """
        if self.demand.is_asked and self.idle:
            self.start(self._make(readers, whole))

    def close(self) -> None:
        if self.past is not None:
            self.past.close()
        super().close()

    def forget(self, uids: set[str]) -> None:
        """All but these objects are gone, and workloads that none of them asks for; who fails for a tick stays."""
        self.demand.forget_but(uids)
        self._workloads = {owner: workload for owner, workload in self._workloads.items() if owner in uids}
        for workload in self._startups.keys() - self._workloads.values():
            del self._startups[workload]

    async def _make(self, readers: Sequence[Background], whole: Callable[[], Collection[str]]) -> None:
        for reader in readers:
            await reader.round_over(SHORT_WAIT_S)
        self.demand.history_read(whole())
        for batch in self.demand.batches():
            try:
                self.demand.put(batch, await asyncio.to_thread(make, batch))
            except Exception:
                await self._one_by_one(batch)

    async def _one_by_one(self, batch: ForecastBatch) -> None:
        """One of them cannot be made: the others are."""
        for single in batch.singles():
            try:
                answers = await asyncio.to_thread(make, single)
            except Exception as error:
                log.exception("%s: no forecast: a bug of trimtab", single.wishes[0].owner)
                answers = BatchAnswers([unpredictable(f"the model failed: {error!r}")] * len(single.wishes[0].keys))
            self.demand.put(single, answers)
