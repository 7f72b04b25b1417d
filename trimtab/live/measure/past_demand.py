"""past_demand: what signals demanded before the operator saw them, read back from Prometheus in the background.

CPU and memory as advice reads them, a query's own past by the query; others are in checkpoints alone. At first sight of
an object, for many objects at once: a tick waits for nothing, and what we saw ourselves stays. Whose past could not be
read, or whose query is not allowed yet, is tried again after a rest of its own, which doubles with each failure.
Namespaces are asked side by side, and one whose query is not answered is left for later: others wait for none of it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from trimtab.core.demand.keys import keys_of, remembers_demand
from trimtab.core.demand.total import is_per_pod
from trimtab.core.forecast.demand_forecasts import DemandForecasts
from trimtab.errors import MetricsUnavailable, TrimtabError
from trimtab.history.query_pages import total
from trimtab.history.source import Selection
from trimtab.history.workload_history import WorkloadHistory
from trimtab.live.look.subject import Subject
from trimtab.live.measure.background import Background
from trimtab.live.measure.tenancy import NotAllowed, QueryTenancy
from trimtab.live.object_tick import ObjectTick
from trimtab.policy import Metric, MetricKind, Policy, TuningMode
from trimtab.series import Floats, Series
from trimtab.wire.access import Access
from trimtab.wire.kube import Kube
from trimtab.wire.prometheus import Prometheus
from trimtab.wire.query_union import FailedQuery

TIMEOUT_S = 60.0
NAMESPACES_AT_ONCE = 8
TRY_AGAIN_S, LONGEST_REST_S = 300.0, 3600.0
READ_BACK = (MetricKind.RESOURCE, MetricKind.CONTAINER, MetricKind.PROMETHEUS)
log = logging.getLogger(__name__)


class TimeRange(NamedTuple):
    """How far back, and how fine."""

    span_s: float
    step_s: float


DAYS, HOUR = TimeRange(15 * 86400.0, 300.0), TimeRange(3600.0, 30.0)


class PastSignal(NamedTuple):
    """One signal of one object, and where its past is."""

    subject: Subject
    key: str
    metric: Metric
    workload: str  # namespace/Kind/name
    time_range: TimeRange


class RetryRest(NamedTuple):
    """After so many failures in a row, until then."""

    failures: int = 0
    until: float = float("-inf")

    def after_failure(self, at: float) -> RetryRest:
        return RetryRest(self.failures + 1, at + min(TRY_AGAIN_S * 2.0 ** min(self.failures, 10), LONGEST_REST_S))


class PastDemand(Background):
    """Call `follow` in every tick: the past of each new object, or of one with new signals, is read once."""

    def __init__(
        self,
        access: Access,
        kube: Kube,
        demand: DemandForecasts,
        queries: Access | None = None,
        tenancy: QueryTenancy = QueryTenancy(),  # noqa: B008  (frozen)
        matchers: str = "",
    ) -> None:
        super().__init__()
        self.access, self.kube, self.demand = access, kube, demand
        self.queries, self.tenancy = queries or access, tenancy  # tenants' own queries, and whose are asked
        self.matchers = matchers  # of usage alone: a query is its tenant's, as it is written
        self._done: dict[str, tuple[str, ...]] = {}  # keys by uid
        self._rests: dict[str, RetryRest] = {}  # by uid
        self._outdated: set[str] = set()  # of these another workload is being read

    def follow(self, ticks: Sequence[ObjectTick], at: float) -> None:
        ticks = [tick for tick in ticks if wanted(tick)]
        keys = {tick.subject.uid: keys_of(tick.subject.uid, tick.subject.policy) for tick in ticks}
        self._done = {uid: known for uid, known in self._done.items() if keys.get(uid) == known}
        self._rests = {uid: rest for uid, rest in self._rests.items() if uid in keys}
        new = [tick for tick in ticks if tick.subject.uid not in self._done]
        due = [tick for tick in new if at >= self._rests.get(tick.subject.uid, RetryRest()).until]
        if due and self.idle:
            self._outdated.clear()
            self.start(self._run(due, at))

    def begin_anew(self, uid: str) -> None:
        """What is being read of it is read again, of whom it is now."""
        self._outdated.add(uid)
        self._done.pop(uid, None)
        self._rests.pop(uid, None)

    def take_over(self) -> None:
        """Another leader may have watched meanwhile: what we have missed is read back."""
        self.close()
        self._done.clear()
        self._rests.clear()

    async def _run(self, ticks: Sequence[ObjectTick], at: float) -> None:
        keys = {tick.subject.uid: keys_of(tick.subject.uid, tick.subject.policy) for tick in ticks}
        try:
            failed = await self._read([signal for tick in ticks for signal in _signals(tick)], at)
        except TrimtabError as error:
            log.warning("demand before now cannot be read back, which is tried again: %s", error)
            failed = set(keys)
        except Exception:
            log.exception("demand before now cannot be read back: a bug of trimtab; forecasts learn from now on")
            failed = set(keys)
        self._rests |= {uid: self._rests.get(uid, RetryRest()).after_failure(at) for uid in failed}
        for uid in keys.keys() - failed - self._outdated:
            self._done[uid] = keys[uid]
            self._rests.pop(uid, None)
        log.info("demand before now was read back: objects %d, to be tried again %d", len(keys), len(failed))

    async def _read(self, signals: Sequence[PastSignal], at: float) -> set[str]:
        """The objects whose past is not there yet."""
        failed: set[str] = set()
        async with (
            Prometheus(self.access, timeout_s=TIMEOUT_S) as prometheus,
            Prometheus(self.queries, timeout_s=TIMEOUT_S) as queries,
        ):
            history = WorkloadHistory(prometheus, self.kube, self.matchers)
            for time_range in (HOUR, DAYS):  # the quick one first
                some = [signal for signal in signals if signal.time_range is time_range]
                metric: Literal["cpu", "memory"]
                for metric in ("cpu", "memory"):
                    await self._read_usage(history, metric, some, at)
                failed |= await self._read_queries(queries, some, at)
        return failed

    async def _read_queries(self, prometheus: Prometheus, signals: Sequence[PastSignal], at: float) -> set[str]:
        by_namespace: dict[str, list[PastSignal]] = defaultdict(list)
        for signal in signals:
            if signal.metric.kind is MetricKind.PROMETHEUS:
                by_namespace[signal.subject.name.namespace].append(signal)
        gate = asyncio.Semaphore(NAMESPACES_AT_ONCE)

        async def of_one(own: Sequence[PastSignal]) -> set[str]:
            async with gate:
                return await self._read_in_turn(prometheus, own, at)

        return set().union(*await asyncio.gather(*map(of_one, by_namespace.values())))

    async def _read_in_turn(self, prometheus: Prometheus, signals: Sequence[PastSignal], at: float) -> set[str]:
        """One query after the other of one namespace; after one that is not answered the rest is left for later."""
        failed: set[str] = set()
        for place, signal in enumerate(signals):
            try:
                if not await self._read_query(prometheus, signal, at):
                    failed.add(signal.subject.uid)
            except MetricsUnavailable as error:
                name, left = signal.subject.name, signals[place:]
                text = (
                    "%s: its past cannot be read back, nor that of %d more of its namespace, which is tried again: %s"
                )
                log.warning(text, name, len(left) - 1, error)
                return failed | {each.subject.uid for each in left}
        return failed

    async def _read_usage(
        self, history: WorkloadHistory, metric: Literal["cpu", "memory"], signals: Sequence[PastSignal], at: float
    ) -> None:
        whole, parts = defaultdict(list), defaultdict(list)
        for signal in signals:
            if signal.metric.name == metric and signal.metric.kind is MetricKind.RESOURCE:
                whole[signal.workload].append(signal)
            elif signal.metric.name == metric and signal.metric.kind is MetricKind.CONTAINER:
                parts[f"{signal.workload}/{signal.metric.container}"].append(signal)
        if whole:
            time_range = signals[0].time_range
            async for name, past in _totals(
                history, Selection(metric, "workload", *_of(whole.values())), time_range, at
            ):
                self._restore(whole.get(name, ()), past)
        if parts:
            time_range = signals[0].time_range
            async for name, past in _of_containers(
                history, Selection(metric, "pod", *_of(parts.values())), time_range, at
            ):
                self._restore(parts.get(name, ()), past)

    async def _read_query(self, prometheus: Prometheus, signal: PastSignal, at: float) -> bool:
        """Whether it could be read, be it that there is nothing; MetricsUnavailable where nobody answers."""
        time_range = signal.time_range
        end = at - at % time_range.step_s
        try:
            extra = self.tenancy.params(signal.subject.name.namespace)
            start = end - time_range.span_s
            found = await prometheus.query_range(signal.metric.query, start, end, time_range.step_s, extra)
            if len(found) == 1:
                self._restore([signal], _series(found[0].values))
        except NotAllowed:  # said of the query itself
            return False
        except (TrimtabError, msgspec.MsgspecError, ValueError) as error:
            if isinstance(error, MetricsUnavailable) and not isinstance(error, FailedQuery):
                raise
            log.warning("%s: its past cannot be read back, which is tried again: %s", signal.subject.name, error)
            return False
        return True

    def _restore(self, signals: Iterable[PastSignal], past: Series) -> None:
        for signal in signals:
            if signal.subject.uid in self._outdated:
                continue
            self.demand.restore(signal.subject.uid, signal.subject.policy, signal.key, past, signal.time_range.step_s)


def _series(values: msgspec.Raw) -> Series:
    points = msgspec.json.decode(values, type=list[tuple[float, str]])
    return Series(np.array([when for when, _ in points]), np.array([float(text) for _, text in points]))


def wanted(tick: ObjectTick) -> bool:
    """Whether there is a past to read: document 003's own line looks at minutes of single pods, and starts anew."""
    policy = tick.subject.policy
    if not remembers_demand(policy) or is_per_pod(policy):
        return False
    return any(signal.metric.kind in READ_BACK for signal in policy.signals)


def all_read_back(policy: Policy) -> bool:
    """Whether Prometheus remembers every signal."""
    return all(signal.metric.kind in READ_BACK for signal in policy.signals)


def forgotten_by_others(prometheus: Access | None) -> Callable[[Policy], bool]:
    """Whose demand nobody but us remembers."""
    return lambda policy: remembers_demand(policy) and (prometheus is None or not all_read_back(policy))


def _signals(tick: ObjectTick) -> list[PastSignal]:
    subject, target = tick.subject, tick.target
    forecast, tuning = subject.policy.forecast, subject.policy.tuning
    only_a_line = forecast is not None and forecast.model == "linear" and tuning.mode is TuningMode.OFF
    time_range = HOUR if only_a_line else DAYS
    workload = f"{target.namespace}/{target.resource.kind}/{target.name}"
    pairs = zip(keys_of(subject.uid, subject.policy), subject.policy.signals, strict=True)
    return [PastSignal(subject, key, signal.metric, workload, time_range) for key, signal in pairs]


def _of(groups: Iterable[Sequence[PastSignal]]) -> tuple[tuple[str, ...], frozenset[str]]:
    """Namespaces and workloads of a selection."""
    workloads = frozenset(signal.workload for group in groups for signal in group)
    return tuple(sorted({workload.split("/")[0] for workload in workloads})), workloads


async def _totals(
    history: WorkloadHistory, selection: Selection, time_range: TimeRange, at: float
) -> AsyncIterator[tuple[str, Series]]:
    async for frame in history.pages(selection, at - time_range.span_s, at, time_range.step_s):
        for row, name in enumerate(frame.names):
            yield name, frame.row(row)


async def _of_containers(
    history: WorkloadHistory, selection: Selection, time_range: TimeRange, at: float
) -> AsyncIterator[tuple[str, Series]]:
    """Rows are named namespace/Kind/name/container/pod; pods of one container are added up."""
    sums: dict[str, Floats] = {}
    times = np.empty(0)
    async for frame in history.pages(selection, at - time_range.span_s, at, time_range.step_s):
        times = frame.times
        for row, name in enumerate(frame.names):
            container = name.rsplit("/", 1)[0]
            sums[container] = total(sums[container], frame.values[row]) if container in sums else frame.values[row]
    for container, values in sums.items():
        known = np.isfinite(values)
        yield container, Series(times[known], values[known])
