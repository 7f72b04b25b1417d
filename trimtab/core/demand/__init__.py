"""Demand: what each signal of an observation asks for, summed over all pods, and the keys it is remembered under.

The sum does not jump when replicas change, so forecasts and tuning work on it. `log` remembers it, `checkpoint` keeps
it across restarts.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isfinite
from zlib import crc32

import msgspec

from trimtab.core.model import FAILED, PENDING, Missing, Observation, Pod, PodSamples, Samples
from trimtab.core.replica_calculator import utilization_percent
from trimtab.policy import Policy, Signal, TuningMode, Utilization, is_cpu

SATURATED = 0.95  # of a limit


def demands(policy: Policy, seen: Observation) -> list[float | None]:
    """Return one for each signal; McNaughton's program knows only the mean CPU utilization of the running pods."""
    pairs = zip(policy.signals, seen.samples, strict=False)
    if is_per_pod(policy):
        return [mean_utilization(signal, sample, seen.pods) for signal, sample in pairs]
    return [demand_of(sample, seen.pods) for _, sample in pairs]


def is_per_pod(policy: Policy) -> bool:
    """Return whether the forecast is that of McNaughton's program, which looks at the utilization of a pod."""
    return policy.forecast is not None and policy.forecast.exact and policy.forecast.model == "linear"


def demand_of(sample: Samples | Missing, pods: Sequence[Pod]) -> float | None:
    """Return the total demand, or None where a ready pod has no sample.

    Values rounded up may each be a grain too large, which over many pods would ask for one more pod; so the grain of
    each value is subtracted.
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
    """Return whether ready pods use nearly all the CPU their limits allow: then demand may exceed usage."""
    if not isinstance(sample, PodSamples) or not is_cpu(signal.metric):
        return False
    ready = [pod for pod in seen.pods if pod.ready and not pod.deleting and pod.name in sample.values]
    limits = [(pod.cpu_limit(signal.metric.container), pod.bridge) for pod in ready]
    allowed = sum(limit * bridge for limit, bridge in limits if limit is not None)
    if not ready or any(limit is None for limit, _ in limits):
        return False
    return sum(sample.values[pod.name] for pod in ready) >= SATURATED * allowed


def mean_utilization(signal: Signal, sample: Samples | Missing, pods: Sequence[Pod]) -> float | None:
    """Return the CPU utilization of all running pods, in percent, or None where a running pod has no sample.

    A pod that starts counts with what it uses, as in McNaughton's program. Its replicas are multiplied with this mean:
    a mean over ready pods alone would order the same pods again and again while they start.
    """
    if not isinstance(signal, Utilization) or not is_cpu(signal.metric) or not isinstance(sample, PodSamples):
        return None
    used = requested = 0.0
    for pod in filter(is_running, pods):
        size = pod.containers.get(signal.metric.container) if signal.metric.container else pod.requests
        request, value = size.cpu_cores if size else None, sample.values.get(pod.name)
        if not request or value is None or not isfinite(value) or value < 0:
            return None
        used, requested = used + value, requested + request
    return utilization_percent(used, requested) if requested else None


def is_running(pod: Pod) -> bool:
    """Return whether the pod has been started and stays, ready or not."""
    return not pod.deleting and pod.phase not in (PENDING, FAILED)


def remembers_demand(policy: Policy) -> bool:
    """Return whether the history will be needed: by a forecast, or by tuning."""
    return policy.forecast is not None or policy.tuning.mode is not TuningMode.OFF


def keys_of(owner: str, policy: Policy) -> tuple[str, ...]:
    return tuple(f"{owner}/{name}" for name in names_of(policy))


def names_of(policy: Policy) -> tuple[str, ...]:
    """Name each signal by what it measures, so that an edited signal does not continue the old one's history."""
    per_pod = is_per_pod(policy)
    marks = (crc32(msgspec.msgpack.encode((signal.metric, per_pod))) for signal in policy.signals)
    return tuple(f"{index}-{mark:08x}" for index, mark in enumerate(marks))
