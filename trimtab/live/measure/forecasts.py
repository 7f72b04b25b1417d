"""forecasts: total demand remembered, start-up times measured, and forecasts made from them off the decision.

Demand is the sum over all pods, which does not jump when replicas change. It is kept in memory; where Prometheus is
configured the past of its own queries is read back at first sight. Start-ups are those that `core.startup` counts.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from math import isfinite

import msgspec
import numpy as np

from trimtab.core.forecast import forecast_rows
from trimtab.core.model import Forecast, Missing, Observation, Pod, PodSamples, Samples, Startup
from trimtab.core.startup import StartupLog, startup_of, watch
from trimtab.errors import TrimtabError
from trimtab.history.ring_buffer import RingBuffer
from trimtab.live.look.subject import Subject
from trimtab.live.measure.horizon import horizon_s
from trimtab.live.measure.tenancy import NotAllowed, QueryTenancy
from trimtab.policy import ForecastChoice, MetricKind, Signal
from trimtab.series import Frame
from trimtab.wire.prometheus import Prometheus

DAY_S = 86400.0
FINE_STEP_S, FINE_STEPS = 5.0, 720  # for lines: an hour
COARSE_STEP_S, COARSE_STEPS = 60.0, 15 * 1440  # for cycles: fifteen days
READ_BACK_S = 7 * DAY_S  # Prometheus answers with 11,000 points at most
REFRESH_S = {"linear": 0.0}  # others cost more and change less
SLOW_REFRESH_S = 120.0
log = logging.getLogger(__name__)


class Forecasts:
    """Feed it with each tick's samples; ask it for forecasts and start-up times."""

    def __init__(self, prometheus: Prometheus | None, tenancy: QueryTenancy = QueryTenancy()) -> None:  # noqa: B008
        self.prometheus, self.tenancy = prometheus, tenancy
        self.fine, self.coarse = RingBuffer(FINE_STEP_S, FINE_STEPS), RingBuffer(COARSE_STEP_S, COARSE_STEPS)
        self._startups: dict[str, StartupLog] = {}  # by workload
        self._made: dict[str, tuple[float, tuple[Forecast | Missing, ...]]] = {}
        self._read_back: set[str] = set()
        self._keys: set[str] = set()

    def note_pods(self, workload: str, pods: Sequence[Pod]) -> None:
        """Record the start-up of each pod that is ready for the first time."""
        self._startups[workload] = watch(self._startups.get(workload, StartupLog()), pods)

    def startup(self, workload: str, at: float) -> Startup | Missing:
        return startup_of(self._startups.get(workload, StartupLog()), at)

    async def note_demand(self, subject: Subject, seen: Observation) -> None:
        """Remember what each signal measured; a sum with a silent pod in it is no sum."""
        choice = subject.policy.forecast
        if choice is None:
            return
        await self._read(subject, choice, seen.at)
        for index, sample in enumerate(seen.samples):
            demand = demand_of(sample, seen.pods)
            if demand is not None:
                self._keys.add(_key(subject, index))
                self._ring(choice).append(seen.at, [_key(subject, index)], [demand])

    def forecasts(self, subject: Subject, started: Startup | Missing, at: float) -> tuple[Forecast | Missing, ...]:
        """One for each signal, made again when it is time to."""
        choice = subject.policy.forecast
        if choice is None:
            return ()
        made_at, made = self._made.get(subject.uid, (float("-inf"), ()))
        if at - made_at > REFRESH_S.get(choice.model, SLOW_REFRESH_S) or len(made) != len(subject.policy.signals):
            keys = [_key(subject, index) for index in range(len(subject.policy.signals))]
            made = tuple(forecast_rows(choice, self._ring(choice).frame(keys), horizon_s(choice, started), at))
            self._made[subject.uid] = (at, made)
        return made

    def forget(self, uids: set[str], workloads: set[str]) -> None:
        """Keep only these objects and these workloads."""
        gone = {key for key in self._keys if key.split("/")[0] not in uids}
        for ring in (self.fine, self.coarse):
            ring.forget(gone)
        self._keys -= gone
        self._read_back &= uids
        for uid in self._made.keys() - uids:
            del self._made[uid]
        for workload in self._startups.keys() - workloads:
            del self._startups[workload]

    def _ring(self, choice: ForecastChoice) -> RingBuffer:
        return self.fine if choice.model == "linear" else self.coarse

    async def _read(self, subject: Subject, choice: ForecastChoice, at: float) -> None:
        """The past of the object's own queries, once."""
        if subject.uid in self._read_back or self.prometheus is None:
            return
        try:
            extra = self.tenancy.params(subject.name.namespace)
        except NotAllowed:
            return  # said of the query itself; once it is allowed its past is read too
        self._read_back.add(subject.uid)
        for index, signal in enumerate(subject.policy.signals):
            if signal.metric.kind is MetricKind.PROMETHEUS:
                try:
                    await self._read_one(_key(subject, index), signal, self._ring(choice), at, extra)
                except TrimtabError as error:
                    log.warning("%s: its past cannot be read back: %s", subject.name, error)

    async def _read_one(self, key: str, signal: Signal, ring: RingBuffer, at: float, extra: Mapping[str, str]) -> None:
        assert self.prometheus is not None
        end = at - at % ring.step_s
        span_s = min(READ_BACK_S, ring.step_s * (ring.steps - 1))
        found = await self.prometheus.query_range(signal.metric.query, end - span_s, end, ring.step_s, extra)
        if len(found) != 1:
            return
        self._keys.add(key)
        values = np.full(round(span_s / ring.step_s) + 1, np.nan)
        for when, text in msgspec.json.decode(found[0].values, type=list[tuple[float, str]]):
            value = float(text)
            if isfinite(value):
                values[round((when - (end - span_s)) / ring.step_s)] = value
        ring.load(Frame((key,), end - span_s, ring.step_s, values[None, :]))


def demand_of(sample: Samples | Missing, pods: Sequence[Pod]) -> float | None:
    if isinstance(sample, Missing):
        return None
    if not isinstance(sample, PodSamples):
        return sample.value
    serving = [pod for pod in pods if pod.ready and not pod.deleting]
    if not serving or any(pod.name not in sample.values for pod in serving):
        return None
    return sum(sample.values.values())


def _key(subject: Subject, index: int) -> str:
    return f"{subject.uid}/{index}"
