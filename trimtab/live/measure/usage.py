"""usage: samples of every container that may be resized, kept in the core's book; estimates for each workload.

Samples come every minute from the pod metrics that the tick gathers; OOM kills from the pods' own status, at once; what
was before the first look from checkpoints and from Prometheus, where there is one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import nan

from trimtab.core.model import Missing, Reason, UsageEstimates
from trimtab.core.usage.backfill import adopt
from trimtab.core.usage.estimate import usages
from trimtab.core.usage.histograms import ContainerSample, UsageHistograms
from trimtab.core.usage.settings import HistogramSettings
from trimtab.live.look.cluster import ScaleTarget, WatchedCluster
from trimtab.live.measure.readings import amounts_of
from trimtab.live.measure.rebuild import Rebuild
from trimtab.wire.from_kubernetes import killed_at, size_of
from trimtab.wire.objects import PodMetrics

EVERY_S = 60.0
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
        self._namespaces: dict[str, str] = {}  # of the targets, by uid
        self._killed: dict[tuple[str, str], float] = {}  # pod uid and container -> the last kill we know

    def take_over(self, others_led: bool) -> None:
        """Who led meanwhile went on from our checkpoint: theirs has what we saw, too, and takes the place of ours."""
        if self.rebuild is not None:
            self.rebuild.take_over()
        if others_led:
            self.book, self._usages, self._killed = UsageHistograms(self.book.settings), {}, {}
            self._looked_at = float("-inf")

    def clock_set(self, by_s: float) -> None:
        self._looked_at += by_s

    def of(self, target: ScaleTarget) -> UsageEstimates | Missing:
        return self._usages.get(target.uid, NO_SAMPLES)

    def namespaces(self, targets: Sequence[ScaleTarget], at: float) -> set[str]:
        """Whose pods' usage is wanted in this tick: nobody's until it is time again."""
        due = at - self._looked_at >= self.every_s
        return {target.namespace for target in targets} if due else set()

    def look(self, targets: Sequence[ScaleTarget], measured: Mapping[str, PodMetrics], at: float) -> None:
        """`measured` is what was gathered in this tick, by namespace/pod; what is missing lives on until it expires."""
        self._namespaces = {target.uid: target.namespace for target in targets}
        past = self.rebuild.look(targets, at) if self.rebuild else None
        if past is not None:
            self.take_up(past.book, past.since)
        self._note_kills(targets, at)
        if self.namespaces(targets, at):
            self._looked_at = at
            self.book.observe([sample for target in targets for sample in self._samples(target, measured)])
            self.book.forget(at)
            self._news = True
        if self._news:
            self._usages, self._news = usages(self.book, at), False

    def take_up(self, past: UsageHistograms, since: float) -> None:
        """Usage of before, where it is more than we have seen; kills, which may not be in it, are noted again."""
        taken = adopt(self.book, past, since)
        for pod in [pod for uid in taken for pod in self.cluster.members.pods(self._namespaces.get(uid, ""), uid)]:
            for container in pod.spec.containers:
                self._killed.pop((pod.metadata.uid, container.name), None)
        self._news = self._news or bool(taken)

    def _samples(self, target: ScaleTarget, measured: Mapping[str, PodMetrics]) -> Iterator[ContainerSample]:
        for pod in self.cluster.pods_of(target):
            usage = measured.get(f"{target.namespace}/{pod.name}")
            if usage is None or usage.timestamp is None:
                continue
            at, cores, size = usage.timestamp.timestamp(), amounts_of(usage, "cpu"), amounts_of(usage, "memory")
            for name in cores:
                yield ContainerSample(target.uid, pod.name, name, at, _or_nan(cores[name]), _or_nan(size[name]))

    def _note_kills(self, targets: Sequence[ScaleTarget], at: float) -> None:
        """OOM kills that are news; the first look at a pod counts only kills of the last window."""
        here = {}
        for target in targets:
            for pod in self.cluster.members.pods(target.namespace, target.uid):
                for container in pod.spec.containers:
                    killed = killed_at(pod, container.name)
                    if killed is None:
                        continue
                    key = (pod.metadata.uid, container.name)
                    here[key] = killed
                    if killed <= self._killed.get(key, 0.0):
                        continue
                    request = size_of(container.resources.requests).memory_bytes or 0.0
                    place = (target.uid, pod.metadata.name, container.name)
                    self._news = self.book.observe_oom(*place, max(killed, 1.0), request) or self._news
        self._killed = here


def _or_nan(amount: float | None) -> float:
    return nan if amount is None else amount
