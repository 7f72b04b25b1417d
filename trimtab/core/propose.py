"""propose: how many replicas each signal asks for. The formulas are Kubernetes' replica calculator's.

A sample that is no value proposes Missing; the arithmetic is in replica_calculator.py.
"""

from __future__ import annotations

from math import isfinite

from msgspec.structs import replace

from trimtab.core.backlog import propose_backlog
from trimtab.core.model import Missing, Observation, PodSamples, Proposal, QueueSample, Reason, Samples
from trimtab.core.replica_calculator import (
    PodMultiple,
    average_value,
    by_average,
    by_total_average,
    by_utilization,
    by_value,
    total_average_ratio,
    utilization_percent,
    whole,
)
from trimtab.core.requests import scale_point
from trimtab.core.tally import running_and_ready, serves, tally
from trimtab.core.watermark import watermark_replicas
from trimtab.policy import (
    Absence,
    Backlog,
    Factor,
    MetricKind,
    PodAverage,
    Policy,
    Signal,
    Total,
    TotalAverage,
    Utilization,
    Watermark,
)


def propose(policy: Policy, seen: Observation) -> list[Proposal]:
    """One proposal for each signal, in order; a signal without a usable sample proposes Missing."""
    return [
        _propose_one(policy, signal, seen, seen.samples[index] if index < len(seen.samples) else _ABSENT)
        for index, signal in enumerate(policy.signals)
    ]


_ABSENT = Missing(reason=Reason.ABSENT)


def _propose_one(policy: Policy, signal: Signal, seen: Observation, sample: Samples | Missing) -> Proposal:
    usable = judge(sample, policy.absence, seen.at)
    if isinstance(usable, Missing):
        return Proposal(source=signal.metric.label, replicas=usable)
    if isinstance(usable, PodSamples):
        return _from_pods(policy, signal, seen, usable)
    if isinstance(usable, QueueSample):
        assert isinstance(signal, Backlog)
        return propose_backlog(signal, seen, usable)
    return _from_total(policy, signal, seen, usable.value)


def judge(sample: Samples | Missing, absence: Absence, at: float) -> Samples | Missing:
    """Absent, stale, zero, negative and not-a-number are different, and none of them is a value."""
    if isinstance(sample, Missing):
        return sample
    if absence.stale_after_s is not None and at - sample.at > absence.stale_after_s:
        return Missing(reason=Reason.STALE, since=sample.at)
    if not isinstance(sample, PodSamples):
        if not isfinite(sample.value):
            return Missing(reason=Reason.NOT_FINITE)
        if sample.value < 0:
            return Missing(reason=Reason.NEGATIVE)
        if sample.value == 0 and absence.zero_is_missing:
            return Missing(reason=Reason.ZERO)
    return sample


def _from_pods(policy: Policy, signal: Signal, seen: Observation, samples: PodSamples) -> Proposal:
    if isinstance(signal, Watermark):
        return _from_serving(policy, signal, seen, samples)
    by_request = isinstance(signal, Utilization)
    fixed = scale_point(policy, signal, seen) if by_request else None
    totals = tally(seen.pods, samples, signal.metric, policy.pods, seen.at, by_request, fixed)
    if isinstance(totals, Missing):
        return Proposal(source=signal.metric.label, replicas=totals)
    if totals.ready == 0 or (by_request and totals.request <= 0):
        reason = Reason.NO_REQUEST if totals.ready else Reason.NO_READY_PODS
        return Proposal(source=signal.metric.label, replicas=Missing(reason=reason))
    if isinstance(signal, Utilization):
        value, target = utilization_percent(totals.usage, totals.request), float(signal.percent)
        wanted = by_utilization(totals, target, signal.tolerance.up, signal.tolerance.down, seen.spec_replicas)
    else:
        assert isinstance(signal, PodAverage), f"{type(signal).__name__} needs one total, not a value for each pod"
        value, target = average_value(totals.usage, totals.ready), signal.target
        wanted = by_average(totals, target, signal.tolerance.up, signal.tolerance.down, seen.spec_replicas)
    return _proposal(signal, wanted, value, target, seen)


def _proposal(signal: Signal, wanted: PodMultiple, value: float, target: float, seen: Observation) -> Proposal:
    return Proposal(
        source=signal.metric.label,
        replicas=wanted.replicas,
        value=value,
        target=target,
        ratio=wanted.of(seen.spec_replicas),
    )


def _from_serving(policy: Policy, signal: Watermark, seen: Observation, samples: PodSamples) -> Proposal:
    """The sum over the pods that serve; with a silent one it is only a lower bound: enough to grow, not to shrink."""
    known = [samples.values.get(pod.name) for pod in seen.pods if serves(pod, policy.pods, seen.at)]
    good = [value for value in known if value is not None and isfinite(value) and value >= 0]
    proposal = _from_total(policy, signal, seen, sum(good))
    lowers = not isinstance(proposal.replicas, Missing) and proposal.replicas < seen.spec_replicas
    return replace(proposal, replicas=Missing(reason=Reason.PARTIAL)) if lowers and len(good) < len(known) else proposal


def _from_total(policy: Policy, signal: Signal, seen: Observation, value: float) -> Proposal:
    name = signal.metric.label
    if isinstance(signal, TotalAverage):
        return _from_total_average(signal, seen, value)
    if isinstance(signal, Factor):
        factor = value / signal.target
        replicas = seen.spec_replicas * factor
        return Proposal(source=name, replicas=replicas, value=value, target=signal.target, ratio=factor)
    if isinstance(signal, Watermark):
        ready = sum(1 for pod in seen.pods if serves(pod, policy.pods, seen.at))
        return watermark_replicas(signal, value, ready, seen, policy.bounds)
    assert isinstance(signal, Total), f"{type(signal).__name__} needs a value for each pod, not one total"
    ready = running_and_ready(seen.pods)
    wanted = by_value(value, signal.target, signal.tolerance.up, signal.tolerance.down, seen.spec_replicas, ready)
    proposal = _proposal(signal, wanted, value, signal.target, seen)
    # A query is no metric of Kubernetes, which rounds 25 x 0.28 up to 8: the noise of tenths is forgiven as in 002.
    query = signal.metric.kind is MetricKind.PROMETHEUS
    return replace(proposal, replicas=whole(wanted.ratio * wanted.pods - 1e-9)) if query else proposal


def _from_total_average(signal: TotalAverage, seen: Observation, value: float) -> Proposal:
    count, up, down = seen.status_replicas, signal.tolerance.up, signal.tolerance.down
    wanted = PodMultiple(total_average_ratio(value, signal.target, up, down, count), count) if count else None
    return Proposal(
        source=signal.metric.label,
        replicas=by_total_average(value, signal.target, up, down, count),
        value=value / count if count else value,
        target=signal.target,
        ratio=wanted.of(seen.spec_replicas) if wanted else None,
    )
