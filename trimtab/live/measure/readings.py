"""readings: what the metrics APIs say, as numbers. What nobody can read is no number for its own pod alone."""

from __future__ import annotations

from math import ceil, nan
from typing import NamedTuple

from trimtab.core.model import PodSamples
from trimtab.errors import InvalidInput
from trimtab.policy import Metric
from trimtab.quantity import parse_duration, parse_quantity
from trimtab.wire.objects import CustomMetricValue, ExternalMetricValue, PodMetrics

USUAL_WINDOW_S = 60.0
LONGEST_NANO = 20  # characters of the quickly read ones: nine digits and all the cores of a large machine
WHOLE = 2.0**50  # from here on a float has no thousandths


class Reading(NamedTuple):
    """One value of one pod, container or object; NaN: somebody said something that is no number."""

    value: float
    at: float
    window_s: float = USUAL_WINDOW_S


class PodUsage(NamedTuple):
    """The usage of one pod's containers: name -> (cores, bytes), None where the kubelet said nothing."""

    containers: dict[str, tuple[float | None, float | None]]
    at: float
    window_s: float


def pod_usage(pod: PodMetrics, at: float) -> PodUsage:
    containers = {
        each.name: (_amount(each.usage.get("cpu")), _amount(each.usage.get("memory"))) for each in pod.containers
    }
    return PodUsage(containers, measured_at(pod, at), _window_s(pod.window))


def reading(metric: CustomMetricValue, at: float) -> Reading:
    return Reading(counted(metric.value), measured_at(metric, at))


def measured_at(measured: CustomMetricValue | ExternalMetricValue | PodMetrics, at: float) -> float:
    """When it was measured; what bears no time is of this tick."""
    return measured.timestamp.timestamp() if measured.timestamp else at


def counted(text: str) -> float:
    """The number that a quantity stands for, in the thousandths of Kubernetes' own controller."""
    try:
        return thousandths_up(parse_quantity(text))
    except InvalidInput:
        return nan


def thousandths_up(value: float) -> float:
    """Whole thousandths, rounded up: in these Kubernetes' own controller counts."""
    return value if abs(value) > WHOLE else ceil(value * 1000 - 1e-6) / 1000


def usage_reading(usage: PodUsage, metric: Metric) -> Reading | None:
    """The sum over the containers, or one of them; a container without a value makes the pod's unknown."""
    which = 0 if metric.name == "cpu" else 1
    if metric.container:
        value = usage.containers.get(metric.container, (None, None))[which]
        return None if value is None else Reading(value, usage.at, usage.window_s)
    values = [each[which] for each in usage.containers.values()]
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return None
    return Reading(sum(known), usage.at, usage.window_s)


def pod_samples(readings: dict[str, Reading], at: float) -> PodSamples:
    """Windows pod by pod: scrapes are never quite as far apart, and a hair decides whose sample is of its start-up."""
    window_s = max(found.window_s for found in readings.values())
    return PodSamples(
        values={name: found.value for name, found in readings.items()},
        at=at,
        times={name: found.at for name, found in readings.items()},
        window_s=window_s,
        windows_s={name: found.window_s for name, found in readings.items() if found.window_s != window_s},
    )


def _amount(text: str | None) -> float | None:
    if text is None:
        return None
    if text.endswith("n") and len(text) <= LONGEST_NANO and text[:-1].isdecimal():  # metrics-server's; 20 times faster
        return -(-int(text[:-1]) // 1_000_000) / 1000
    return counted(text)


def _window_s(text: str) -> float:
    try:
        return parse_duration(text) if text else USUAL_WINDOW_S
    except InvalidInput:
        return USUAL_WINDOW_S
