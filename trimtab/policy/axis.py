"""What can be scaled: how many, how much CPU, how much memory. The only place that tells CPU and memory apart."""

from __future__ import annotations

import enum

from msgspec.structs import replace

from trimtab.policy.record import Record


class Axis(enum.StrEnum):
    REPLICAS = "replicas"
    CPU = "cpu"
    MEMORY = "memory"
    BRIDGE = "bridge"  # how many times its written cpu a ready pod has for a while


RESOURCES = (Axis.CPU, Axis.MEMORY)


class Direction(enum.StrEnum):
    UP = "up"
    DOWN = "down"


class Size(Record, frozen=True):
    """An amount of each resource; None means not set, which is not zero."""

    cpu_cores: float | None = None
    memory_bytes: float | None = None

    def amount(self, axis: Axis) -> float | None:
        return self.cpu_cores if axis is Axis.CPU else self.memory_bytes

    def with_amount(self, axis: Axis, amount: float | None) -> Size:
        return replace(self, cpu_cores=amount) if axis is Axis.CPU else replace(self, memory_bytes=amount)


def fits(least: Size, most: Size) -> bool:
    """Whether nothing of `least` is above `most`, as far as both are set."""
    pairs = ((least.amount(axis), most.amount(axis)) for axis in RESOURCES)
    return all(low is None or high is None or low <= high for low, high in pairs)
