"""Small factories for what both axes want: cores, gigabytes, one container named app unless said otherwise."""

from __future__ import annotations

from typing import Any

from trimtab.core.blend import AxisWishes
from trimtab.core.model import ContainerSize
from trimtab.policy import Axis, Bucket, Size, Vertical

FREE = Vertical(floor=Size())
G = 1e9


def size(cpu: float | None = None, gb: float | None = None) -> Size:
    return Size(cpu_cores=cpu, memory_bytes=None if gb is None else gb * G)


def container(cpu: float | None = None, gb: float | None = None) -> ContainerSize:
    return ContainerSize(requests=size(cpu, gb))


def ask(current: int, wanted: int, now: Size, target: Size, most: int = 10, least: int = 1, **more: Any) -> AxisWishes:
    return AxisWishes(
        current=current,
        wanted=wanted,
        sizes={"app": ContainerSize(requests=now)},
        targets={"app": target},
        min_replicas=least,
        max_replicas=most,
        overloaded=False,
    )._replace(**more)


def bucket(
    replicas: tuple[int, int], cpu: tuple[float, float] | None = None, gb: tuple[float, float] | None = None
) -> Bucket:
    (cpu_low, cpu_high), (gb_low, gb_high) = cpu or (None, None), gb or (None, None)
    return Bucket(
        replicas_min=replicas[0], replicas_max=replicas[1], least=size(cpu_low, gb_low), most=size(cpu_high, gb_high)
    )


VERTICAL_ONLY: frozenset[Axis] = frozenset()  # no horizontal signal (hpa.deploy: false)
