"""Where histogram buckets begin: linear, or exponential with start(n) = first * (ratio**n - 1) / (ratio - 1).

VPA's options; a value at a bucket's start belongs to that bucket, all beyond the last start to the last.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trimtab.errors import InvalidInput
from trimtab.series import Floats

Indices = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class BucketEdges:
    """`starts` increase from 0; `ends` are the next starts, for the last bucket, which has none, its own."""

    starts: Floats
    ends: Floats

    def __len__(self) -> int:
        return len(self.starts)

    def find(self, values: ArrayLike) -> Indices:
        """The bucket of each value."""
        return np.maximum(np.searchsorted(self.starts, values, side="right") - 1, 0)


def linear(most: float, size: float) -> BucketEdges:
    """Buckets of one size up to a maximum."""
    if not most >= size > 0:
        raise InvalidInput("bucket size", size, f"write a positive size not above the maximum {most}")
    return _buckets(np.arange(ceil(most / size) + 1) * size)


def exponential(most: float, first: float, ratio: float) -> BucketEdges:
    """Buckets that grow by a ratio, from the size of the first, up to a maximum."""
    if not (ratio > 1 and most >= first > 0):
        raise InvalidInput("bucket ratio", ratio, f"write a ratio above 1 and a first size {first} in (0, {most}]")
    count = ceil(log(most * (ratio - 1) / first + 1, ratio)) + 1
    return _buckets(first * (ratio ** np.arange(count) - 1) / (ratio - 1))


def _buckets(starts: ArrayLike) -> BucketEdges:
    first = np.asarray(starts, dtype=np.float64)
    return BucketEdges(first, np.append(first[1:], first[-1]))


CPU = exponential(most=1000.0, first=0.01, ratio=1.05)  # cores
MEMORY = exponential(most=1e12, first=1e7, ratio=1.05)  # bytes
