"""Usage of workloads from cAdvisor's metrics: a few queries per namespace, whatever the number of containers.

cpu = rate(container_cpu_usage_seconds_total[3m]), memory = container_memory_working_set_bytes; without the pod's
own cgroup (container="") and its pause container (container="POD"), which would count everything twice.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping

from trimtab.history.pod_owners import EVERYTHING, Member, SeriesMatchers, find_members
from trimtab.history.query_pages import SERIES_PER_PAGE, Fold, QueryPage, largest, query_page, read_pages, total
from trimtab.history.source import Level, Metric, Selection, TimeGrid, time_grid
from trimtab.kinds.names import DNS_NAME, LABEL
from trimtab.promql import Matcher, Matchers, among, either, quote, selector
from trimtab.series import Frame
from trimtab.wire.kube import Kube
from trimtab.wire.prometheus import Prometheus

RATE_WINDOW_S = 180.0  # three scrapes at one per minute, so that one may fail
BY = {"workload": "namespace,stem", "container": "namespace,stem,container", "pod": "namespace,stem,pod,container"}
FOLDS: dict[Level, tuple[str, Fold]] = {
    "workload": ("sum", total),
    "container": ("max", largest),
    "pod": ("max", largest),
}
OF_CONTAINERS = (Matcher("container", "!=", ""), Matcher("container", "!=", "POD"))
Owners = Mapping[tuple[str, str], str]  # namespace and mark of a pod: the workload's key


STEM, WHOLE = "(.+)-[^-]+", "(.+)"  # the part of a pod's name that says whose it is


class WorkloadHistory:
    """A HistorySource over Prometheus. `matchers` narrows every selector."""

    def __init__(
        self,
        prometheus: Prometheus,
        kube: Kube | None = None,
        matchers: SeriesMatchers = EVERYTHING,
    ) -> None:
        self.prometheus, self.kube, self.matchers = prometheus, kube, matchers
        self._known: tuple[object, list[Member]] = (None, [])
        self._finding = asyncio.Lock()

    async def pages(self, selection: Selection, start: float, end: float, step_s: float) -> AsyncIterator[Frame]:
        whole = time_grid(start, end, step_s)
        members = await self._members(selection.namespaces, whole.start, whole.end)
        pages = list(plan(members, selection, self.matchers.usage, step_s))

        async def read_page(page: QueryPage, whole: TimeGrid) -> Frame:
            return await query_page(self.prometheus, page, whole)

        async for frame in read_pages(read_page, pages, whole):
            yield frame

    async def _members(self, namespaces: tuple[str, ...], start: float, end: float) -> list[Member]:
        """Found once for all metrics and levels of one time range."""
        asked = (namespaces, start, end)
        async with self._finding:  # metrics and levels are asked for at the same time
            if self._known[0] != asked:
                found = await find_members(self.prometheus, self.kube, namespaces, self.matchers, start, end)
                self._known = (asked, found)
            return self._known[1]


def plan(members: list[Member], selection: Selection, matchers: Matchers, step_s: float) -> Iterator[QueryPage]:
    """One query for about 100 series: several small namespaces together, a large member in parts."""
    chosen = [
        member
        for member in members
        if (not selection.namespaces or member.namespace in selection.namespaces)
        and (not selection.workloads or member.key in selection.workloads)
    ]
    for batch in _batches([member for member in chosen if member.stems], selection.level):
        stems = {(member.namespace, name): member.key for member in batch for name in member.stems}
        pods = Matcher("pod", "=~", f"(?:{either(sorted({name for _, name in stems}))})-[^-]+")
        spaces = among("namespace", (member.namespace for member in batch))
        yield _page(selection, (*matchers, spaces, pods), step_s, STEM, stems)
    for batch in _batches([member for member in chosen if not member.stems], selection.level):
        names = {(member.namespace, name): member.key for member in batch for name in member.pods}
        spaces = among("namespace", (member.namespace for member in batch))
        yield _page(selection, (*matchers, spaces, among("pod", (name for _, name in names))), step_s, WHOLE, names)


def _batches(members: list[Member], level: Level) -> Iterator[list[Member]]:
    batch: list[Member] = []
    size = 0
    for member in members:
        weight = max(1, len(member.pods)) if level == "pod" else 1
        if batch and size + weight > SERIES_PER_PAGE:
            yield batch
            batch, size = [], 0
        batch.append(member)
        size += weight
    if batch:
        yield batch


def _page(selection: Selection, matchers: Matchers, step_s: float, mark: str, owners: Owners) -> QueryPage:
    operator, fold = FOLDS[selection.level]
    usage = _usage(selection.metric, matchers, step_s)
    labelled = f'label_replace({usage},"stem","$1","pod",{quote(mark)})'
    expression = f"{operator} by ({BY[selection.level]})({labelled})"
    return QueryPage(expression, _namer(owners, selection.level), fold)


def _usage(metric: Metric, matchers: Matchers, step_s: float) -> str:
    """Bytes, or the rate of cores; a coarse grid looks at all that happened between its points."""
    chosen = (*OF_CONTAINERS, *matchers)
    if metric == "memory":
        return selector("container_memory_working_set_bytes", chosen)
    window_s = max(RATE_WINDOW_S, step_s)
    return f"rate({selector('container_cpu_usage_seconds_total', chosen)}[{window_s:.0f}s])"


def by_hand(metric: Metric, namespaces: tuple[str, ...], matchers: Matchers, step_s: float) -> str:
    """The query for people to ask elsewhere: every container of every pod, under labels that a file may keep."""
    chosen = (*matchers, among("namespace", namespaces)) if namespaces else matchers
    return f"sum by (namespace, pod, container) ({_usage(metric, chosen, step_s)})"


def _namer(owners: Owners, level: Level) -> Callable[[Mapping[str, str]], str | None]:
    """The row a series belongs to: none where its pod was not asked for, or where its labels are no names."""

    def name(labels: Mapping[str, str]) -> str | None:
        owner = owners.get((labels.get("namespace", ""), labels.get("stem", "")))
        if owner is None or level == "workload":
            return owner
        container, pod = labels.get("container", ""), labels.get("pod", "")
        if not re.fullmatch(LABEL, container) or (level == "pod" and not re.fullmatch(DNS_NAME, pod)):
            return None
        return f"{owner}/{container}" if level == "container" else f"{owner}/{container}/{pod}"

    return name
