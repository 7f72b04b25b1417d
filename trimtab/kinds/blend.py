"""How both axes become one plan: HVPA weights, buckets (HVPA buckets) or capacity (ours)."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, NamedTuple

from pydantic import Field

from trimtab.kinds.amounts import Count, Fraction, Quantity, amount
from trimtab.kinds.manifest_part import FieldRule, ManifestPart
from trimtab.kinds.vertical import Amounts, at_most_cel, size_of
from trimtab.policy import Blend, Bucket, Buckets, BucketSizing, Capacity, Margin, Margins, Size, Stage, Weights


class Interval(ManifestPart):
    """From startReplicaCount to lastReplicaCount, ends included, vpaWeight of the change is vertical."""

    vpa_weight: Fraction
    """The share of a change that sizes take, from 0 to 1; replicas take the rest."""
    start_replica_count: Count | None = None
    """From so many replicas on; left out: from minReplicas."""
    last_replica_count: Count | None = None
    """Up to so many, included; left out: up to maxReplicas."""

    rules: ClassVar[tuple[FieldRule, ...]] = (
        FieldRule(
            lambda i: (
                i.start_replica_count is None
                or i.last_replica_count is None
                or i.start_replica_count <= i.last_replica_count
            ),
            at="startReplicaCount",
            fix="must not be above lastReplicaCount",
            cel="!has(self.startReplicaCount) || !has(self.lastReplicaCount)"
            " || self.startReplicaCount <= self.lastReplicaCount",
        ),
    )

    def stage(self, share: float, least: int, most: int) -> Stage:
        """Open ends reach to the replica bounds, or until sizes have reached theirs."""
        first = self.start_replica_count if self.start_replica_count is not None else least
        last = self.last_replica_count if self.last_replica_count is not None else most
        return Stage(
            vertical_share=share,
            first=first,
            last=last,
            until_least=self.start_replica_count is None,
            until_most=self.last_replica_count is None,
        )


class ReplicaRange(ManifestPart):
    min: Count
    """At least so many."""
    max: Count
    """At most so many."""

    rules: ClassVar = (
        FieldRule(lambda r: r.min <= r.max, at="min", fix="must not be above max", cel="self.min <= self.max"),
    )


class QuantityRange(ManifestPart):
    """Per replica."""

    min: Quantity
    """The smallest size of a replica."""
    max: Quantity
    """The largest size of a replica."""

    rules: ClassVar = (
        FieldRule(
            lambda r: (amount(r.min) or 0.0) <= (amount(r.max) or 0.0),
            at="min",
            fix="must not be above max",
            cel=at_most_cel("self.min", "self.max"),
        ),
    )


class BucketSpec(ManifestPart):
    """HVPA buckets: a range of replicas, and the size each of them may have."""

    replicas: ReplicaRange
    """How many replicas."""
    cpu: QuantityRange | None = None
    """How large each is in CPU."""
    memory: QuantityRange | None = None
    """How large each is in memory."""

    rules: ClassVar = (
        FieldRule(
            lambda b: b.cpu is not None or b.memory is not None,
            at="cpu",
            fix="a bucket needs cpu, memory or both",
            cel="has(self.cpu) || has(self.memory)",
        ),
    )

    def bucket(self) -> Bucket:
        cpu, memory = self.cpu or _OPEN, self.memory or _OPEN
        return Bucket(
            replicas_min=self.replicas.min,
            replicas_max=self.replicas.max,
            least=Size(cpu_cores=amount(cpu.min), memory_bytes=amount(memory.min)),
            most=Size(cpu_cores=amount(cpu.max), memory_bytes=amount(memory.max)),
        )


class _Open(NamedTuple):
    """A resource the bucket does not speak of."""

    min: None = None
    max: None = None


_OPEN = _Open()


def _rising(buckets: list[BucketSpec] | None) -> bool:
    return all(a.replicas.max < b.replicas.min for a, b in zip(buckets or [], (buckets or [])[1:], strict=False))


def _same_resources(buckets: list[BucketSpec] | None) -> bool:
    return len({(b.cpu is None, b.memory is None) for b in buckets or []}) <= 1


def bucket_rules(path: str) -> tuple[FieldRule, ...]:
    """Buckets stand in the order of their replicas, share none, and speak of the same resources."""
    pick, some = path, f"!has(self.{path})"
    touch = "a.replicas.min <= b.replicas.max && b.replicas.min <= a.replicas.max"
    apart = f"self.{path}.all(a, self.{path}.exists_one(b, {touch}))"
    order = f"self.{path}.map(b, b.replicas.min).isSorted()"
    same = f"self.{path}.all(b, has(b.cpu) == has(self.{path}[0].cpu) && has(b.memory) == has(self.{path}[0].memory))"
    return (
        FieldRule(
            lambda s: _rising(s.buckets),
            at=pick,
            fix="list buckets from few to many replicas; each starts above the last one's replicas.max",
            cel=f"{some} || ({apart} && {order})",
        ),
        FieldRule(
            lambda s: _same_resources(s.buckets),
            at=pick,
            fix="all buckets must name the same resources",
            cel=f"{some} || {same}",
        ),
    )


class WeightsSpec(ManifestPart):
    """HVPA weights: stages by the number of replicas."""

    intervals: Annotated[list[Interval], Field(min_length=1, max_length=50)]
    """Stages by the number of replicas; the first that names a count decides."""


class MarginSpec(ManifestPart):
    """An amount, a percentage of the replica's size, or both: then the larger one counts."""

    value: Quantity | None = None
    """An amount."""
    percentage: Annotated[int, Field(ge=0, le=100)] | None = None
    """A share of the replica's size."""

    def margin(self) -> Margin:
        return Margin(percent=float(self.percentage or 0), value=amount(self.value) or 0.0)


class BaseSpec(ManifestPart):
    """What a replica uses without doing any work; each new one brings it along."""

    cpu: MarginSpec | None = None
    memory: MarginSpec | None = None

    def margins(self) -> Margins:
        return Margins(cpu=(self.cpu or _NONE).margin(), memory=(self.memory or _NONE).margin())


_NONE = MarginSpec()


Sizing = Literal["Guarded", "Share", "MaxOfVpaAndShare", "NeverShrink"]
OverlapPercent = Annotated[float, Field(ge=0, lt=100, allow_inf_nan=False)]


class BucketsSpec(ManifestPart):
    """HVPA buckets, with how shares become sizes and how much later replicas are removed than added."""

    buckets: Annotated[list[BucketSpec], Field(min_length=1, max_length=50)]
    """Ordered by replicas."""
    sizing: Sizing = "Guarded"
    """MaxOfVpaAndShare is the document's rule of thumb."""
    overlap_percent: OverlapPercent = 10
    """A replica is removed when the total falls so far below the edge at which it was added."""
    grow_past_last: bool = False
    """Beyond the last bucket sizes grow to maxAllowed instead of ending at its maximum."""
    base: BaseSpec | None = None
    """What a replica uses without doing any work."""

    rules: ClassVar = bucket_rules("buckets")

    def rule(self) -> Buckets:
        margin = Margin(percent=float(self.overlap_percent))
        return Buckets(
            buckets=tuple(bucket.bucket() for bucket in self.buckets),
            sizing=BucketSizing(self.sizing),
            overlap=Margins(cpu=margin, memory=margin),
            base=self.base.margins() if self.base else Margins(),
            grow_past_last=self.grow_past_last,
        )


class CapacitySpec(ManifestPart):
    """Total demand first, then replicas and size on one path."""

    base: Amounts | None = None
    """What a replica uses without doing any work."""
    preferred: Amounts | None = None
    """Grow each replica to this size first."""
    hysteresis: Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)] = 0.1
    """How far demand must fall below an edge before a replica goes."""

    def rule(self) -> Capacity:
        base, preferred = size_of(self.base), size_of(self.preferred)
        return Capacity(base=base, hysteresis=float(self.hysteresis), preferred=preferred)


class BlendSpec(ManifestPart):
    """Exactly one way."""

    weights: WeightsSpec | None = None
    buckets: BucketsSpec | None = None
    capacity: CapacitySpec | None = None

    rules: ClassVar = (
        FieldRule(
            lambda b: [b.weights, b.buckets, b.capacity].count(None) == 2,
            at="",
            fix="choose exactly one of weights, buckets, capacity",
            cel="[has(self.weights), has(self.buckets), has(self.capacity)].filter(x, x).size() == 1",
        ),
    )

    def blend(self, least: int, most: int) -> Blend:
        if self.weights is not None:
            intervals = self.weights.intervals
            return Weights(
                stages=tuple(interval.stage(float(interval.vpa_weight), least, most) for interval in intervals)
            )
        if self.buckets is not None:
            return self.buckets.rule()
        assert self.capacity is not None
        return self.capacity.rule()
