"""What the operator knows about usage in a simulated cluster: the histograms of a real one, fed once a minute."""

from __future__ import annotations

from msgspec.structs import replace

from trimtab.core.model import Missing, Observation, Reason, UsageEstimates
from trimtab.core.usage import ContainerSample, UsageHistograms, usages
from trimtab.sim.meter import Meter
from trimtab.sim.simulated_pods import CONTAINER, Pods, SimPod

WORKLOAD = "simulated"
SAMPLE_S, ESTIMATE_S = 60.0, 600.0
SAMPLED_PODS = 3  # all ready pods are equally busy, so a few speak for all


class UsageSampler:
    """Usage by container, sampled as the metrics API would, estimated as the operator does."""

    def __init__(self) -> None:
        self._book = UsageHistograms()
        self._usage: UsageEstimates | Missing = Missing(reason=Reason.NOT_ENOUGH_HISTORY)
        self._waiting: list[ContainerSample] = []
        self._sampled_at = self._estimated_at = float("-inf")

    def complete(self, seen: Observation, meter: Meter, pods: Pods) -> Observation:
        """The observation with what is known about usage."""
        if seen.at - self._sampled_at >= SAMPLE_S:
            self._sampled_at = seen.at
            self._waiting += [_sample(pod, meter, seen.at) for pod in _some_ready(pods)]
        if seen.at - self._estimated_at >= ESTIMATE_S:
            self._estimate(seen.at)
        return replace(seen, usage=self._usage)

    def note_kill(self, pod: SimPod, at: float) -> None:
        """An OOM kill is known at once."""
        self._estimate(at)
        self._book.observe_oom(WORKLOAD, pod.name, CONTAINER, at, pod.memory_bytes)
        self._estimate(at)

    def _estimate(self, at: float) -> None:
        self._estimated_at = at
        self._book.observe(self._waiting)  # all at once: nobody asks before
        self._waiting = []
        self._usage = usages(self._book, at).get(WORKLOAD, self._usage)


def _some_ready(pods: Pods) -> list[SimPod]:
    return [pod for pod in pods.all if pod.ready][:SAMPLED_PODS]


def _sample(pod: SimPod, meter: Meter, at: float) -> ContainerSample:
    newest = len(meter.shares) - 1
    cores = meter.mean(meter.shares, newest) * pod.cores
    return ContainerSample(WORKLOAD, pod.name, CONTAINER, at, cores, meter.mean(meter.memory, newest))
