"""propose_ahead: a forecast becomes a proposal: the replicas that the demand to come needs, by the signal's formula."""

from __future__ import annotations

from math import ceil

from trimtab.core.backlog import backlog_rate, rate_of_one
from trimtab.core.demand import is_running
from trimtab.core.model import Forecast, Missing, Observation, Proposal, QueueSample, Reason
from trimtab.core.replica_calculator import whole, within
from trimtab.core.requests import mean_request, scale_point
from trimtab.core.tally import running_and_ready
from trimtab.policy import Backlog, Factor, PodAverage, Policy, Signal, Total, TotalAverage, Utilization, Watermark

_NO_QUEUE = Missing(reason=Reason.ABSENT, detail="the queue is not known")


def propose_ahead(policy: Policy, seen: Observation) -> list[Proposal]:
    """One proposal for each forecast; expired and missing ones say so and ask for nothing."""
    if policy.forecast is None:
        return []
    pairs = zip(policy.signals, seen.forecasts, strict=False)
    return [_from_forecast(policy, signal, forecast, seen) for signal, forecast in pairs]


def _from_forecast(policy: Policy, signal: Signal, forecast: Forecast | Missing, seen: Observation) -> Proposal:
    assert policy.forecast is not None
    source = f"{signal.metric.label} forecast"
    if isinstance(forecast, Missing):
        if forecast.reason is Reason.BEING_READ:  # what it asked for until now stays
            return Proposal(source=source, replicas=seen.spec_replicas, forecast=True)
        return Proposal(source=source, replicas=forecast, forecast=True)
    if seen.at >= forecast.expires_at:
        expired = Missing(reason=Reason.EXPIRED, since=forecast.expires_at)
        return Proposal(source=source, replicas=expired, forecast=True)
    value = forecast.at_quantile(policy.forecast.quantile)
    if isinstance(signal, Backlog):  # what waits comes on top of what arrives
        value += _backlog_rate(policy, signal, seen)
    if forecast.per_pod:
        return _per_pod(signal, value, seen, source)
    share = capacity_of_one(policy, signal, seen)
    if isinstance(share, Missing):
        return Proposal(source=source, replicas=share, value=value, forecast=True)
    # Forecasts carry float noise; a hair above a whole number is that number.
    replicas = max(0.0, value) / share
    ratio = replicas / seen.spec_replicas if seen.spec_replicas else None
    return Proposal(
        source=source, replicas=whole(replicas - 1e-9), value=value, target=share, forecast=True, ratio=ratio
    )


def _per_pod(signal: Signal, value: float, seen: Observation, source: str) -> Proposal:
    """Predictive HPA (McNaughton): the predicted utilization takes the place of the present one in HPA's formula.

    Multiplied are the pods that the mean was taken over. Those that are still Pending were ordered for the same load.
    """
    assert isinstance(signal, Utilization)
    ratio, running = value / signal.percent, sum(map(is_running, seen.pods))
    calm = within(ratio, signal.tolerance.up, signal.tolerance.down)
    replicas = seen.spec_replicas if calm else max(0, ceil(ratio * running))
    return Proposal(source=source, replicas=replicas, value=value, target=float(signal.percent), forecast=True)


def capacity_of_one(policy: Policy, signal: Signal, seen: Observation) -> float | Missing:
    """How much demand one replica carries at its target."""
    if isinstance(signal, Utilization):
        request = scale_point(policy, signal, seen) or mean_request(seen.pods, signal)
        return request if isinstance(request, Missing) else request * signal.percent / 100.0
    if isinstance(signal, Backlog):
        queue = _queue(policy, signal, seen)
        return queue if isinstance(queue, Missing) else rate_of_one(signal, queue.service_time_s)
    if isinstance(signal, Total):
        # The target belongs to the whole: today's ready pods carry `value`, so each carries its share of the target.
        ready = running_and_ready(seen.pods)
        return signal.target / ready if ready else Missing(reason=Reason.NO_READY_PODS)
    return _target(signal)


def _queue(policy: Policy, signal: Backlog, seen: Observation) -> QueueSample | Missing:
    sample = seen.samples[policy.signals.index(signal)]
    return sample if isinstance(sample, QueueSample) else _NO_QUEUE


def _backlog_rate(policy: Policy, signal: Backlog, seen: Observation) -> float:
    queue = _queue(policy, signal, seen)
    return 0.0 if isinstance(queue, Missing) else backlog_rate(signal, seen, queue)


def _target(signal: Signal) -> float:
    if isinstance(signal, Watermark):
        return signal.high
    assert isinstance(signal, PodAverage | TotalAverage | Total | Factor)
    return signal.target
