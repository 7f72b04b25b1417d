"""safe sizes: the size that pods may go back to without dying of it: their template's, as far as usage and kills allow.

An amount goes back whole or stays as it is, so the QoS class never changes. It stays where the template's is below what
pods use now and VPA's margin, or below what would have survived the last OOM kill.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from trimtab.core.blend.replica import MARGIN
from trimtab.core.model import ContainerSize
from trimtab.core.usage.settings import HistogramSettings
from trimtab.live.look.memory import OomKill
from trimtab.live.measure.readings import amounts_of
from trimtab.policy import RESOURCES, Axis, Size
from trimtab.quantity import describe_memory, format_cpu
from trimtab.wire.from_kubernetes import written_sizes
from trimtab.wire.objects import PodMetrics, WirePod

KILLS = HistogramSettings()


class Kept(NamedTuple):
    """An amount that does not go back, and why."""

    container: str
    axis: Axis
    amount: float
    why: str

    @property
    def text(self) -> str:
        amount = format_cpu(self.amount) if self.axis is Axis.CPU else describe_memory(self.amount)
        return f"{self.container} {self.axis} stays at {amount}: {self.why}"


def safe_sizes(
    pods: Sequence[WirePod],
    template: Mapping[str, ContainerSize],
    kills: Mapping[str, OomKill],
    usage: Mapping[str, PodMetrics],
) -> tuple[dict[str, dict[str, ContainerSize]], list[Kept]]:
    """The sizes of each pod by name, and what stays as it is; `usage` by pod name."""
    kept = {
        (each.container, each.axis): each
        for name, size in template.items()
        for axis in RESOURCES
        for each in _kept(pods, name, axis, size, kills.get(name), usage)
    }
    sizes = {
        pod.metadata.name: {
            name: _mixed(now, template[name], {axis for container, axis in kept if container == name})
            for name, now in written_sizes(pod).items()
            if name in template
        }
        for pod in pods
    }
    return sizes, list(kept.values())


def _kept(
    pods: Sequence[WirePod],
    name: str,
    axis: Axis,
    size: ContainerSize,
    kill: OomKill | None,
    usage: Mapping[str, PodMetrics],
) -> Iterator[Kept]:
    amounts = [written_sizes(pod).get(name, size).requests.amount(axis) or 0.0 for pod in pods]
    present, back = max(amounts, default=0.0), size.requests.amount(axis) or 0.0
    if present <= back:
        return
    used = [_used(usage.get(pod.metadata.name), name, axis) for pod in pods]
    if None in used:
        yield Kept(name, axis, present, "nobody knows what its pods use now")
    elif (most := max(amount for amount in used if amount is not None) * MARGIN) > back:
        yield Kept(name, axis, present, f"its pods use {_text(axis, most / MARGIN)} now, and had {_text(axis, back)}")
    elif axis is Axis.MEMORY and kill is not None and _survivable(kill) > back:
        at = datetime.fromtimestamp(kill.finished_at, UTC)
        yield Kept(name, axis, present, f"OOM kill at {at:%Y-%m-%d %H:%M:%S} UTC")


def _survivable(kill: OomKill) -> float:
    return max(kill.request_bytes + KILLS.oom_least_bytes, kill.request_bytes * KILLS.oom_ratio)


def _used(found: PodMetrics | None, name: str, axis: Axis) -> float | None:
    return None if found is None else amounts_of(found, str(axis)).get(name)


def _text(axis: Axis, amount: float) -> str:
    return format_cpu(amount) if axis is Axis.CPU else describe_memory(amount)


def _mixed(now: ContainerSize, back: ContainerSize, kept: set[Axis]) -> ContainerSize:
    def pick(axis: Axis, old: Size, new: Size) -> float | None:
        return (old if axis in kept else new).amount(axis)

    return ContainerSize(
        requests=Size(
            cpu_cores=pick(Axis.CPU, now.requests, back.requests),
            memory_bytes=pick(Axis.MEMORY, now.requests, back.requests),
        ),
        limits=Size(
            cpu_cores=pick(Axis.CPU, now.limits, back.limits),
            memory_bytes=pick(Axis.MEMORY, now.limits, back.limits),
        ),
    )
