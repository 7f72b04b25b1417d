"""usage: samples of every container that may be resized, kept in the core's book; estimates for each workload.

Samples come from metrics.k8s.io every minute; OOM kills from the pods' own status, at once; what was before the first
look from Prometheus, where there is one.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from math import nan

from trimtab.core.model import Missing, Reason, UsageEstimates
from trimtab.core.usage.backfill import adopt
from trimtab.core.usage.estimate import usages
from trimtab.core.usage.histograms import ContainerSample, UsageHistograms
from trimtab.core.usage.settings import HistogramSettings
from trimtab.errors import TrimtabError
from trimtab.live.look.facts import killed_at, size_of
from trimtab.live.look.world import Target, World
from trimtab.live.measure.gather import pod_usage
from trimtab.live.measure.rebuild import Rebuild
from trimtab.wire.objects import PodMetrics, WirePod
from trimtab.wire.resources import POD_METRICS

EVERY_S, CHECKPOINT_S = 60.0, 600.0
NO_SAMPLES = Missing(reason=Reason.NOT_ENOUGH_HISTORY, detail="no usage of this workload has been seen yet")
log = logging.getLogger(__name__)


class UsageWatch:
    """Looks at the usage of the given workloads when it is time to; `of` answers at any time."""

    def __init__(
        self,
        world: World,
        settings: HistogramSettings,
        every_s: float = EVERY_S,
        checkpoint_s: float = CHECKPOINT_S,
        rebuild: Rebuild | None = None,
    ) -> None:
        self.world, self.every_s, self.checkpoint_s, self.rebuild = world, every_s, checkpoint_s, rebuild
        self.book = UsageHistograms(settings)
        self._looked_at = float("-inf")
        self._usages: dict[str, UsageEstimates] = {}
        self._killed: dict[tuple[str, str], float] = {}  # pod uid and container -> the last kill we know

    def of(self, target: Target) -> UsageEstimates | Missing:
        return self._usages.get(target.uid, NO_SAMPLES)

    async def look(self, targets: Sequence[Target], at: float) -> None:
        news = self._take_past(targets, at)
        news = self._note_kills(targets, at) or news
        if at - self._looked_at >= self.every_s and targets:
            self._looked_at = at
            for namespace in sorted({target.namespace for target in targets}):
                await self._sample(namespace, [one for one in targets if one.namespace == namespace])
            self.book.forget(at)
        elif not news:
            return
        self._usages = usages(self.book, at)

    async def _sample(self, namespace: str, targets: Sequence[Target]) -> None:
        try:
            listing = await self.world.kube.list(PodMetrics, POD_METRICS, namespace)
        except TrimtabError as error:  # estimates live on until they expire
            log.warning("usage of %s: %s", namespace, error)
            return
        measured = {one.metadata.name: pod_usage(one) for one in listing.items}
        samples = []
        for target in targets:
            for pod in self.world.pods_of(target):
                if (usage := measured.get(pod.name)) is None:
                    continue
                for name, (cores, size) in usage.containers.items():
                    amounts = (nan if cores is None else cores, nan if size is None else size)
                    samples.append(ContainerSample(target.uid, pod.name, name, usage.at, *amounts))
        self.book.observe(samples)

    def _take_past(self, targets: Sequence[Target], at: float) -> bool:
        """What Prometheus remembers; kills, which it does not, are noted again."""
        found = self.rebuild.look(targets, at) if self.rebuild else None
        if found is None:
            return False
        taken = adopt(self.book, found.book, found.since)
        for target in targets:
            for pod in self.world.members.pods(target.uid) if target.uid in taken else ():
                for container in pod.spec.containers:
                    self._killed.pop((pod.metadata.uid, container.name), None)
        return bool(taken)

    def _note_kills(self, targets: Sequence[Target], at: float) -> bool:
        """OOM kills that are news; the first look at a pod counts only kills of the last window."""
        news, here = False, {}
        for target in targets:
            for pod in self.world.members.pods(target.uid):
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
                    news = self.book.observe_oom(*place, max(killed, 1.0), request) or news
        self._killed = here
        return news


def newest_overload(pods: Sequence[WirePod]) -> float | None:
    """When a container of these pods was last killed for its memory, or a pod evicted."""
    moments = [killed_at(pod, one.name) for pod in pods for one in pod.status.container_statuses]
    for pod in pods:
        if pod.status.phase == "Failed" and pod.status.reason == "Evicted" and pod.metadata.creation_timestamp:
            started = pod.status.start_time or pod.metadata.creation_timestamp
            moments.append(started.timestamp())
    return max((one for one in moments if one is not None), default=None)
