"""Which pod to resize first: those that must grow, then those that are furthest from what they need (VPA's updater).

difference = sum over resources of |requested - needed| / requested, both summed over the pod's containers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from trimtab.core.model import Estimate
from trimtab.policy import Size

_LEAST_CORES, _LEAST_BYTES = 0.001, 1.0  # against division by a request of nothing


class Urgency(NamedTuple):
    """Compares like a tuple: the larger is the more urgent."""

    grows: bool
    difference: float
    outside: bool  # a request lies outside the estimate's own bounds, which are wide while history is short


def urgency(requests: Mapping[str, Size], needs: Mapping[str, Estimate]) -> Urgency:
    """How much one pod needs a resize; containers without an estimate do not count."""
    pairs = [(size, needs[name]) for name, size in requests.items() if name in needs]
    cpu = [(size.cpu_cores, e.target.cpu_cores, e.lower.cpu_cores, e.upper.cpu_cores) for size, e in pairs]
    memory = [
        (size.memory_bytes, e.target.memory_bytes, e.lower.memory_bytes, e.upper.memory_bytes) for size, e in pairs
    ]
    first, second = _one_resource(cpu, _LEAST_CORES), _one_resource(memory, _LEAST_BYTES)
    return Urgency(first.grows or second.grows, first.difference + second.difference, first.outside or second.outside)


def by_urgency(pods: Mapping[str, Urgency]) -> list[str]:
    """Names of pods, the most urgent first; equals by name, so that the order is always the same."""
    return sorted(sorted(pods), key=lambda name: pods[name][:2], reverse=True)


_Row = tuple[float | None, float | None, float | None, float | None]  # request, target, lower, upper


def _one_resource(rows: list[_Row], least: float) -> Urgency:
    known = [(request or 0.0, target, lower, upper) for request, target, lower, upper in rows if target is not None]
    requested, needed = sum(row[0] for row in known), sum(row[1] for row in known)
    return Urgency(
        grows=any(target > request for request, target, _, _ in known),
        difference=abs(requested - needed) / max(requested, least) if known else 0.0,
        outside=any(
            (lower is not None and request < lower) or (upper is not None and request > upper)
            for request, _, lower, upper in known
        ),
    )
