"""usage: samples of every container that may be resized, kept in the core's book; estimates for each workload.

Samples come every minute from the pod metrics that the tick gathers; OOM kills from what each object remembers, at
once; what was before the first look from checkpoints and from Prometheus, where there is one.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import nan
from typing import Literal, NamedTuple

from msgspec.structs import replace

from trimtab.core.model import Missing, Reason, UsageEstimates
from trimtab.core.usage.backfill import ContainerSeries, adopt, observe_cpu, observe_memory
from trimtab.core.usage.estimate import usages
from trimtab.core.usage.histograms import ContainerSample, UsageHistograms
from trimtab.core.usage.recent import RecentWindow, minute_mean
from trimtab.core.usage.settings import HistogramSettings
from trimtab.errors import TrimtabError
from trimtab.history.pod_owners import EVERYTHING, SeriesMatchers
from trimtab.history.query_pages import POINTS_PER_QUERY
from trimtab.history.source import Selection
from trimtab.history.workload_history import WorkloadHistory
from trimtab.live.look.cluster import ScaleTarget, WatchedCluster
from trimtab.live.look.memory import OomKill
from trimtab.live.measure.background import Lane, Lanes
from trimtab.live.measure.readings import amounts_of
from trimtab.series import Frame
from trimtab.wire.access import Access
from trimtab.wire.kube import Kube
from trimtab.wire.objects import PodMetrics
from trimtab.wire.prometheus import Prometheus

EVERY_S = 60.0
TIMEOUT_S = 60.0  # a page of eight days takes longer than a tick may
TRY_AGAIN_S = 300.0
log = logging.getLogger(__name__)
NO_KILLS: Mapping[str, Mapping[str, OomKill]] = {}
NO_SAMPLES = Missing(reason=Reason.NOT_ENOUGH_HISTORY, detail="no usage of this workload has been seen yet")


class UsageWatch:
    """Looks at the usage of the given workloads when it is time to; `of` answers at any time."""

    def __init__(
        self,
        cluster: WatchedCluster,
        settings: HistogramSettings,
        every_s: float = EVERY_S,
        rebuild: Rebuild | None = None,
    ) -> None:
        self.cluster, self.every_s, self.rebuild = cluster, every_s, rebuild
        self.book = UsageHistograms(settings)
        self._looked_at = float("-inf")
        self._news = False  # the estimates are older than the book
        self._usages: dict[str, UsageEstimates] = {}
        self._recent: dict[str, RecentWindow] = {}  # by target uid

    def take_over(self, others_led: bool) -> None:
        """Who led meanwhile went on from our checkpoint: theirs has what we saw, too, and takes the place of ours."""
        if self.rebuild is not None:
            self.rebuild.take_over()
        self._recent.clear()
        if others_led:
            self.book, self._usages = UsageHistograms(self.book.settings), {}
            self._looked_at = float("-inf")

    def clock_set(self, by_s: float) -> None:
        self._looked_at += by_s
        self._recent.clear()

    def of(self, target: ScaleTarget) -> UsageEstimates | Missing:
        return self._usages.get(target.uid, NO_SAMPLES)

    def namespaces(self, targets: Sequence[ScaleTarget], at: float) -> set[str]:
        """Whose pods' usage is wanted in this tick: nobody's until it is time again."""
        due = at - self._looked_at >= self.every_s
        return {target.namespace for target in targets} if due else set()

    def look(
        self,
        targets: Sequence[ScaleTarget],
        measured: Mapping[str, PodMetrics],
        at: float,
        kills: Mapping[str, Mapping[str, OomKill]] = NO_KILLS,
    ) -> None:
        """`measured` is what was gathered in this tick, by namespace/pod; what is missing lives on until it expires.

        `kills` are the last OOM kills by target uid and container.
        """
        for past in self.rebuild.look(targets, at) if self.rebuild else ():
            self.take_up(past.book, past.since)
        self._note_kills(kills)
        if self.namespaces(targets, at):
            self._looked_at = at
            self.book.observe([sample for target in targets for sample in self._samples(target, measured)])
            self.book.forget(at)
            self._note_recent(targets, measured, at)
            self._news = True
        if self._news:
            self._usages, self._news = self._estimated(at), False

    def _note_recent(self, targets: Sequence[ScaleTarget], measured: Mapping[str, PodMetrics], at: float) -> None:
        known, self._recent = self._recent, {}
        for target in targets:
            window = self._recent[target.uid] = known.get(target.uid) or RecentWindow()
            window.note(minute_mean(at, self.cluster.pods_of(target), self._samples(target, measured)))

    def _estimated(self, at: float) -> dict[str, UsageEstimates]:
        return {
            uid: replace(found, recent=self._recent[uid].usage(at)) if uid in self._recent else found
            for uid, found in usages(self.book, at).items()
        }

    def take_up(self, past: UsageHistograms, since: float) -> None:
        """Usage of before, where it is more than we have seen."""
        self._news = bool(adopt(self.book, past, since)) or self._news

    def _samples(self, target: ScaleTarget, measured: Mapping[str, PodMetrics]) -> Iterator[ContainerSample]:
        for pod in self.cluster.pods_of(target):
            usage = measured.get(f"{target.namespace}/{pod.name}")
            if usage is None or usage.timestamp is None:
                continue
            at, cores, size = usage.timestamp.timestamp(), amounts_of(usage, "cpu"), amounts_of(usage, "memory")
            for name in cores:
                yield ContainerSample(target.uid, pod.name, name, at, _or_nan(cores[name]), _or_nan(size[name]))

    def _note_kills(self, kills: Mapping[str, Mapping[str, OomKill]]) -> None:
        """Each once: a book from a checkpoint may know them."""
        for uid, containers in kills.items():
            for name, kill in containers.items():
                if not self.book.knows_oom(uid, name, kill.finished_at):
                    self.book.observe_oom(uid, kill.pod, name, kill.finished_at, kill.request_bytes)
                    self._news = True


def _or_nan(amount: float | None) -> float:
    return nan if amount is None else amount


class PastUsage(NamedTuple):
    """The past of some workloads, from `since` on."""

    book: UsageHistograms
    since: float


class PastReading(NamedTuple):
    """Under way: the uids of workloads by their names, and the work."""

    asked: Mapping[str, str]
    task: asyncio.Task[PastUsage]


class Rebuild:
    """Reads back from Prometheus, in the background, what new workloads used before the operator saw them.

    Call `look` in every tick: it starts to read the whole history that the histograms keep (8 days) and hands over what
    has arrived, namespace by namespace. The past goes page by page into histograms of its own, so no tick waits and
    nothing is counted twice. The checkpoint serves meanwhile, and where Prometheus knows less.
    """

    def __init__(
        self,
        access: Access,
        kube: Kube,
        settings: HistogramSettings,
        every_s: float,
        matchers: SeriesMatchers = EVERYTHING,
        lane: Lane | None = None,
    ) -> None:
        self.access, self.kube, self.settings, self.matchers = access, kube, settings, matchers
        self.history_s = settings.memory_windows * settings.memory_window_s
        self.step_s = max(every_s, self.history_s / POINTS_PER_QUERY)
        self._done: set[str] = set()
        self.lane = lane or Lanes.new().read_back
        self._reading: dict[str, PastReading] = {}  # by namespace
        self._rest_until: dict[str, float] = {}

    def look(self, targets: Sequence[ScaleTarget], at: float) -> list[PastUsage]:
        """The past that has arrived since the last look."""
        uids = {_name(target): target.uid for target in targets}
        arrived = [past for namespace in list(self._reading) if (past := self._arrived(namespace, at))]
        self._done &= set(uids.values())
        new: dict[str, dict[str, str]] = defaultdict(dict)
        for name, uid in uids.items():
            if uid not in self._done:
                new[name.split("/")[0]][name] = uid
        for namespace, asked in new.items():
            if namespace not in self._reading and at >= self._rest_until.get(namespace, at):
                self._reading[namespace] = PastReading(asked, asyncio.create_task(self._turn(namespace, asked, at)))
        return arrived

    def take_over(self) -> None:
        """Another leader may have watched meanwhile: all of it is read again."""
        for reading in self._reading.values():
            reading.task.cancel()
        self._reading.clear()
        self._rest_until.clear()
        self._done.clear()

    def _arrived(self, namespace: str, at: float) -> PastUsage | None:
        asked, task = self._reading[namespace]
        if not task.done():
            return None
        del self._reading[namespace]
        try:
            found = task.result()
        except TrimtabError as error:
            self._rest_until[namespace] = at + TRY_AGAIN_S
            log.warning("usage before now cannot be read back, which is tried again: %s", error)
            return None
        except Exception:
            self._done |= set(asked.values())
            log.exception("usage before now cannot be read back: a bug of trimtab; the checkpoint has to do")
            return None
        self._done |= set(asked.values())
        self._rest_until.pop(namespace, None)
        log.info("usage before now was read back: workloads %d, containers %d", len(asked), len(found.book.rows))
        return found

    async def _turn(self, namespace: str, uids: Mapping[str, str], at: float) -> PastUsage:
        return await self.lane.do(namespace, lambda: self._read(namespace, uids, at))

    async def _read(self, namespace: str, uids: Mapping[str, str], at: float) -> PastUsage:
        book, since = UsageHistograms(self.settings), at - self.history_s
        async with Prometheus(self.access, timeout_s=TIMEOUT_S) as prometheus:
            history = WorkloadHistory(prometheus, self.kube, self.matchers)
            metric: Literal["cpu", "memory"]
            for metric in ("cpu", "memory"):
                selection = Selection(metric, "pod", (namespace,), frozenset(uids))
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
