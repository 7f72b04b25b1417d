"""latency_levels: learns beside the ticks how much one pod of each object serves while its latency promise holds.

Every tick notes usage per ready pod and latency, where the pods are steady. The past is read back from Prometheus at
first sight. Once an hour the level is learned anew; what is in force stands in the object's status.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from datetime import date
from hashlib import blake2b
from math import isfinite

import msgspec
import numpy as np
from msgspec.structs import replace

from trimtab.core.demand import demand_of
from trimtab.core.demand.log import MINUTE_S, DemandLog
from trimtab.core.explain import missing_text
from trimtab.core.latency import LatencyLevel, MinutePairs, learn, next_level, paired
from trimtab.core.latency_level import at_level, usage_unit
from trimtab.core.model import Missing, Observation, Pod, Samples, TotalSample
from trimtab.errors import TrimtabError
from trimtab.kinds.capacity_queries import capacity_queries
from trimtab.live.look.memory import LevelMemory, ObjectMemory
from trimtab.live.look.subject import Subject
from trimtab.live.measure.background import Background, Lane, Lanes
from trimtab.live.measure.tenancy import QueryTenancy
from trimtab.live.tuning.night_time import night_of
from trimtab.policy import LatencyPromise
from trimtab.series import Frame, Series
from trimtab.wire.access import Access
from trimtab.wire.prometheus import ONE_SERIES_BYTES, Prometheus

LEARN_S, DAYS, TIMEOUT_S = 3600.0, 7, 60.0
STEADY_S = 180.0  # after pods came or went, usage and latency say little about each other
log = logging.getLogger(__name__)


class _Known:
    """What is known of one object."""

    def __init__(self, promise: LatencyPromise) -> None:
        self.promise = promise
        self.ready, self.steady_since = -1, float("inf")
        self.learned_at = float("-inf")
        self.found: LatencyLevel | None = None
        self.trouble = ""
        self.read = False


class LatencyLevels(Background):
    """Call `settle` when an object is looked at, `note` with what was measured, `follow` after each tick."""

    def __init__(
        self,
        queries: Access | None = None,
        tenancy: QueryTenancy = QueryTenancy(),  # noqa: B008  (frozen)
        lane: Lane | None = None,
    ) -> None:
        super().__init__()
        self.queries, self.tenancy, self.lane = queries, tenancy, lane or Lanes.new().read_back
        self.minutes = DemandLog()  # of each object: its usage per ready pod, and its latency
        self._known: dict[str, _Known] = {}

    def settle(
        self, subject: Subject, memory: ObjectMemory, pods: Sequence[Pod], at: float
    ) -> tuple[Subject, ObjectMemory]:
        """The subject by the level in force, and its memory."""
        objective = subject.policy.objective
        if objective is None or objective.latency is None:
            self._forget(subject.uid)
            return subject, replace(memory, latency=None) if memory.latency else memory
        known, about = self._known.get(subject.uid), _about(objective.latency)
        if known is None or known.promise != objective.latency:
            self._forget(subject.uid)
            known = self._known[subject.uid] = _Known(objective.latency)
        in_force = memory.latency or LevelMemory()
        level = in_force.level or 0.0
        if in_force.about != about or not (isfinite(level) and level >= 0.0):
            in_force = LevelMemory(about=about)
        if known.found is not None:
            night = night_of(at, subject.policy.tuning.timezone)
            in_force = _learned(in_force, known.found, night, usage_unit(subject.policy))
        text = known.trouble or in_force.text or "nothing was learned yet"
        policy = at_level(subject.policy, in_force.level, text, pods)
        return subject._replace(policy=policy), replace(memory, latency=in_force)

    def note(self, subject: Subject, seen: Observation, latency: Samples | Missing) -> None:
        """Remember this minute, unless pods come, go or are not ready: start-ups, deploys, crashes teach nothing."""
        known = self._known.get(subject.uid)
        if known is None:
            return
        known.trouble = ""
        if isinstance(latency, Missing):
            known.trouble = f"the latency query has no answer: {missing_text(latency)}"
            return
        living = [pod for pod in seen.pods if not pod.deleting]
        ready = sum(pod.ready is True for pod in living)
        if ready != known.ready:
            known.ready, known.steady_since = ready, seen.at
        demand = demand_of(seen.samples[0], seen.pods) if seen.samples else None
        steady = ready == len(living) and ready > 0 and seen.at - known.steady_since >= STEADY_S
        if steady and demand is not None and isinstance(latency, TotalSample):
            self.minutes.note(seen.at, _usage(subject.uid), demand / ready)
            self.minutes.note(seen.at, _latency(subject.uid), latency.value)

    def follow(self, subjects: Sequence[Subject], at: float) -> None:
        """After each tick: learn what is due, unless the last round is still at it."""
        due = [s for s in subjects if s.uid in self._known and at - self._known[s.uid].learned_at >= LEARN_S]
        if due and self.idle:
            self.start(self._run(due, at))

    def take_over(self) -> None:
        """What was seen meanwhile is read back."""
        self.close()
        self._known.clear()

    def forget(self, uids: set[str]) -> None:
        for uid in self._known.keys() - uids:
            self._forget(uid)

    def _forget(self, uid: str) -> None:
        if self._known.pop(uid, None) is not None:
            self.minutes.forget((_usage(uid), _latency(uid)))

    async def _run(self, due: Sequence[Subject], at: float) -> None:
        unread = [subject for subject in due if not self._known[subject.uid].read]
        if self.queries is not None and unread:
            async with Prometheus(self.queries, timeout_s=TIMEOUT_S) as prometheus:
                await self.lane.for_each_namespace(
                    unread, lambda subject: subject.name.namespace, lambda own: self._read_back(prometheus, own, at)
                )
        for subject in due:
            known = self._known.get(subject.uid)
            if known is None:
                continue
            known.learned_at = at
            try:
                known.found = await asyncio.to_thread(learn, self._minutes_of(subject.uid, at), known.promise.below_s)
            except Exception:
                log.exception("%s: what one pod serves cannot be learned: a bug of trimtab", subject.name)

    async def _read_back(self, prometheus: Prometheus, subjects: Sequence[Subject], at: float) -> None:
        for subject in subjects:
            known = self._known.get(subject.uid)
            if known is None:
                continue
            try:
                minutes = await self._past(prometheus, subject, known.promise, at)
            except (TrimtabError, msgspec.MsgspecError, ValueError) as error:
                log.warning("%s: latency before now cannot be read back: %s", subject.name, error)
                continue
            known.read = True
            for key, values in ((_usage, minutes.usage), (_latency, minutes.latency)):
                whole = np.isfinite(minutes.usage) & np.isfinite(minutes.latency)
                self.minutes.restore(key(subject.uid), Series(minutes.times[whole] + MINUTE_S, values[whole]), MINUTE_S)

    async def _past(self, prometheus: Prometheus, subject: Subject, promise: LatencyPromise, at: float) -> MinutePairs:
        target, namespace = subject.target, subject.name.namespace
        asked = capacity_queries(subject.policy, namespace, target.kind, target.name)
        extra, end = self.tenancy.params(namespace), at - at % MINUTE_S
        frames = []
        for query in (asked.usage, promise.metric.query, asked.pods):
            span = (end - DAYS * 86400.0, end, MINUTE_S)
            series = await prometheus.query_range(query, *span, extra, ONE_SERIES_BYTES)
            if len(series) != 1:
                raise ValueError(f"{len(series)} series instead of one: {query}")
            points = msgspec.json.decode(series[0].values, type=list[tuple[float, str]])
            values = np.full(DAYS * 1440 + 1, np.nan)
            for when, text in points:
                values[round((when - span[0]) / MINUTE_S)] = float(text)
            frames.append(Frame(("",), span[0], MINUTE_S, values[np.newaxis]))
        return paired(*frames)

    def _minutes_of(self, uid: str, at: float) -> MinutePairs:
        frame = self.minutes.frame((_usage(uid), _latency(uid)), at, MINUTE_S)
        return MinutePairs(frame.times, frame.values[0], frame.values[1])


def _learned(in_force: LevelMemory, found: LatencyLevel, night: date | None, unit: str) -> LevelMemory:
    new_night = night is not None and night.isoformat() != in_force.raised
    level = next_level(in_force.level, found, new_night)
    raised = night.isoformat() if night is not None and new_night else in_force.raised
    return replace(in_force, level=level, text=found.text(unit), raised=raised)


def _about(promise: LatencyPromise) -> str:
    return blake2b(msgspec.msgpack.encode((promise.metric.query, promise.below_s)), digest_size=8).hexdigest()


def _usage(uid: str) -> str:
    return f"{uid}/usage per pod"


def _latency(uid: str) -> str:
    return f"{uid}/latency"
