"""What the operator knows about usage in a simulated cluster: histograms and recent usage, fed once a minute."""

from __future__ import annotations

from math import nan

from msgspec.structs import replace

from trimtab.core.model import Missing, Observation, PodSamples, Reason, UsageEstimates
from trimtab.core.usage import ContainerSample, UsageHistograms, usages
from trimtab.core.usage.recent import RecentWindow, minute_mean
from trimtab.policy import Metric, MetricKind, Utilization
from trimtab.sim.meter import NO_TROUBLE, Meter, Trouble
from trimtab.sim.simulated_pods import CONTAINER, Pods, SimPod

WORKLOAD = "simulated"
SAMPLE_S = 60.0
CPU, MEMORY = (
    Utilization(metric=Metric(kind=MetricKind.RESOURCE, name=name), percent=100) for name in ("cpu", "memory")
)


class UsageSampler:
    """Usage by container, sampled as the metrics API would, estimated as the operator does."""

    def __init__(self) -> None:
        self._book, self._recent = UsageHistograms(), RecentWindow()
        self._usage: UsageEstimates | Missing = Missing(reason=Reason.NOT_ENOUGH_HISTORY)
        self._sampled_at, self._news = float("-inf"), False  # news: the estimates are older than the book

    def complete(self, seen: Observation, meter: Meter, pods: Pods, trouble: Trouble = NO_TROUBLE) -> Observation:
        """The observation with what is known about usage."""
        if seen.at - self._sampled_at >= SAMPLE_S:
            self._sampled_at, self._news = seen.at, True
            samples = _samples(meter, pods, trouble)
            self._book.observe(samples)
            self._book.forget(seen.at)
            self._recent.note(minute_mean(seen.at, seen.pods, samples))
        if self._news:
            self._news = False
            found = usages(self._book, seen.at).get(WORKLOAD)
            self._usage = replace(found, recent=self._recent.usage(seen.at)) if found is not None else self._usage
        return replace(seen, usage=self._usage)

    def note_kill(self, pod: SimPod, at: float) -> None:
        """An OOM kill is known at once."""
        self._book.observe_oom(WORKLOAD, pod.name, CONTAINER, at, pod.memory_bytes)
        self._news = True

    def restart(self) -> None:
        """Histograms are in checkpoints; what was used in the last minutes is not."""
        self._recent, self._sampled_at = RecentWindow(), float("-inf")


def _samples(meter: Meter, pods: Pods, trouble: Trouble) -> list[ContainerSample]:
    cores, memory = meter.sample(CPU, pods, trouble), meter.sample(MEMORY, pods, trouble)
    if not isinstance(cores, PodSamples) or not isinstance(memory, PodSamples):
        return []
    return [
        ContainerSample(WORKLOAD, pod, CONTAINER, cores.at, used, memory.values.get(pod, nan))
        for pod, used in cores.values.items()
    ]
