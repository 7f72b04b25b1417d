"""Usage of workloads from cAdvisor's metrics: a few queries per namespace, whatever the number of containers.

cpu = rate(container_cpu_usage_seconds_total[3m]), memory = container_memory_working_set_bytes; without the pod's
own cgroup (container="") and its pause container (container="POD"), which would count everything twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping

from trimtab.history.pod_owners import Member, find_members
from trimtab.history.query_pages import SERIES_PER_PAGE, Fold, QueryPage, largest, query_page, read_pages, total
from trimtab.history.source import Level, Metric, Selection, TimeGrid, time_grid
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
OF_CONTAINERS = 'container!="",container!="POD"'
Owners = Mapping[tuple[str, str], str]  # namespace and mark of a pod: the workload's key


STEM, WHOLE = "(.+)-[^-]+", "(.+)"  # the part of a pod's name that says whose it is


class WorkloadHistory:
    """A HistorySource over Prometheus. `matchers` narrows every selector, such as 'cluster="a",job="kubelet"'."""

    def __init__(self, prometheus: Prometheus, kube: Kube | None = None, matchers: str = "") -> None:
        self.prometheus, self.kube = prometheus, kube
        self.matchers = f",{matchers}" if matchers else ""
        self._known: tuple[object, list[Member]] = (None, [])
        self._finding = asyncio.Lock()

    async def pages(self, selection: Selection, start: float, end: float, step_s: float) -> AsyncIterator[Frame]:
        whole = time_grid(start, end, step_s)
        members = await self._members(selection.namespaces, whole.start, whole.end)
        pages = list(plan(members, selection, self.matchers, step_s))

        async def read_page(page: QueryPage, whole: TimeGrid) -> Frame:
            return await query_page(self.prometheus, page, whole)

        async for frame in read_pages(read_page, pages, whole):
            yield frame

    async def _members(self, namespaces: tuple[str, ...], start: float, end: float) -> list[Member]:
        """Found once for all metrics and levels of one time range."""
        asked = (namespaces, start, end)
        async with self._finding:  # metrics and levels are asked for at the same time
            if self._known[0] != asked:
                matchers = self.matchers + _in_namespaces(namespaces)
                self._known = (asked, await find_members(self.prometheus, self.kube, namespaces, matchers, start, end))
            return self._known[1]


def plan(members: list[Member], selection: Selection, matchers: str, step_s: float) -> Iterator[QueryPage]:
    """One query for about 100 series: several small namespaces together, a large member in parts."""
    chosen = [
        member
        for member in members
        if (not selection.namespaces or member.namespace in selection.namespaces)
        and (not selection.workloads or member.key in selection.workloads)
    ]
    for batch in _batches([member for member in chosen if member.stems], selection.level):
        stems = {(member.namespace, name): member.key for member in batch for name in member.stems}
        names = sorted({name for _, name in stems})
        chooser = f'{_in_namespaces(member.namespace for member in batch)},pod=~"(?:{_either(names)})-[^-]+"'
        yield _page(selection, matchers + chooser, step_s, STEM, stems)
    for batch in _batches([member for member in chosen if not member.stems], selection.level):
        pods = {(member.namespace, name): member.key for member in batch for name in member.pods}
        names = sorted({name for _, name in pods})
        chooser = f'{_in_namespaces(member.namespace for member in batch)},pod=~"{_either(names)}"'
        yield _page(selection, matchers + chooser, step_s, WHOLE, pods)


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


def _page(
    selection: Selection, matchers: str, step_s: float, mark: str, owners: Mapping[tuple[str, str], str]
) -> QueryPage:
    operator, fold = FOLDS[selection.level]
    matchers = OF_CONTAINERS + matchers
    metric, rate_s = usage_of(selection.metric, step_s)
    usage = f"rate({metric}{{{matchers}}}[{rate_s:.0f}s])" if rate_s else f"{metric}{{{matchers}}}"
    labelled = f'label_replace({usage},"stem","$1","pod","{mark}")'
    expression = f"{operator} by ({BY[selection.level]})({labelled})"
    return QueryPage(expression, _namer(owners, selection.level), fold)


def usage_of(metric: Metric, step_s: float) -> tuple[str, float | None]:
    """The series, and for counters the window of their rate."""
    if metric == "memory":
        return "container_memory_working_set_bytes", None
    # A coarse grid looks at all that happened between its points.
    return "container_cpu_usage_seconds_total", max(RATE_WINDOW_S, step_s)


def by_hand(metric: Metric, namespaces: tuple[str, ...], matchers: str, step_s: float) -> str:
    """The query for people to ask elsewhere: every container of every pod, under labels that a file may keep."""
    name, rate_s = usage_of(metric, step_s)
    selector = f"{name}{{{OF_CONTAINERS}{matchers}{_in_namespaces(namespaces)}}}"
    usage = f"rate({selector}[{rate_s:.0f}s])" if rate_s else selector
    return f"sum by (namespace, pod, container) ({usage})"


def _namer(owners: Owners, level: Level) -> Callable[[Mapping[str, str]], str | None]:
    """The row a series belongs to; a pod of the same stem in a namespace that was not asked for belongs to none."""

    def name(labels: Mapping[str, str]) -> str | None:
        owner = owners.get((labels.get("namespace", ""), labels.get("stem", "")))
        if owner is None or level == "workload":
            return owner
        inner = labels["container"] if level == "container" else f"{labels['container']}/{labels['pod']}"
        return f"{owner}/{inner}"

    return name


def _in_namespaces(namespaces: Iterator[str] | tuple[str, ...]) -> str:
    names = sorted(set(namespaces))
    return f',namespace=~"{_either(names)}"' if names else ""


def _either(names: list[str]) -> str:
    return "|".join(name.replace(".", "[.]") for name in names)
