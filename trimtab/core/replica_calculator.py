"""Kubernetes' replica calculator: how many replicas a measured value means, with its tolerance and its rounding.

utilization = trunc(100 * usage / request); ratio = utilization / target; replicas = ceil(ratio * ready pods).
Those that the compiled lane shares take and give numbers only.
"""

from __future__ import annotations

from math import ceil, inf, trunc
from typing import NamedTuple

from trimtab.core.tally import Tally

MAX_REPLICAS = 2**31 - 1
GRAIN = 1e-9  # integer divisions of milli-units survive the trip through floats


def within(ratio: float, up: float, down: float) -> bool:
    return 1.0 - down <= ratio <= 1.0 + up


def whole(replicas: float) -> int:
    """Ceil, saturating where Kubernetes does."""
    return MAX_REPLICAS if replicas >= MAX_REPLICAS else ceil(replicas)


def utilization_percent(usage: float, request: float) -> float:
    return float(trunc(100.0 * usage / request + GRAIN))


def average_value(total: float, count: int) -> float:
    """The mean in whole thousandths, as Kubernetes keeps it."""
    return trunc(total * 1000.0 / count + 1e-6) / 1000.0


def in_thousandths(value: float) -> float:
    """As Kubernetes counts, without the noise of tenths: 70, not 70.00000000000001."""
    return round(value * 1000.0, 6)


def ratio_of(value: float, target: float) -> float:
    """0.09 / 0.1 is 0.9 and just inside the tolerance, 1.1 / 0.1 is 11; as plain floats they are neither."""
    return in_thousandths(value) / in_thousandths(target)


class PodMultiple(NamedTuple):
    """So many times so many pods; the whole number that this means, and the multiple of the current replicas."""

    ratio: float
    pods: int

    @property
    def replicas(self) -> int:
        return whole(self.ratio * self.pods)

    def of(self, current: int) -> float | None:
        """Before rounding; the ratio itself, to the last bit, where all pods counted."""
        if self.pods == current:
            return self.ratio
        return self.ratio * self.pods / current if current else None


def by_utilization(t: Tally, percent: float, up: float, down: float, current: int) -> PodMultiple:
    ratio = utilization_percent(t.usage, t.request) / percent
    if t.missing == 0 and not (t.unready > 0 and ratio > 1.0):
        return _unless_within(PodMultiple(ratio, t.ready), up, down, current)
    usage, request, count = t.usage, t.request, t.ready + t.strangers
    if t.missing and ratio != 1.0:
        # A silent pod is busy when we would shrink and idle when we would grow: both damp the step.
        usage += max(100.0, percent) / 100.0 * t.missing_request if ratio < 1.0 else 0.0
        request, count = request + t.missing_request, count + t.missing
    if ratio > 1.0:
        request, count = request + t.unready_request, count + t.unready
    again = utilization_percent(usage, request) / percent
    return _rebalanced(ratio, again, count, up, down, current)


def by_average(t: Tally, target: float, up: float, down: float, current: int) -> PodMultiple:
    ratio = ratio_of(average_value(t.usage, t.ready), target)
    if t.missing == 0 and not (t.unready > 0 and ratio > 1.0):
        return _unless_within(PodMultiple(ratio, t.ready), up, down, current)
    usage, count = t.usage, t.ready + t.strangers
    if t.missing and ratio != 1.0:
        usage += target * t.missing if ratio < 1.0 else 0.0
        count += t.missing
    if ratio > 1.0:
        count += t.unready
    again = ratio_of(average_value(usage, count), target)
    return _rebalanced(ratio, again, count, up, down, current)


def _unless_within(wanted: PodMultiple, up: float, down: float, current: int) -> PodMultiple:
    return PodMultiple(1.0, current) if within(wanted.ratio, up, down) else wanted


def _rebalanced(ratio: float, again: float, count: int, up: float, down: float, current: int) -> PodMultiple:
    wanted = PodMultiple(again, count)
    return PodMultiple(1.0, current) if keeps(ratio, again, wanted.replicas, up, down, current) else wanted


def keeps(ratio: float, again: float, wanted: int, up: float, down: float, current: int) -> bool:
    """Whether nothing is left of a step, or it turns around, once unready and silent pods are counted in."""
    if within(again, up, down) or (ratio < 1.0 < again) or (ratio > 1.0 > again):
        return True
    return (again < 1.0 and wanted > current) or (again > 1.0 and wanted < current)


def by_value(value: float, target: float, up: float, down: float, current: int, ready: int) -> PodMultiple:
    ratio = ratio_of(value, target)
    if current == 0:
        return PodMultiple(ratio, 1)
    return _unless_within(PodMultiple(ratio, ready), up, down, current)


def by_total_average(total: float, target: float, up: float, down: float, replicas: int) -> int:
    ratio = total_average_ratio(total, target, up, down, replicas)
    return replicas if ratio == 1.0 else whole(ratio_of(total, target))


def total_average_ratio(total: float, target: float, up: float, down: float, replicas: int) -> float:
    """Before rounding; 1 within the tolerance."""
    return tolerated_ratio(in_thousandths(total), in_thousandths(target), up, down, replicas)


def tolerated_ratio(total: float, target: float, up: float, down: float, replicas: int) -> float:
    """The same of what is counted in thousandths already."""
    ratio = total / (target * replicas) if replicas else inf
    return 1.0 if within(ratio, up, down) else ratio
