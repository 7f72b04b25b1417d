"""Backlog: how many pods a queue needs.

pods = (arrivals + waiting / drain) x service time / (concurrency x share), with arrivals per second and the drain time
in seconds. Arrivals x service time is the number of items in service that keeps the queue as long as it is (Little's
law); the second term works the queue off. A pod that is ordered now serves only after its start-up time, so a shorter
drain time would order pods for a backlog that they find gone.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.core.model import Missing, Observation, Proposal, QueueSample, Reason, Samples, TotalSample
from trimtab.core.replica_calculator import by_total_average
from trimtab.core.startup import usual_startup_s
from trimtab.policy import Backlog


def queue_sample(signal: Backlog, parts: Iterator[Samples | Missing]) -> QueueSample | Missing:
    """Join what was measured for the signal; without arrivals or service time nothing can be said."""
    arrivals, waiting = _value(next(parts), "arrivals"), _value(next(parts), "items waiting")
    service_time: TotalSample | Missing | None = _value(next(parts), "service time") if signal.service_time else None
    if isinstance(arrivals, Missing):
        return arrivals
    if isinstance(service_time, Missing) and signal.service_time_s > 0:  # no item was finished for a while
        service_time = None
    if isinstance(service_time, Missing):
        return service_time
    seconds = signal.service_time_s if service_time is None else service_time.value
    if seconds <= 0 < signal.service_time_s:
        seconds = signal.service_time_s
    if seconds <= 0:
        return Missing(reason=Reason.ZERO, detail="service time")
    known = waiting if isinstance(waiting, Missing) else waiting.value
    return QueueSample(value=arrivals.value, at=arrivals.at, waiting=known, service_time_s=seconds)


def _value(sample: Samples | Missing, part: str) -> TotalSample | Missing:
    """One number, or why there is none and of which part."""
    if isinstance(sample, Missing):
        return Missing(reason=sample.reason, since=sample.since, detail=f"{part} {sample.detail}".strip())
    assert isinstance(sample, TotalSample), "a queue is measured by queries"
    return sample


def rate_of_one(signal: Backlog, service_time_s: float) -> float:
    """Return the items per second that one full pod finishes."""
    return signal.concurrency * signal.share / service_time_s


def drain_s(signal: Backlog, seen: Observation) -> float:
    return signal.drain_s if signal.drain_s is not None else max(signal.wait_s, usual_startup_s(seen))


def backlog_rate(signal: Backlog, seen: Observation, sample: QueueSample) -> float:
    """Return the items per second that have to be finished beside those that arrive; 0 where the queue is not known."""
    return 0.0 if isinstance(sample.waiting, Missing) else sample.waiting / drain_s(signal, seen)


def propose_backlog(signal: Backlog, seen: Observation, sample: QueueSample) -> Proposal:
    """Propose the pods for arrivals and backlog; where the queue is not known, arrivals may only add pods."""
    rate, current = sample.value + backlog_rate(signal, seen, sample), seen.status_replicas
    one = rate_of_one(signal, sample.service_time_s)
    wanted = by_total_average(rate, one, signal.tolerance.up, signal.tolerance.down, current)
    proposal = Proposal(source=signal.metric.label, replicas=wanted, value=rate / max(1, current), target=one)
    if isinstance(sample.waiting, Missing) and wanted < seen.spec_replicas:
        return Proposal(source=signal.metric.label, replicas=sample.waiting)
    return proposal
