"""demand_reader: asks Prometheus what signals demanded: CPU and memory as advice reads them, a query as it is written.

For many objects at once. Namespaces are asked side by side, and one whose query is not answered is left for later:
others wait for none of it.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from trimtab.errors import InvalidInput, MetricsUnavailable, TrimtabError
from trimtab.history.pod_owners import SeriesMatchers
from trimtab.history.query_pages import total
from trimtab.history.source import Selection
from trimtab.history.workload_history import RATE_WINDOW_S, WorkloadHistory
from trimtab.live.look.subject import Subject
from trimtab.live.measure.background import Lane, Lanes, TookTooLong
from trimtab.live.measure.tenancy import NotAllowed, QueryTenancy
from trimtab.policy import Metric, MetricKind
from trimtab.promql import FailedQuery
from trimtab.series import Floats, Series
from trimtab.wire.access import Access
from trimtab.wire.kube import Kube
from trimtab.wire.prometheus import ONE_SERIES_BYTES, Prometheus

TIMEOUT_S = 60.0
log = logging.getLogger(__name__)


class TimeRange(NamedTuple):
    """How far back, and how fine."""

    span_s: float
    step_s: float

    @property
    def late_s(self) -> float:
        """How old the newest point of a series may be that goes on."""
        return 2 * self.step_s + RATE_WINDOW_S


DAYS, HOUR = TimeRange(15 * 86400.0, 300.0), TimeRange(3600.0, 30.0)


class PastSignal(NamedTuple):
    """One signal of one object, and where its past is."""

    subject: Subject
    key: str
    metric: Metric
    workload: str  # namespace/Kind/name
    time_range: TimeRange
    born: float  # since when the workload is there, as far as is known
    is_longest: bool = True  # of what is asked of this signal


Found = Callable[[PastSignal, Series], None]


class DemandReader:
    """`read` hands over what there is; `matchers` are of usage alone: a query is its tenant's, as it is written."""

    def __init__(
        self,
        access: Access,
        kube: Kube,
        queries: Access,
        tenancy: QueryTenancy,
        matchers: SeriesMatchers,
        lane: Lane | None = None,
    ) -> None:
        self.lane = lane or Lanes.new().read_back
        self.access, self.kube, self.queries = access, kube, queries
        self.tenancy, self.matchers = tenancy, matchers

    async def silence(self, at: float) -> TrimtabError | None:
        """Why Prometheus answers nobody; None: it does."""
        try:
            async with Prometheus(self.access, timeout_s=TIMEOUT_S) as prometheus:
                await prometheus.query_range("vector(1)", at, at, 60.0)
        except (FailedQuery, InvalidInput):  # that is an answer
            return None
        except TrimtabError as error:
            return error
        return None

    async def read(self, signals: Sequence[PastSignal], at: float, found: Found) -> set[str]:
        """The uids of objects whose past could not be read: namespaces in turns, of one that takes too long no more."""
        failed: set[str] = set()
        async with (
            Prometheus(self.access, timeout_s=TIMEOUT_S) as prometheus,
            Prometheus(self.queries, timeout_s=TIMEOUT_S) as queries,
        ):
            history = WorkloadHistory(prometheus, self.kube, self.matchers)

            async def of_one(own: list[PastSignal]) -> set[str]:
                return await self._read_namespace(history, queries, own, at, found)

            for own, answer in await self.lane.for_each_namespace(signals, _namespace, of_one):
                if isinstance(answer, TookTooLong):
                    log.warning("the past is tried again: %s", answer)
                    answer = {signal.subject.uid for signal in own}
                if isinstance(answer, BaseException):
                    raise answer
                failed |= answer
        return failed

    async def _read_namespace(
        self, history: WorkloadHistory, queries: Prometheus, signals: Sequence[PastSignal], at: float, found: Found
    ) -> set[str]:
        failed: set[str] = set()
        for time_range in (HOUR, DAYS):  # the quick one first
            due = [signal for signal in signals if signal.subject.uid not in failed]
            some = [signal for signal in due if signal.time_range is time_range]
            metric: Literal["cpu", "memory"]
            for metric in ("cpu", "memory"):
                failed |= await read_usage(history, metric, some, at, found)
            own = [signal for signal in some if signal.metric.kind is MetricKind.PROMETHEUS]
            failed |= await self._read_in_turn(queries, own, at, found)
        return failed

    async def _read_in_turn(
        self, prometheus: Prometheus, signals: Sequence[PastSignal], at: float, found: Found
    ) -> set[str]:
        """One query after the other of one namespace; after one that is not answered the rest is left for later."""
        failed: set[str] = set()
        for place, signal in enumerate(signals):
            try:
                if not await self._read_query(prometheus, signal, at, found):
                    failed.add(signal.subject.uid)
            except MetricsUnavailable as error:
                name, left = signal.subject.name, signals[place:]
                text = (
                    "%s: its past cannot be read back, nor that of %d more of its namespace, which is tried again: %s"
                )
                log.warning(text, name, len(left) - 1, error)
                return failed | {each.subject.uid for each in left}
        return failed

    async def _read_query(self, prometheus: Prometheus, signal: PastSignal, at: float, found: Found) -> bool:
        """Whether it could be read, be it that there is nothing; MetricsUnavailable where nobody answers."""
        time_range = signal.time_range
        end = at - at % time_range.step_s
        try:
            extra = self.tenancy.params(signal.subject.name.namespace)
            span = (end - time_range.span_s, end, time_range.step_s)
            series = await prometheus.query_range(signal.metric.query, *span, extra, ONE_SERIES_BYTES)
            if len(series) == 1:
                found(signal, _series(series[0].values))
        except NotAllowed:  # said of the query itself
            return False
        except (TrimtabError, msgspec.MsgspecError, ValueError) as error:
            if isinstance(error, MetricsUnavailable) and not isinstance(error, FailedQuery):
                raise
            log.warning("%s: its past cannot be read back, which is tried again: %s", signal.subject.name, error)
            return False
        return True


def _namespace(signal: PastSignal) -> str:
    return signal.subject.name.namespace


def _series(values: msgspec.Raw) -> Series:
    points = msgspec.json.decode(values, type=list[tuple[float, str]])
    return Series(np.array([when for when, _ in points]), np.array([float(text) for _, text in points]))


async def read_usage(
    history: WorkloadHistory, metric: Literal["cpu", "memory"], signals: Sequence[PastSignal], at: float, found: Found
) -> set[str]:
    """One metric of all workloads; where it cannot be read, their other metrics and everybody's queries still can."""
    some = [signal for signal in signals if signal.metric.name == metric]
    whole = _by_name(some, MetricKind.RESOURCE, lambda signal: signal.workload)
    parts = _by_name(some, MetricKind.CONTAINER, lambda signal: f"{signal.workload}/{signal.metric.container}")
    try:
        if whole:
            selection = Selection(metric, "workload", *_of(whole.values()))
            await _hand_over(_totals(history, selection, some[0].time_range, at), whole, found)
        if parts:
            selection = Selection(metric, "pod", *_of(parts.values()))
            await _hand_over(_of_containers(history, selection, some[0].time_range, at), parts, found)
    except TrimtabError as error:
        log.warning("%s before now cannot be read back, which is tried again: %s", metric, error)
        return {signal.subject.uid for group in (*whole.values(), *parts.values()) for signal in group}
    return set()


async def _hand_over(
    pages: AsyncIterator[tuple[str, Series]], groups: dict[str, list[PastSignal]], found: Found
) -> None:
    async for name, past in pages:
        for signal in groups.get(name, ()):
            found(signal, past)


def _by_name(
    signals: Iterable[PastSignal], kind: MetricKind, name: Callable[[PastSignal], str]
) -> dict[str, list[PastSignal]]:
    groups: dict[str, list[PastSignal]] = defaultdict(list)
    for signal in signals:
        if signal.metric.kind is kind:
            groups[name(signal)].append(signal)
    return groups


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
