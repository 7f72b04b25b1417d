"""How large each container should be (stage `resize`)."""

from __future__ import annotations

import enum

from trimtab.policy.axis import Axis, Size, fits
from trimtab.policy.record import Record, require


class ContainerRule(Record, frozen=True):
    """Bounds and mode of one container, or of all the others when the name is "*"."""

    name: str = "*"
    off: bool = False
    least: Size = Size()
    most: Size = Size()
    cpu: bool = True  # controlled resources
    memory: bool = True
    requests_only: bool = False  # limits stay as they are
    whole_cores: bool = False  # CPU is rounded up to whole cores, for pinned CPUs (VPA's integerCPU)

    def __post_init__(self) -> None:
        require(fits(self.least, self.most), "minAllowed", self.least, "it must not be above maxAllowed")

    def controls(self, axis: Axis) -> bool:
        return self.cpu if axis is Axis.CPU else self.memory


class Gap(Record, frozen=True):
    """How far the limit stays above the request: the larger of a share and an amount."""

    percent: float = 0.0
    value: float = 0.0


class Limits(Record, frozen=True):
    """What happens to limits when requests move; without a gap the ratio limit : request is kept."""

    cpu: Gap | None = None
    memory: Gap | None = None


class Apply(enum.StrEnum):
    IN_PLACE = "InPlace"
    RECREATE = "Recreate"
    IN_PLACE_OR_RECREATE = "InPlaceOrRecreate"
    NEVER = "Never"


class Vertical(Record, frozen=True):
    """Which containers may be resized, how far, and how patiently."""

    containers: tuple[ContainerRule, ...] = (ContainerRule(),)
    limits: Limits = Limits()
    apply: Apply = Apply.IN_PLACE
    floor: Size = Size(cpu_cores=0.010, memory_bytes=32 * 1024**2)  # of a pod, shared by its containers
    most: Size = Size()  # where a container's own rule leaves the maximum open
    up_after_s: float = 600.0
    down_after_s: float = 86400.0
    peak_margin: float = 1.2  # memory never falls below this times the peak of the last day
    oom_rest_s: float = 86400.0
    keep_memory: bool = False  # JVM images: memory is never lowered by itself
