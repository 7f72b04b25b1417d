"""demand_usage: CPU and memory of whole workloads or of one of their containers, as advice reads them."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Literal, NamedTuple

import numpy as np

from trimtab.errors import TrimtabError
from trimtab.history.query_pages import total
from trimtab.history.source import Selection
from trimtab.history.workload_history import RATE_WINDOW_S, WorkloadHistory
from trimtab.live.look.subject import Subject
from trimtab.policy import Metric, MetricKind
from trimtab.series import Floats, Series

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


Found = Callable[[PastSignal, Series], None]


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
