"""propose: how many replicas each signal asks for. The formulas are Kubernetes' replica calculator's.

utilization = trunc(100 * usage / request); ratio = utilization / target; replicas = ceil(ratio * ready pods).
Leaves take and give numbers only, so that the compiled lane can share them.
"""

from __future__ import annotations

from math import ceil, inf, isfinite, trunc

from msgspec.structs import replace

from trimtab.core.model import Memory, Missing, Observation, PodSamples, Proposal, Reason, TotalSample
from trimtab.core.tally import Tally, running_and_ready, serves, tally
from trimtab.core.watermark import watermark_replicas
from trimtab.policy import (
    Absence,
    Factor,
    PodAverage,
    Policy,
    Signal,
    Total,
    TotalAverage,
    Utilization,
    Watermark,
)

MAX_REPLICAS = 2**31 - 1
_GRAIN = 1e-9  # integer divisions of milli-units survive the trip through floats


def propose(policy: Policy, seen: Observation, memory: Memory) -> list[Proposal]:
    """One proposal for each signal, in order; a signal without a usable sample proposes Missing."""
    return [
        _propose_one(policy, signal, seen, seen.samples[index] if index < len(seen.samples) else _ABSENT)
        for index, signal in enumerate(policy.signals)
    ]


_ABSENT = Missing(reason=Reason.ABSENT)


def _propose_one(
    policy: Policy, signal: Signal, seen: Observation, sample: PodSamples | TotalSample | Missing
) -> Proposal:
    usable = judge(sample, policy.absence, seen.at)
    if isinstance(usable, Missing):
        return Proposal(source=signal.metric.label, replicas=usable)
    if isinstance(usable, PodSamples):
        return _from_pods(policy, signal, seen, usable)
    return _from_total(policy, signal, seen, usable.value)


def judge(
    sample: PodSamples | TotalSample | Missing, absence: Absence, at: float
) -> PodSamples | TotalSample | Missing:
    """Absent, stale, zero, negative and not-a-number are different, and none of them is a value."""
    if isinstance(sample, Missing):
        return sample
    if absence.stale_after_s is not None and at - sample.at > absence.stale_after_s:
        return Missing(reason=Reason.STALE, since=sample.at)
    if isinstance(sample, TotalSample):
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
        replicas = by_utilization(totals, target, signal.tolerance.up, signal.tolerance.down, seen.spec_replicas)
    else:
        assert isinstance(signal, PodAverage), f"{type(signal).__name__} needs one total, not a value for each pod"
        value, target = average_value(totals.usage, totals.ready), signal.target
        replicas = by_average(totals, target, signal.tolerance.up, signal.tolerance.down, seen.spec_replicas)
    return Proposal(source=signal.metric.label, replicas=replicas, value=value, target=target)


def scale_point(policy: Policy, signal: Signal, seen: Observation) -> float | None:
    """The request that a percentage was written for. Where vertical scaling alone moves requests the target moves with
    them, so that the usage at which a pod is added stays; a blend looks after that itself.
    """
    if policy.vertical is None or policy.blend is not None or not seen.written_for:
        return None
    cpu, container = signal.metric.name == "cpu", signal.metric.container
    sizes = [size for name, size in seen.written_for.items() if container in ("", name)]
    return sum((size.cpu_cores if cpu else size.memory_bytes) or 0.0 for size in sizes) or None


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
        replicas = by_total_average(
            value, signal.target, signal.tolerance.up, signal.tolerance.down, seen.status_replicas
        )
        share = value / seen.status_replicas if seen.status_replicas else value
        return Proposal(source=name, replicas=replicas, value=share, target=signal.target)
    if isinstance(signal, Factor):
        return Proposal(
            source=name,
            replicas=seen.spec_replicas * (value / signal.target),
            value=value,
            target=signal.target,
        )
    if isinstance(signal, Watermark):
        ready = sum(1 for pod in seen.pods if serves(pod, policy.pods, seen.at))
        return watermark_replicas(signal, value, ready, seen, policy.bounds)
    assert isinstance(signal, Total), f"{type(signal).__name__} needs a value for each pod, not one total"
    ready = running_and_ready(seen.pods)
    replicas = by_value(value, signal.target, signal.tolerance.up, signal.tolerance.down, seen.spec_replicas, ready)
    return Proposal(source=name, replicas=replicas, value=value, target=signal.target)


# --- arithmetic leaves -----------------------------------------------------------------------------------------------


def within(ratio: float, up: float, down: float) -> bool:
    return 1.0 - down <= ratio <= 1.0 + up


def whole(replicas: float) -> int:
    """Ceil, saturating where Kubernetes does."""
    return MAX_REPLICAS if replicas >= MAX_REPLICAS else ceil(replicas)


def utilization_percent(usage: float, request: float) -> float:
    return float(trunc(100.0 * usage / request + _GRAIN))


def average_value(total: float, count: int) -> float:
    """The mean in whole thousandths, as Kubernetes keeps it."""
    return trunc(total * 1000.0 / count + 1e-6) / 1000.0


def in_thousandths(value: float) -> float:
    """As Kubernetes counts, without the noise of tenths: 70, not 70.00000000000001."""
    return round(value * 1000.0, 6)


def ratio_of(value: float, target: float) -> float:
    """0.09 / 0.1 is 0.9 and just inside the tolerance, 1.1 / 0.1 is 11; as plain floats they are neither."""
    return in_thousandths(value) / in_thousandths(target)


def by_utilization(t: Tally, percent: float, up: float, down: float, current: int) -> int:
    ratio = utilization_percent(t.usage, t.request) / percent
    if t.missing == 0 and not (t.unready > 0 and ratio > 1.0):
        return current if within(ratio, up, down) else whole(ratio * t.ready)
    usage, request, count = t.usage, t.request, t.ready + t.strangers
    if t.missing and ratio != 1.0:
        # A silent pod is busy when we would shrink and idle when we would grow: both damp the step.
        usage += max(100.0, percent) / 100.0 * t.missing_request if ratio < 1.0 else 0.0
        request, count = request + t.missing_request, count + t.missing
    if ratio > 1.0:
        request, count = request + t.unready_request, count + t.unready
    again = utilization_percent(usage, request) / percent
    return _rebalanced(ratio, again, count, up, down, current)


def by_average(t: Tally, target: float, up: float, down: float, current: int) -> int:
    ratio = ratio_of(average_value(t.usage, t.ready), target)
    if t.missing == 0 and not (t.unready > 0 and ratio > 1.0):
        return current if within(ratio, up, down) else whole(ratio * t.ready)
    usage, count = t.usage, t.ready + t.strangers
    if t.missing and ratio != 1.0:
        usage += target * t.missing if ratio < 1.0 else 0.0
        count += t.missing
    if ratio > 1.0:
        count += t.unready
    again = ratio_of(average_value(usage, count), target)
    return _rebalanced(ratio, again, count, up, down, current)


def _rebalanced(ratio: float, again: float, count: int, up: float, down: float, current: int) -> int:
    if within(again, up, down) or (ratio < 1.0 < again) or (ratio > 1.0 > again):
        return current
    replicas = whole(again * count)
    if (again < 1.0 and replicas > current) or (again > 1.0 and replicas < current):
        return current
    return replicas


def by_value(value: float, target: float, up: float, down: float, current: int, ready: int) -> int:
    ratio = ratio_of(value, target)
    if current == 0:
        return whole(ratio)
    return current if within(ratio, up, down) else whole(ratio * ready)


def by_total_average(total: float, target: float, up: float, down: float, replicas: int) -> int:
    ratio = in_thousandths(total) / (in_thousandths(target) * replicas) if replicas else inf
    return replicas if within(ratio, up, down) else whole(ratio_of(total, target))
