"""Usage of workloads from cAdvisor's metrics: a few queries a namespace, whatever the number of containers.

cpu = rate(container_cpu_usage_seconds_total[3m]), memory = container_memory_working_set_bytes; without the pod's
own cgroup (container="") and its pause container (container="POD"), which would count everything twice.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping

from trimtab.history.owners import Member, find_members
from trimtab.history.prometheus import SERIES_A_PAGE, Fold, Page, largest, read_pages, total
from trimtab.history.source import Level, Metric, Selection, span
from trimtab.series import Frame
from trimtab.wire.kube import Kube
from trimtab.wire.prometheus import Prometheus

RATE_WINDOW_S = 180.0  # three scrapes at one a minute, so that one may fail
BY = {"workload": "namespace,stem", "container": "namespace,stem,container", "pod": "namespace,stem,pod,container"}
FOLDS: dict[Level, tuple[str, Fold]] = {
    "workload": ("sum", total),
    "container": ("max", largest),
    "pod": ("max", largest),
}


class WorkloadHistory:
    """A Source over Prometheus. `matchers` narrows every selector, such as 'cluster="a",job="kubelet"'."""

    def __init__(self, prometheus: Prometheus, kube: Kube | None = None, matchers: str = "") -> None:
        self.prometheus, self.kube = prometheus, kube
        self.matchers = f",{matchers}" if matchers else ""
        self._known: tuple[object, list[Member]] = (None, [])

    async def pages(self, selection: Selection, start: float, end: float, step_s: float) -> AsyncIterator[Frame]:
        whole = span(start, end, step_s)
        members = await self._members(selection.namespaces, whole.start, whole.end)
        pages = list(plan(members, selection, self.matchers, step_s))
        async for frame in read_pages(self.prometheus, pages, whole):
            yield frame

    async def _members(self, namespaces: tuple[str, ...], start: float, end: float) -> list[Member]:
        """Found once for all metrics and levels of one time range."""
        asked = (namespaces, start, end)
        if self._known[0] != asked:
            matchers = self.matchers + _in_namespaces(namespaces)
            self._known = (asked, await find_members(self.prometheus, self.kube, namespaces, matchers, start, end))
        return self._known[1]


def plan(members: list[Member], selection: Selection, matchers: str, step_s: float) -> Iterator[Page]:
    """One query for about 100 series: several small namespaces together, a large one in parts."""
    chosen = [
        one
        for one in members
        if (not selection.namespaces or one.namespace in selection.namespaces)
        and (not selection.workloads or one.key in selection.workloads)
    ]
    for batch in _batches([one for one in chosen if one.stems], selection.level):
        stems = {(one.namespace, name): one.key for one in batch for name in one.stems}
        names = sorted({name for _, name in stems})
        chooser = f'{_in_namespaces(one.namespace for one in batch)},pod=~"(?:{_either(names)})-[^-]+"'
        yield _page(selection, matchers + chooser, step_s, "(.+)-[^-]+", stems)
    for batch in _batches([one for one in chosen if not one.stems], selection.level):
        pods = {(one.namespace, name): one.key for one in batch for name in one.pods}
        names = sorted({name for _, name in pods})
        chooser = f'{_in_namespaces(one.namespace for one in batch)},pod=~"{_either(names)}"'
        yield _page(selection, matchers + chooser, step_s, "(.+)", pods)


def _batches(members: list[Member], level: Level) -> Iterator[list[Member]]:
    batch: list[Member] = []
    size = 0
    for one in members:
        weight = max(1, len(one.pods)) if level == "pod" else 1
        if batch and size + weight > SERIES_A_PAGE:
            yield batch
            batch, size = [], 0
        batch.append(one)
        size += weight
    if batch:
        yield batch


def _page(selection: Selection, matchers: str, step_s: float, stem: str, owners: Mapping[tuple[str, str], str]) -> Page:
    operator, fold = FOLDS[selection.level]
    usage = _usage(selection.metric, 'container!="",container!="POD"' + matchers, step_s)
    labelled = f'label_replace({usage},"stem","$1","pod","{stem}")'
    return Page(f"{operator} by ({BY[selection.level]})({labelled})", _namer(owners, selection.level), fold)


def _usage(metric: Metric, matchers: str, step_s: float) -> str:
    if metric == "memory":
        return f"container_memory_working_set_bytes{{{matchers}}}"
    window_s = max(RATE_WINDOW_S, step_s)  # a coarse grid looks at all that happened between its points
    return f"rate(container_cpu_usage_seconds_total{{{matchers}}}[{window_s:.0f}s])"


def _namer(owners: Mapping[tuple[str, str], str], level: Level) -> Callable[[Mapping[str, str]], str | None]:
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
