"""tally: pods and samples to totals. The one loop over pods; everything after it is scalar.

Pod classes follow Kubernetes' replica calculator: ignored (deleted, failed), unready, missing a sample, ready.
"""

from __future__ import annotations

from math import inf, isfinite
from typing import NamedTuple

from trimtab.core.model import FAILED, PENDING, RUNNING, Missing, Pod, PodSamples, Reason
from trimtab.policy import Metric, PodRules, is_cpu


class Tally(NamedTuple):
    """Totals over the pods of a workload; finite floats and ints only, so that compiled code can share it."""

    ready: int  # pods whose sample counts
    usage: float  # their sum
    request: float  # the sum of their requests (0 when the signal needs none)
    unready: int
    unready_request: float
    missing: int
    missing_request: float
    strangers: int  # samples of pods nobody knows


def tally(
    pods: tuple[Pod, ...],
    samples: PodSamples,
    metric: Metric,
    rules: PodRules,
    at: float,
    needs_request: bool,
    fixed_request: float | None = None,
) -> Tally | Missing:
    """Sum what counts. `metric` tells which request belongs to a pod and whether readiness matters (CPU)."""
    cpu = is_cpu(metric)
    values, container = samples.values, metric.container
    ready = unready = missing = known = 0
    usage = request_sum = unready_request = missing_request = 0.0
    for pod in pods:
        request = fixed_request or 0.0
        if needs_request and not request:
            size = pod.containers.get(container) if container else pod.requests
            # Not size.amount(axis): a call per pod would show in every decision.
            found = None if size is None else size.cpu_cores if cpu else size.memory_bytes
            if found is None:
                return Missing(reason=Reason.NO_REQUEST, detail=_culprit(pod, container))
            request = found
        value = values.get(pod.name)
        if value is not None:
            known += 1
        if pod.deleting or pod.phase == FAILED:
            continue
        if pod.phase == PENDING:
            unready += 1
            unready_request += request
        elif value is None or not isfinite(value) or value < 0:
            missing += 1
            missing_request += request
        elif cpu and not counts_for_cpu(pod, samples, rules, at):
            unready += 1
            unready_request += request
        else:
            ready += 1
            usage += value
            request_sum += request
    return Tally(ready, usage, request_sum, unready, unready_request, missing, missing_request, len(values) - known)


def counts_for_cpu(pod: Pod, samples: PodSamples, rules: PodRules, at: float) -> bool:
    """Whether a running pod's CPU sample is representative, and not of its own start-up."""
    if pod.ready is None or pod.started_at is None:
        return False
    since = pod.ready_since if pod.ready_since is not None else -inf
    if pod.started_at + rules.cpu_init_s > at:
        sampled = samples.times.get(pod.name, samples.at)
        return pod.ready and sampled >= since + samples.windows_s.get(pod.name, samples.window_s)
    return pod.ready or pod.started_at + rules.readiness_delay_s <= since


def running_and_ready(pods: tuple[Pod, ...]) -> int:
    """Kubernetes' count for a value that belongs to the whole workload; a pod on its way out still carries load."""
    return sum(1 for pod in pods if pod.phase == RUNNING and pod.ready)


def serves(pod: Pod, rules: PodRules, at: float) -> bool:
    """The watermarks' count: ready and staying, or Pending for less than the grace."""
    if pod.deleting:
        return False
    if pod.phase == RUNNING:
        return bool(pod.ready)
    since = pod.ready_since if pod.ready_since is not None else pod.started_at
    grace_s = rules.pending_grace_s
    return pod.phase == PENDING and grace_s is not None and since is not None and at - since < grace_s


def _culprit(pod: Pod, container: str) -> str:
    return f"container {container or pod.no_request or '?'} of pod {pod.name}"
