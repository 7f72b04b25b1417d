"""What an observation says about demand: the sum over all pods, which does not jump when replicas change."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isfinite

from trimtab.core.model import Missing, Observation, Pod, PodSamples, Samples
from trimtab.core.replica_calculator import utilization_percent
from trimtab.policy import PodAverage, Policy, Signal, TotalAverage, Utilization, is_cpu

SATURATED = 0.95  # of a limit


def demands(policy: Policy, seen: Observation) -> list[float | None]:
    """One for each signal; document 003's own line looks at the mean of a pod, which drops when pods are added."""
    pairs = zip(policy.signals, seen.samples, strict=False)
    if is_per_pod(policy):
        return [_mean_of_pods(signal, sample, seen) for signal, sample in pairs]
    return [demand_of(sample, seen.pods) for _, sample in pairs]


def is_per_pod(policy: Policy) -> bool:
    return policy.forecast is not None and policy.forecast.exact and policy.forecast.model == "linear"


def demand_of(sample: Samples | Missing, pods: Sequence[Pod]) -> float | None:
    """None where it is not known: a sum with a silent pod in it is no sum.

    Values that are rounded up may each be a grain too large, which over many pods would ask for one more: what is
    surely there counts.
    """
    if isinstance(sample, Missing):
        return None
    if not isinstance(sample, PodSamples):
        return sample.value if isfinite(sample.value) and sample.value >= 0 else None
    serving = [pod for pod in pods if pod.ready and not pod.deleting]
    if not serving or any(pod.name not in sample.values for pod in serving):
        return None
    if not all(0.0 <= value < inf for value in sample.values.values()):  # NaN is neither
        return None
    return sum(max(0.0, value - sample.grain) for value in sample.values.values())


def saturated(signal: Signal, sample: Samples | Missing, seen: Observation) -> bool:
    """Whether ready pods use nearly all the cpu that their limits allow: then more may be asked for than is used."""
    if not isinstance(sample, PodSamples) or not is_cpu(signal.metric):
        return False
    ready = [pod for pod in seen.pods if pod.ready and not pod.deleting and pod.name in sample.values]
    limits = [pod.cpu_limit(signal.metric.container) for pod in ready]
    allowed = sum(limit for limit in limits if limit is not None)
    if not ready or any(limit is None for limit in limits):
        return False
    return sum(sample.values[pod.name] for pod in ready) >= SATURATED * allowed


def _mean_of_pods(signal: Signal, sample: Samples | Missing, seen: Observation) -> float | None:
    if isinstance(signal, Utilization):
        return _utilization(signal, sample, seen.pods)
    total = demand_of(sample, seen.pods)
    if total is None or not isinstance(signal, PodAverage | TotalAverage):
        return total
    return total / max(1, seen.status_replicas)


def _utilization(signal: Utilization, sample: Samples | Missing, pods: Sequence[Pod]) -> float | None:
    if not isinstance(sample, PodSamples):
        return None
    used = requested = 0.0
    for pod in pods:
        if not pod.ready or pod.deleting:
            continue
        size = pod.containers.get(signal.metric.container) if signal.metric.container else pod.requests
        request, value = size.amount(signal.metric.axis) if size else None, sample.values.get(pod.name)
        if not request or value is None or not isfinite(value) or value < 0:
            return None
        used, requested = used + value, requested + request
    return utilization_percent(used, requested) if requested else None
