"""limit_range: what a LimitRange allows a container and a pod, judged as the API server does.

max: neither a limit nor a request above it; min: none below it; maxLimitRequestRatio: limit / request; and the limit
that it gives to containers without one, which no request may pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from trimtab.core.model import ContainerSize, Veto
from trimtab.live.headroom.pods import Sized, Sizes, text
from trimtab.policy import RESOURCES, Axis, Direction
from trimtab.quantity import parse_quantity
from trimtab.wire.objects import Custom

EXCEEDS_LIMIT_RANGE = "ExceedsLimitRange"
EXACT = 1.0 + 1e-9


class Judged(NamedTuple):
    """One resource of a container or of a whole pod."""

    whose: str
    axis: Axis
    before: float
    request: float
    limit: float | None

    @property
    def direction(self) -> Direction:
        return Direction.UP if self.request > self.before else Direction.DOWN


def vetoes(ranges: Iterable[Custom], pods: Sequence[Sized]) -> Iterator[Veto]:
    """One for each axis that something does not allow, naming the first pod or container in the way."""
    for found in ranges:
        for rule in found.spec.get("limits") or ():
            for axis in RESOURCES:
                wrong = next((problem for pod in pods for problem in _wrong(rule, axis, pod)), None)
                if wrong is not None:
                    yield _veto(found, *wrong)


def _wrong(rule: dict[str, Any], axis: Axis, pod: Sized) -> Iterator[tuple[Judged, str]]:
    for judged in _judged(rule.get("type"), axis, pod):
        reason = _reason(rule, judged)
        if reason:
            yield judged, reason


def _judged(kind: object, axis: Axis, pod: Sized) -> Iterator[Judged]:
    """What this rule speaks of, where it would change."""
    if kind == "Container":
        for name, size in pod.after.items():
            if size != pod.before[name]:
                yield _of(f"container {name}", axis, pod.before[name], size)
    elif kind == "Pod" and pod.moves(axis):
        yield _of_pod(axis, pod)


def _of(whose: str, axis: Axis, before: ContainerSize, after: ContainerSize) -> Judged:
    return Judged(
        whose,
        axis,
        before.requests.amount(axis) or 0.0,
        after.requests.amount(axis) or 0.0,
        after.limits.amount(axis),
    )


def _of_pod(axis: Axis, pod: Sized) -> Judged:
    limits = [size.limits.amount(axis) for size in pod.after.values()]
    known = [limit for limit in limits if limit is not None]
    return Judged("the pod", axis, _sum(pod.before, axis), _sum(pod.after, axis), sum(known) if known else None)


def _sum(sizes: Sizes, axis: Axis) -> float:
    return sum(size.requests.amount(axis) or 0.0 for size in sizes.values())


def _reason(rule: dict[str, Any], judged: Judged) -> str:
    """What is not allowed; "" where nothing is wrong."""
    axis, request, limit = judged.axis, judged.request, judged.limit
    largest, smallest = max(request, limit or 0.0), min(request, request if limit is None else limit)
    if (most := _amount(rule, "max", axis)) is not None and largest > most * EXACT:
        return f"at most {text(axis, most)} of {axis}, not {text(axis, largest)}"
    if (given := _amount(rule, "default", axis)) is not None and limit is not None and request > limit * EXACT:
        return f"a limit of {text(axis, given)} of {axis}, and requests {text(axis, request)}"
    if (least := _amount(rule, "min", axis)) is not None and smallest * EXACT < least:
        return f"at least {text(axis, least)} of {axis}, not {text(axis, smallest)}"
    ratio = _amount(rule, "maxLimitRequestRatio", axis)
    if ratio is not None and limit is not None and request and limit > request * ratio * EXACT:
        return f"limits of {ratio:g} times the requests of {axis} at most, not {limit / request:.3g} times"
    return ""


def _amount(rule: dict[str, Any], field: str, axis: Axis) -> float | None:
    found = (rule.get(field) or {}).get(axis.value)
    return None if found is None else parse_quantity(found)


def _veto(found: Custom, judged: Judged, reason: str) -> Veto:
    meta, fix = found.metadata, "maxAllowed" if judged.direction is Direction.UP else "minAllowed"
    detail = f"LimitRange {meta.namespace}/{meta.name} gives {judged.whose} {reason}: change it, or set {fix} to fit"
    return Veto(axis=judged.axis, direction=judged.direction, reason=EXCEEDS_LIMIT_RANGE, detail=detail)
