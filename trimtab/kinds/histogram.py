"""Where a percentile's samples are counted, as Crane writes it: numbers are texts."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, log1p
from typing import Annotated, Any

from pydantic import Field

from trimtab.errors import InvalidInput
from trimtab.kinds.amounts import Duration
from trimtab.kinds.manifest_part import ManifestPart
from trimtab.quantity import parse_duration

NumberText = Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,2})?$", max_length=32)]
MOST_BUCKETS = 10_000
DEFAULT_MOST, DEFAULT_FIRST, DEFAULT_GROWTH = 1e12, 1e-3, 0.05  # of growing buckets, as the model has them

Options = dict[str, Any]


class Histogram(ManifestPart):
    """Where samples are counted: buckets of one size up to maxValue, or growing ones from the first, as upstream reads
    it where maxValue, firstBucketSize and bucketSizeGrowthRatio are all written."""

    max_value: NumberText | None = None
    """Where the buckets end."""
    epsilon: NumberText | None = None
    """Buckets with less weight count as empty."""
    half_life: Duration | None = None
    """After this long a sample counts half."""
    bucket_size: NumberText | None = None
    """The size of all buckets."""
    first_bucket_size: NumberText | None = None
    """The size of the first bucket."""
    bucket_size_growth_ratio: NumberText | None = None
    """How much larger each bucket is than the one before, as a share."""

    def problems(self) -> Iterator[InvalidInput]:
        yield from super().problems()
        sizes = {
            "maxValue": self.max_value,
            "bucketSize": self.bucket_size,
            "firstBucketSize": self.first_bucket_size,
            "bucketSizeGrowthRatio": self.bucket_size_growth_ratio,
        }
        for name, value in sizes.items():
            if value is not None and float(value) <= 0:
                yield InvalidInput(name, value, "write a number above zero")
                return
        if self.half_life is not None and parse_duration(self.half_life) <= 0:
            yield InvalidInput("halfLife", self.half_life, "write a duration above zero")
        yield from self._counted()

    @property
    def equal_size(self) -> str | None:
        grows = self.max_value and self.first_bucket_size and self.bucket_size_growth_ratio
        return None if grows else self.bucket_size

    def _counted(self) -> Iterator[InvalidInput]:
        if self.equal_size is None:
            yield from self._growing()
        elif self.max_value is None:
            yield InvalidInput("maxValue", None, "set it: buckets of one size must end somewhere")
        elif not 1 <= ceil(float(self.max_value) / float(self.equal_size)) <= MOST_BUCKETS:
            yield InvalidInput("bucketSize", self.bucket_size, f"choose one that gives 1 to {MOST_BUCKETS} buckets")

    def _growing(self) -> Iterator[InvalidInput]:
        most, first = float(self.max_value or DEFAULT_MOST), float(self.first_bucket_size or DEFAULT_FIRST)
        growth = float(self.bucket_size_growth_ratio or DEFAULT_GROWTH)
        if first > most:
            yield InvalidInput(
                "firstBucketSize", self.first_bucket_size or first, f"must not be above maxValue ({most:g})"
            )
        elif log1p(most * growth / first) > MOST_BUCKETS * log1p(growth) or 1.0 + growth == 1.0:
            fix = f"choose a larger one: these are more than {MOST_BUCKETS} buckets up to maxValue ({most:g})"
            yield InvalidInput("bucketSizeGrowthRatio", self.bucket_size_growth_ratio or growth, fix)

    def options(self) -> Options:
        decay = {} if self.half_life is None else {"half_life_s": parse_duration(self.half_life)}
        return decay | numbers(
            max_value=self.max_value,
            epsilon=self.epsilon,
            bucket_size=self.equal_size,
            first_bucket_size=self.first_bucket_size,
            growth=self.bucket_size_growth_ratio,
        )


def numbers(**given: str | int | None) -> Options:
    return {
        name: float(value) if isinstance(value, str) else value for name, value in given.items() if value is not None
    }
