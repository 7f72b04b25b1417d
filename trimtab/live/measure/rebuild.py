"""rebuild: what workloads used before the operator saw them, read back from Prometheus in the background.

At first sight of a workload: the whole history that the book keeps (8 days), as fine as it samples, but no finer than
one question per page allows. It is read page by page into a book of its own: a tick waits for nothing, and nothing is
counted twice. The checkpoint serves meanwhile, and where Prometheus knows less.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from trimtab.core.usage.backfill import ContainerSeries, observe_cpu, observe_memory
from trimtab.core.usage.histograms import UsageHistograms
from trimtab.core.usage.settings import HistogramSettings
from trimtab.errors import TrimtabError
from trimtab.history.query_pages import POINTS_PER_QUERY
from trimtab.history.source import Selection
from trimtab.history.workload_history import WorkloadHistory
from trimtab.live.look.cluster import ScaleTarget
from trimtab.series import Frame
from trimtab.wire.access import Access
from trimtab.wire.kube import Kube
from trimtab.wire.prometheus import Prometheus

TIMEOUT_S = 60.0  # a page of eight days takes longer than a tick may
TRY_AGAIN_S = 300.0
log = logging.getLogger(__name__)


class PastUsage(NamedTuple):
    """The past of some workloads, from `since` on."""

    book: UsageHistograms
    since: float


class Rebuild:
    """Ask it in every tick: it starts to read the past of new workloads, and hands over what it has read."""

    def __init__(
        self, access: Access, kube: Kube, settings: HistogramSettings, every_s: float, matchers: str = ""
    ) -> None:
        self.access, self.kube, self.settings, self.matchers = access, kube, settings, matchers
        self.history_s = settings.memory_windows * settings.memory_window_s
        self.step_s = max(every_s, self.history_s / POINTS_PER_QUERY)
        self._done: set[str] = set()
        self._reading: asyncio.Task[PastUsage] | None = None
        self._asked: dict[str, str] = {}
        self._rest_until = float("-inf")

    def look(self, targets: Sequence[ScaleTarget], at: float) -> PastUsage | None:
        """The past that has arrived since the last look, if any."""
        uids = {_name(target): target.uid for target in targets}
        found = self._arrived(at)
        self._done &= set(uids.values())
        new = {name: uid for name, uid in uids.items() if uid not in self._done}
        if new and self._reading is None and at >= self._rest_until:
            self._asked = new
            self._reading = asyncio.create_task(self._read(new, at))
        return found

    def take_over(self) -> None:
        """Another leader may have watched meanwhile: all of it is read again."""
        if self._reading is not None:
            self._reading.cancel()
        self._reading, self._rest_until = None, float("-inf")
        self._done.clear()

    def _arrived(self, at: float) -> PastUsage | None:
        if self._reading is None or not self._reading.done():
            return None
        task, self._reading = self._reading, None
        try:
            found = task.result()
        except TrimtabError as error:
            self._rest_until = at + TRY_AGAIN_S
            log.warning("usage before now cannot be read back, which is tried again: %s", error)
            return None
        except Exception:
            self._done |= set(self._asked.values())
            log.exception("usage before now cannot be read back: a bug of trimtab; the checkpoint has to do")
            return None
        self._done |= set(self._asked.values())
        log.info("usage before now was read back: workloads %d, containers %d", len(self._asked), len(found.book.rows))
        return found

    async def _read(self, uids: Mapping[str, str], at: float) -> PastUsage:
        book, since = UsageHistograms(self.settings), at - self.history_s
        namespaces = tuple(sorted({name.split("/")[0] for name in uids}))
        async with Prometheus(self.access, timeout_s=TIMEOUT_S) as prometheus:
            history = WorkloadHistory(prometheus, self.kube, self.matchers)
            metric: Literal["cpu", "memory"]
            for metric in ("cpu", "memory"):
                selection = Selection(metric, "pod", namespaces, frozenset(uids))
                async for frame in history.pages(selection, since, at, self.step_s):
                    observe = observe_cpu if metric == "cpu" else observe_memory
                    await asyncio.to_thread(observe, book, _past(frame, uids))
        return PastUsage(book, since)


def _past(frame: Frame, uids: Mapping[str, str]) -> ContainerSeries:
    """Rows are named namespace/Kind/name/container/pod."""
    parts = [name.rsplit("/", 2) for name in frame.names]
    return ContainerSeries([(uids[name], pod, container) for name, container, pod in parts], frame.times, frame.values)


def _name(target: ScaleTarget) -> str:
    return f"{target.namespace}/{target.resource.kind}/{target.name}"
