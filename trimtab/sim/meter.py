"""The simulated metrics pipeline: means of the last minute, seen a little later, sometimes not at all."""

from __future__ import annotations

from math import nan
from typing import NamedTuple

from trimtab.core.model import Missing, PodSamples, QueueSample, Reason, Samples, TotalSample
from trimtab.kinds.queues import queue_followed
from trimtab.policy import Backlog, Metric, MetricKind, PodAverage, Signal, TotalAverage, Utilization, Watermark
from trimtab.sim.cluster_spec import ClusterSpec, FaultKind
from trimtab.sim.simulated_pods import Pods

STALE_SCRAPES = 2  # the operator takes older samples for missing


class Trouble(NamedTuple):
    """What is wrong with the metrics now: a fault since a step, and values that come late."""

    fault: FaultKind | None = None
    since: int = 0
    late_s: float = 0.0


NO_TROUBLE = Trouble()


class Meter:
    """Remembers what was there to measure at each step and answers as a metrics API would."""

    def __init__(self, cluster: ClusterSpec, start: float, step_s: float) -> None:
        self._cluster, self._start, self._step_s = cluster, start, step_s
        self._width = max(1, round(cluster.mean_s / step_s))
        self._delay = round(cluster.metric_delay_s / step_s)
        self.totals: list[float] = []  # load on all pods, by step
        self.shares: list[float] = []  # how busy a ready pod was, of its own size
        self.cores: list[float] = []  # used by all of them
        self.sizes: list[float] = []  # cores of a ready pod
        self.percent: list[float] = []  # the mean of the last minute of `shares`, in whole percent
        self.memory: list[float] = []  # bytes of a ready pod
        self.waiting: list[float] = []  # items that wait in the queue
        self.in_system: list[float] = []  # those, and the ones in service

    def record(self, total: float, share: float, cores: float, memory_bytes: float, size: float) -> None:
        self.totals.append(total)
        self.shares.append(share)
        self.cores.append(cores)
        self.sizes.append(size)
        self.percent.append(float(int(100.0 * self.mean(self.shares, len(self.shares) - 1))))
        self.memory.append(memory_bytes)

    def record_queue(self, backlog: float, served: float) -> None:
        """Note the work that waits and the work that was served in a step, in what one pod serves in one."""
        assert self._cluster.queue is not None
        waiting = backlog * self._cluster.pod_capacity * self._step_s
        self.waiting.append(waiting)
        self.in_system.append(waiting + served * self._cluster.pod_capacity * self._cluster.queue.service_time_s)

    def sample(self, signal: Signal, pods: Pods, trouble: Trouble = NO_TROUBLE) -> Samples | Missing:
        """What the source answers at the end of the newest step."""
        newest, fault = len(self.totals) - 1, trouble.fault
        if fault is FaultKind.MISSING:
            return Missing(reason=Reason.ABSENT)
        step = trouble.since - 1 if fault is FaultKind.STALE else newest
        step = min(step, max(0, step - self._delay)) - round(trouble.late_s / self._step_s)
        at = self._start + (step + 1) * self._step_s
        if step < 0:
            return Missing(reason=Reason.ABSENT, detail="nothing has been scraped yet")
        if (newest - step) * self._step_s > STALE_SCRAPES * self._cluster.mean_s:
            return Missing(reason=Reason.STALE, since=at)
        spoiled = _SPOILED.get(fault) if fault else None
        if isinstance(signal, Utilization | PodAverage):
            return self._of_pods(signal.metric, pods, step, at, spoiled)
        seen = self.in_system if self._cluster.queue and queue_followed(signal) else self.totals
        total = self.mean(seen, step) if spoiled is None else spoiled
        if isinstance(signal, Backlog):
            return self._of_queue(signal, step, at, total)
        # HPA's averageValue and a watermark on averages divide the total themselves; others get one pod's share, but
        # of a queue its length.
        averages = isinstance(signal, TotalAverage) or (isinstance(signal, Watermark) and signal.average)
        shared = averages or seen is self.in_system
        return TotalSample(value=total if shared else total / max(1, len(pods.all)), at=at)

    def _of_queue(self, signal: Backlog, step: int, at: float, arrivals: float) -> QueueSample:
        queue = self._cluster.queue
        assert queue is not None, "a Backlog metric needs a simulated queue"
        service_time_s = queue.service_time_s if signal.service_time else signal.service_time_s
        return QueueSample(value=arrivals, at=at, waiting=self.waiting[step], service_time_s=service_time_s)

    def _of_pods(self, metric: Metric, pods: Pods, step: int, at: float, spoiled: float | None) -> PodSamples:
        ready = pods.ready_names()
        if metric.kind in (MetricKind.RESOURCE, MetricKind.CONTAINER) and metric.name == "memory":
            value = self.mean(self.memory, step)
        elif metric.kind in (MetricKind.RESOURCE, MetricKind.CONTAINER):
            value = self._used(step, pods.ready_cores / max(1, pods.ready))
        else:
            value = self.mean(self.totals, step) / max(1, len(ready))
        values = dict.fromkeys(ready, value if spoiled is None else spoiled)
        if len(ready) < len(pods.all):
            values |= dict.fromkeys((pod.name for pod in pods.all if not pod.ready), 0.0)
        return PodSamples(values=values, at=at, window_s=self._cluster.mean_s)

    def _used(self, step: int, size: float) -> float:
        """Cores of one pod: what it used before a resize, it used of its size then."""
        last = slice(max(0, step - self._width + 1), step + 1)
        if all(then in (size, 0.0) for then in self.sizes[last]):
            return self.mean(self.shares, step) * size
        used = [share * then for share, then in zip(self.shares[last], self.sizes[last], strict=True)]
        return sum(used) / len(used)

    def shown_total(self) -> float:
        """What a bridge sees of the load: the newest metric; the newest step too where metrics are never late."""
        newest = len(self.totals) - 1
        mean = self.mean(self.totals, max(0, newest - self._delay))
        return mean if self._delay else max(self.totals[-1], mean)

    def mean(self, series: list[float], step: int) -> float:
        """The mean of the last minute up to a step, added up from the newest on as the compiled lane does."""
        first = max(0, step - self._width + 1)
        total = 0.0
        for index in range(step, first - 1, -1):
            total += series[index]
        return total / (step - first + 1)


_SPOILED: dict[FaultKind, float] = {FaultKind.NAN: nan, FaultKind.NEGATIVE: -1.0, FaultKind.ZERO: 0.0}
