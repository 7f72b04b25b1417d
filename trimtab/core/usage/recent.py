"""recent: what all ready pods of a workload use now: the highest mean of a minute within the last five.

Replica totals come from it (buckets, capacity, and whether a stage of weight 1 has more to give), because the
histograms of `usage` forget half of a peak in a day only. They decide sizes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from math import isfinite
from typing import NamedTuple

from trimtab.core.model import Pod, RecentUsage
from trimtab.core.usage.histograms import ContainerSample
from trimtab.policy import Size

WINDOW_S = 300.0
STALE_S = 150.0  # a sample older than this says nothing about now


class MinuteMean(NamedTuple):
    """The usage of all ready pods at one look, by container; complete where each of them had a sample."""

    at: float
    totals: Mapping[str, Size]
    complete: bool


def minute_mean(at: float, pods: Iterable[Pod], samples: Iterable[ContainerSample]) -> MinuteMean:
    """Add up the pods that serve; a pod that starts or ends says nothing about the load."""
    totals: dict[str, Size] = {}
    used: dict[str, list[ContainerSample]] = {}
    for sample in samples:
        used.setdefault(sample.pod, []).append(sample)
    complete = True
    for pod in pods:
        if not pod.ready or pod.deleting:
            continue
        found = [sample for sample in used.get(pod.name, ()) if at - sample.at <= STALE_S]
        complete = complete and bool(found)
        for sample in found:
            known = totals.get(sample.container, Size(cpu_cores=0.0, memory_bytes=0.0))
            totals[sample.container] = Size(
                cpu_cores=_sum(known.cpu_cores, sample.cpu_cores),
                memory_bytes=_sum(known.memory_bytes, sample.memory_bytes),
            )
    return MinuteMean(at, totals, complete and bool(totals))


class RecentWindow:
    """The looks of the last five minutes of one workload; the last that saw anything while all are blind."""

    def __init__(self) -> None:
        self._means: deque[MinuteMean] = deque()
        self._since: float | None = None  # the first look since the last hole
        self._last: MinuteMean | None = None

    def note(self, mean: MinuteMean) -> None:
        if self._last is None or mean.at - self._last.at > WINDOW_S:
            self._since = mean.at
        self._last = mean
        if mean.totals:
            self._means.append(mean)
            while mean.at - self._means[0].at > WINDOW_S:
                self._means.popleft()

    def usage(self, at: float) -> RecentUsage:
        """The highest of each amount; complete after five minutes that ended with a complete look."""
        names = {name for mean in self._means for name in mean.totals}
        watched = self._since is not None and at - self._since >= WINDOW_S
        return RecentUsage(
            totals={
                name: _highest([mean.totals[name] for mean in self._means if name in mean.totals]) for name in names
            },
            complete=watched and self._last is not None and self._last.complete and at - self._last.at <= STALE_S,
        )


def _sum(total: float | None, amount: float | None) -> float | None:
    """One unknown amount makes the sum unknown, never smaller."""
    return None if total is None or amount is None or not isfinite(amount) else total + amount


def _highest(sizes: list[Size]) -> Size:
    cores = [size.cpu_cores for size in sizes if size.cpu_cores is not None]
    memory = [size.memory_bytes for size in sizes if size.memory_bytes is not None]
    return Size(cpu_cores=max(cores, default=None), memory_bytes=max(memory, default=None))
