"""limits: what happens to a container's limits, and to its QoS class, when its requests move.

No old limit: none. Old request unset or equal to the old limit: the new request. A gap:
max(request * (1 + percent), request + value). Otherwise the ratio limit : request is kept.
(HVPA's getScaledResourceLimit, VPA's proportional limits.)
"""

from __future__ import annotations

from math import ceil, floor

from msgspec.structs import replace

from trimtab.core.model import ContainerSize
from trimtab.errors import InvalidInput
from trimtab.policy import ContainerRule, Gap, Limits, Size, Vertical

CPU_GRAIN = 1000  # parts of a core that are kept: millicores
MEMORY_GRAIN = 1  # bytes
MEMORY_STEP = 1000.0  # memory is written in whole kilobytes
_NOISE = 1e-6  # 0.3 cores are 300 millicores, whatever binary fractions say


def rule_for(vertical: Vertical, container: str) -> ContainerRule | None:
    """The container's own rule, else the one named "*"; None where there is none or it is switched off."""
    by_name = {rule.name: rule for rule in reversed(vertical.containers)}
    rule = by_name.get(container) or by_name.get("*")
    if rule is None or rule.off:
        return None
    return replace(rule, most=first_set(rule.most, vertical.most))


def limit_for(
    old_request: float | None,
    old_limit: float | None,
    new_request: float,
    gap: Gap | None = None,
    grain: int = CPU_GRAIN,
) -> float | None:
    """The limit that goes with a new request, rounded down to whole grains; 0 and None both mean not set."""
    if not old_limit or not new_request:
        return None
    if not old_request or old_request == old_limit:
        return new_request
    if gap is not None and (gap.percent or gap.value):
        return round_down(max(new_request * (1.0 + gap.percent / 100.0), new_request + gap.value), grain)
    return round_down(old_limit * new_request / old_request, grain)


def resized(size: ContainerSize, request: Size, rule: ContainerRule, limits: Limits) -> ContainerSize:
    """The container with new requests: whole units, limits that follow, and the QoS class it had before.

    A container without any request is returned as it is: its pod would leave the class BestEffort.
    """
    if size.requests == Size():
        return size
    wanted = _whole(size.requests, request, rule)
    if rule.requests_only:
        after = ContainerSize(requests=capped_to_limits(wanted, size.limits), limits=size.limits)
    else:
        follow = _limits(size, wanted, limits)
        after = ContainerSize(requests=capped_to_limits(wanted, follow), limits=follow)
    return _keep_class(size, after, rule)


def capped_to_limits(requests: Size, limits: Size) -> Size:
    """No request above its limit."""
    return within(requests, Size(), limits)


def within(size: Size, least: Size, most: Size) -> Size:
    """Each amount between its bounds; where they cross, `most` wins, as in VPA."""
    return Size(
        cpu_cores=_clamp(size.cpu_cores, least.cpu_cores, most.cpu_cores),
        memory_bytes=_clamp(size.memory_bytes, least.memory_bytes, most.memory_bytes),
    )


def first_set(size: Size, fallback: Size) -> Size:
    """Each amount of `size`, or of the fallback where `size` leaves it open (VPA's global maximum)."""
    cpu, memory = size.cpu_cores, size.memory_bytes
    return Size(
        cpu_cores=fallback.cpu_cores if cpu is None else cpu,
        memory_bytes=fallback.memory_bytes if memory is None else memory,
    )


def round_down(amount: float, grain: int) -> float:
    return floor(amount * grain + _NOISE) / grain


def round_up(amount: float, grain: int) -> float:
    return ceil(amount * grain - _NOISE) / grain


def round_up_to(amount: float, multiple: float) -> float:
    """The next multiple that is not below the amount."""
    if not multiple > 0:
        raise InvalidInput("multiple", multiple, "round to a positive multiple")
    return ceil(amount / multiple) * multiple


def guaranteed(size: ContainerSize) -> bool:
    """Both resources set, requests equal to limits: what the QoS class Guaranteed asks of each container."""
    return size.requests == size.limits and None not in (size.requests.cpu_cores, size.requests.memory_bytes)


def _clamp(amount: float | None, least: float | None, most: float | None) -> float | None:
    if amount is None:
        return None
    if least is not None and amount < least:
        amount = least
    return most if most is not None and amount > most else amount


def _whole(old: Size, wanted: Size, rule: ContainerRule) -> Size:
    """Rounded up so that the total is never less than what was asked for, yet never over the maximum."""
    cpu, memory = old.cpu_cores, old.memory_bytes
    if rule.cpu and wanted.cpu_cores not in (None, cpu):
        cpu = _clamp(round_up(wanted.cpu_cores, CPU_GRAIN), None, rule.most.cpu_cores)
    if rule.memory and wanted.memory_bytes not in (None, memory):
        memory = _clamp(round_up_to(wanted.memory_bytes, MEMORY_STEP), None, rule.most.memory_bytes)
    return Size(cpu_cores=cpu, memory_bytes=memory)


def _limits(size: ContainerSize, wanted: Size, limits: Limits) -> Size:
    """A limit changes only where its request does."""
    old, cpu, memory = size.requests, size.limits.cpu_cores, size.limits.memory_bytes
    if wanted.cpu_cores is not None and wanted.cpu_cores != old.cpu_cores:
        cpu = limit_for(old.cpu_cores, cpu, wanted.cpu_cores, limits.cpu)
    if wanted.memory_bytes is not None and wanted.memory_bytes != old.memory_bytes:
        memory = limit_for(old.memory_bytes, memory, wanted.memory_bytes, limits.memory, MEMORY_GRAIN)
        if memory is not None and memory != wanted.memory_bytes:
            memory = round_up_to(memory, MEMORY_STEP)
    return Size(cpu_cores=cpu, memory_bytes=memory)


def _keep_class(before: ContainerSize, after: ContainerSize, rule: ContainerRule) -> ContainerSize:
    """Kubernetes refuses a resize that changes the class of a pod; each container keeps its part of it."""
    if guaranteed(before) == guaranteed(after):
        return after
    if guaranteed(before):  # limits are fixed, so requests are too
        return before
    if before.requests.cpu_cores != before.limits.cpu_cores:
        step = Size(cpu_cores=1 / CPU_GRAIN, memory_bytes=0.0)
    else:
        step = Size(cpu_cores=0.0, memory_bytes=MEMORY_STEP)
    if rule.requests_only:
        return replace(after, requests=_plus(after.requests, step, -1.0))
    return replace(after, limits=_plus(after.limits, step, 1.0))


def _plus(size: Size, step: Size, sign: float) -> Size:
    assert size.cpu_cores is not None and size.memory_bytes is not None
    assert step.cpu_cores is not None and step.memory_bytes is not None
    cpu = round(size.cpu_cores + sign * step.cpu_cores, 3)
    return Size(cpu_cores=cpu, memory_bytes=size.memory_bytes + sign * step.memory_bytes)
