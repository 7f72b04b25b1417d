"""readings: what the metrics APIs answer, as samples that the core may trust, or as Missing with its reason.

What nobody can read is no number for its own pod alone.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from math import ceil, isfinite, nan
from typing import NamedTuple

from msgspec.structs import replace

from trimtab.core.model import Missing, Pod, PodSamples, Reason, Samples, TotalSample
from trimtab.errors import InvalidInput
from trimtab.policy import Metric, MetricKind
from trimtab.quantity import parse_duration, parse_quantity
from trimtab.wire.objects import CustomMetricValue, ExternalMetricValue, PodMetrics

BY_USAGE = (MetricKind.RESOURCE, MetricKind.CONTAINER)
USUAL_WINDOW_S = 60.0
LONGEST_KIBI = 12  # the same of bytes: terabytes
LONGEST_NANO = 20  # characters of the quickly read ones: nine digits and all the cores of a large machine
LONGEST_WINDOW = 20
_SECONDS = re.compile(r"(\d+(?:\.\d*)?)s", re.ASCII)
WHOLE = 2.0**50  # from here on a float has no thousandths


GRAIN = 0.001  # of what Kubernetes measures


class Reading(NamedTuple):
    """One value of one pod, container or object; NaN: somebody said something that is no number."""

    value: float
    at: float
    window_s: float = USUAL_WINDOW_S


Answer = dict[str, PodMetrics] | dict[str, Reading] | Reading | Missing  # usage is read where somebody asks for it


def samples_of(
    answer: Answer, metric: Metric, namespace: str, pods: tuple[Pod, ...], at: float, stale_after_s: float
) -> Samples | Missing:
    """The sample of each pod, or of all together, if it is finite and fresh."""
    if isinstance(answer, Missing):
        return answer
    if isinstance(answer, Reading):
        return _refused(answer, at, stale_after_s) or TotalSample(value=answer.value, at=answer.at)
    values: dict[str, Reading] = {}
    why = Missing(reason=Reason.ABSENT, detail=f"no pod has {metric.label}")
    for pod in pods:
        found = answer.get(f"{namespace}/{pod.name}" if metric.kind in BY_USAGE else pod.name)
        reading = _of_usage(found, metric) if isinstance(found, PodMetrics) else found
        if reading is None:
            continue
        if refused := _refused(reading, at, stale_after_s):
            why = replace(refused, detail=f"pod {pod.name}")
        else:
            values[pod.name] = reading
    return _samples(values, at) if values else why


def _refused(reading: Reading, at: float, stale_after_s: float) -> Missing | None:
    """Why this is no value, where it is none."""
    if not isfinite(reading.value):
        return Missing(reason=Reason.NOT_FINITE)
    if reading.value < 0:
        return Missing(reason=Reason.NEGATIVE)
    if abs(at - reading.at) > stale_after_s:  # from the future: one of the clocks is wrong
        return Missing(reason=Reason.STALE, since=reading.at)
    return None


def dated(pod: PodMetrics, at: float) -> PodMetrics:
    """What bears no time is of this tick."""
    return pod if pod.timestamp else replace(pod, timestamp=datetime.fromtimestamp(at, UTC))


def amounts_of(pod: PodMetrics, name: str) -> dict[str, float | None]:
    """The "cpu" or "memory" of each container, in cores or bytes."""
    return {each.name: _amount(each.usage.cpu if name == "cpu" else each.usage.memory) for each in pod.containers}


def _amount(text: str | None) -> float | None:
    if text is None:
        return None
    if text.endswith("n") and len(text) <= LONGEST_NANO and text[:-1].isdecimal():  # metrics-server's; 20 times faster
        return -(-int(text[:-1]) // 1_000_000) / 1000
    if text.endswith("Ki") and len(text) <= LONGEST_KIBI and text[:-2].isdecimal():
        return int(text[:-2]) * 1024.0
    return counted(text)


def counted(text: str) -> float:
    """The number that a quantity stands for, in the thousandths of Kubernetes' own controller."""
    try:
        return thousandths_up(parse_quantity(text))
    except InvalidInput:
        return nan


def thousandths_up(value: float) -> float:
    """Whole thousandths, rounded up: in these Kubernetes' own controller counts."""
    return value if abs(value) > WHOLE else ceil(value * 1000 - 1e-6) / 1000


def _window_s(text: str) -> float:
    if len(text) <= LONGEST_WINDOW and (found := _SECONDS.fullmatch(text)):  # metrics-server's
        return float(found[1])
    try:
        return parse_duration(text) if text else USUAL_WINDOW_S
    except InvalidInput:
        return USUAL_WINDOW_S


def _of_usage(pod: PodMetrics, metric: Metric) -> Reading | None:
    """The sum over the containers, or one of them; a container without a value makes the pod's unknown."""
    amounts = amounts_of(pod, metric.name)
    values = [amounts.get(metric.container)] if metric.container else list(amounts.values())
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return None
    assert pod.timestamp is not None
    return Reading(sum(known), pod.timestamp.timestamp(), _window_s(pod.window))


def reading_of(metric: CustomMetricValue, at: float) -> Reading:
    return Reading(counted(metric.value), measured_at(metric, at))


def measured_at(measured: CustomMetricValue | ExternalMetricValue, at: float) -> float:
    """When it was measured; what bears no time is of this tick."""
    return measured.timestamp.timestamp() if measured.timestamp else at


def _samples(readings: dict[str, Reading], at: float) -> PodSamples:
    """Windows pod by pod: scrapes are never quite as far apart, and a hair decides whose sample is of its start-up."""
    window_s = max(reading.window_s for reading in readings.values())
    return PodSamples(
        values={name: reading.value for name, reading in readings.items()},
        at=at,
        grain=GRAIN,
        times={name: reading.at for name, reading in readings.items()},
        window_s=window_s,
        windows_s={name: reading.window_s for name, reading in readings.items() if reading.window_s != window_s},
    )
