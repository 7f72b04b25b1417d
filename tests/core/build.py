"""Small factories: the shortest way to say what a test sees."""

from __future__ import annotations

from trimtab.core.model import Observation, Pod, PodSamples, TotalSample
from trimtab.policy import (
    Bounds,
    Cooldown,
    Factor,
    MaxFactor,
    Metric,
    MetricKind,
    MinFactor,
    Policy,
    RoundUp,
    Size,
    TotalAverage,
    Utilization,
)

NOW = 1_700_000_000.0
CPU = Metric(kind=MetricKind.RESOURCE, name="cpu")
RPS = Metric(kind=MetricKind.EXTERNAL, name="requests_per_second")
QUERY = Metric(kind=MetricKind.PROMETHEUS, query="up")


def pod(index: int, request: float = 1.0, **facts: object) -> Pod:
    """A Guaranteed pod that has been ready for an hour."""
    base: dict[str, object] = {
        "name": f"pod-{index}",
        "created_at": NOW - 3660,
        "started_at": NOW - 3650,
        "ready_since": NOW - 3600,
        "requests": Size(cpu_cores=request, memory_bytes=2**30),
        "cpu_limits": {"": request},
    }
    return Pod(**(base | facts))  # type: ignore[arg-type]


def busy(replicas: int, utilization: float, at: float = NOW, request: float = 1.0) -> Observation:
    """Ready pods, each using this share of its CPU request."""
    pods = tuple(pod(index, request) for index in range(replicas))
    samples = PodSamples(values={one.name: utilization * request for one in pods}, at=at)
    return Observation(at=at, spec_replicas=replicas, status_replicas=replicas, pods=pods, samples=(samples,))


def total(replicas: int, value: float, at: float = NOW) -> Observation:
    """One number for the whole workload."""
    pods = tuple(pod(index) for index in range(replicas))
    sample = TotalSample(value=value, at=at)
    return Observation(at=at, spec_replicas=replicas, status_replicas=replicas, pods=pods, samples=(sample,))


def hpa(percent: int = 50, least: int = 1, most: int = 100, **rest: object) -> Policy:
    """A plain HPA on CPU utilisation."""
    bounds = Bounds(min_replicas=least, max_replicas=most)
    return Policy(signals=(Utilization(metric=CPU, percent=percent),), bounds=bounds, **rest)  # type: ignore[arg-type]


def per_second(target: float = 10.0, least: int = 1, most: int = 100, **rest: object) -> Policy:
    bounds = Bounds(min_replicas=least, max_replicas=most)
    return Policy(signals=(TotalAverage(metric=RPS, target=target),), bounds=bounds, **rest)  # type: ignore[arg-type]


def custom_hpa(
    target: float = 100.0,
    least: int = 1,
    most: int = 50,
    up: tuple[float, float, float] = (15, 0.1, 1.0),
    down: tuple[float, float, float] = (15, 0.1, 1.0),
) -> Policy:
    """Nanit custom-hpa: (cooldown_s, min factor, max factor) of each direction."""
    return Policy(
        signals=(Factor(metric=QUERY, target=target),),
        settle=(
            MaxFactor(up=up[2], down=down[2]),
            Cooldown(up_s=up[0], down_s=down[0]),
            MinFactor(up=up[1], down=down[1]),
            RoundUp(),
        ),
        bounds=Bounds(min_replicas=least, max_replicas=most),
    )
