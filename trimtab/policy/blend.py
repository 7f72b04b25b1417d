"""One plan from both axes (stage `blend`)."""

from __future__ import annotations

import enum
from itertools import pairwise

from trimtab.policy.axis import Axis, Size, fits
from trimtab.policy.record import Record, require


class Stage(Record, frozen=True):
    """Document 001: between these replica counts, ends included, this share of the change is vertical. A stage whose
    begin or end was left out lasts until sizes have reached minAllowed or maxAllowed."""

    vertical_share: float
    first: int
    last: int
    until_least: bool = False  # no startReplicaCount
    until_most: bool = False  # no lastReplicaCount

    def __post_init__(self) -> None:
        require(0 <= self.vertical_share <= 1, "vpaWeight", self.vertical_share, "give a weight from 0 to 1")
        require(self.first <= self.last, "startReplicaCount", self.first, "it must not be above lastReplicaCount")


class Weights(Record, frozen=True):
    """Document 001. `exact` follows the released program: no unconditional vertical step at maxReplicas, sizes grow
    only while replicas cannot, and a stage of weight 1 is left as soon as the horizontal wish points out of it."""

    stages: tuple[Stage, ...]
    exact: bool = False

    def __post_init__(self) -> None:
        require(bool(self.stages), "weightBasedScalingIntervals", [], "give at least one stage")


class BucketSizing(enum.StrEnum):
    """How large each of the new replicas becomes; the share is total / replicas."""

    GUARDED = "Guarded"  # the share; scaling out never takes away what vertical recommends
    SHARE = "Share"
    MAX_OF_VPA_AND_SHARE = "MaxOfVpaAndShare"
    NEVER_SHRINK = "NeverShrink"  # the share; nothing shrinks while the totals grow (hvpa-v2)


class Bucket(Record, frozen=True, kw_only=True):
    """Document 004: replicas and the size of each replica, both ends included.

    A minimum left open starts where the bucket before it ended; a maximum left open leaves that resource out.
    """

    replicas_min: int
    replicas_max: int
    least: Size = Size()
    most: Size

    def __post_init__(self) -> None:
        require(
            0 < self.replicas_min <= self.replicas_max,
            "replicas.min",
            self.replicas_min,
            "put it from 1 to replicas.max",
        )
        require(fits(self.least, self.most), "buckets", self.least, "a minimum must not be above its maximum")


class Margin(Record, frozen=True):
    """The larger of a share of something and an amount."""

    percent: float = 0.0
    value: float = 0.0


class Margins(Record, frozen=True):
    cpu: Margin = Margin()
    memory: Margin = Margin()

    def of(self, axis: Axis) -> Margin:
        return self.cpu if axis is Axis.CPU else self.memory


class Buckets(Record, frozen=True):
    """Document 004. `overlap` lowers the edge at which replicas are removed again, against flapping; without any,
    buckets are divided linearly and nothing else. `base` is what a replica uses without doing any work. With
    `grow_past_last` sizes outgrow the maximum where no more replicas can be had."""

    buckets: tuple[Bucket, ...]
    sizing: BucketSizing = BucketSizing.GUARDED
    overlap: Margins = Margins(cpu=Margin(percent=10.0), memory=Margin(percent=10.0))
    base: Margins = Margins()
    grow_past_last: bool = False

    def __post_init__(self) -> None:
        require(bool(self.buckets), "buckets", [], "give at least one bucket")
        for before, after in pairwise(self.buckets):
            ordered = before.replicas_max <= after.replicas_min
            require(ordered, "buckets.replicas.min", after.replicas_min, "order the buckets by replicas")


class Capacity(Record, frozen=True):
    """Ours: total demand first, then replicas and size on one monotone path with one hysteresis."""

    base: Size = Size()  # what a replica uses without doing any work
    hysteresis: float = 0.1
    preferred: Size | None = None  # grow each replica to this size first; None: to the largest size allowed

    def __post_init__(self) -> None:
        require(0 <= self.hysteresis < 1, "hysteresis", self.hysteresis, "give a fraction below 1")


Blend = Weights | Buckets | Capacity
