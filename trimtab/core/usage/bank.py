"""A bank of decaying histograms, one row each, updated and asked for percentiles all at once (as VPA's).

A sample of weight w at time t adds w * 2**((t - reference) / half life) to its bucket, so older samples fade
without being touched. When the exponent would pass 100 the row's reference moves on, by whole half lives: the
rescaling is by a power of two and loses nothing. A percentile is the END of the first bucket whose cumulated weight
reaches it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trimtab.core.usage.bucket_edges import BucketEdges, Indices
from trimtab.series import Floats

MAX_EXPONENT = 100.0
EPSILON = 1e-4  # a bucket below this is empty: a thousandth of the weight of one CPU sample
NO_DECAY = float("inf")


class Bank:
    """weights[row, bucket]; `totals` also hold what fell below epsilon, as VPA's do."""

    def __init__(
        self, buckets: BucketEdges, rows: int, half_life_s: float = NO_DECAY, epsilon: float = EPSILON
    ) -> None:
        assert half_life_s > 0 and epsilon > 0
        self.buckets, self.half_life_s, self.epsilon = buckets, half_life_s, epsilon
        self.weights: Floats = np.zeros((rows, len(buckets)))
        self.totals: Floats = np.zeros(rows)
        self.references: Floats = np.zeros(rows)

    def add(self, rows: ArrayLike, values: ArrayLike, weights: ArrayLike, times: ArrayLike = 0.0) -> None:
        """Samples for any rows, in any order; a row may come more than once."""
        at, cells, amounts = self._place(rows, values, weights, times)
        np.add.at(self.weights.reshape(-1), cells, amounts)
        np.add.at(self.totals, at, amounts)

    def subtract(self, rows: ArrayLike, values: ArrayLike, weights: ArrayLike, times: ArrayLike = 0.0) -> None:
        """Take samples back that were added with the same weight and time."""
        at, cells, amounts = self._place(rows, values, weights, times)
        for amounts_left, where in ((self.weights.reshape(-1), cells), (self.totals, at)):
            np.subtract.at(amounts_left, where, amounts)
            touched = amounts_left[where]
            amounts_left[where] = np.where(touched < self.epsilon, 0.0, touched)

    def empty(self) -> NDArray[np.bool_]:
        """Rows in which no bucket reaches epsilon."""
        heaviest: Floats = self.weights.max(axis=1)
        return heaviest < self.epsilon

    def percentiles(self, probabilities: Sequence[float]) -> Floats:
        """values[i, row] of the i-th probability; 0 where the row is empty."""
        filled = self.weights >= self.epsilon
        first = filled.argmax(axis=1)
        last = len(self.buckets) - 1 - filled[:, ::-1].argmax(axis=1)
        partial = np.where(np.arange(len(self.buckets)) < first[:, None], 0.0, self.weights).cumsum(axis=1)
        found = [np.clip((partial < (p * self.totals)[:, None]).sum(axis=1), first, last) for p in probabilities]
        return np.where(filled.any(axis=1), self.buckets.ends[np.array(found)], 0.0)

    def resize(self, rows: int) -> None:
        """Room for more rows, which are empty."""
        extra = rows - len(self.totals)
        assert extra >= 0
        self.weights = np.concatenate([self.weights, np.zeros((extra, len(self.buckets)))])
        self.totals = np.concatenate([self.totals, np.zeros(extra)])
        self.references = np.concatenate([self.references, np.zeros(extra)])

    def put(self, row: int, weights: Floats, total: float, reference: float) -> None:
        """Set one row as it was saved."""
        self.weights[row], self.totals[row], self.references[row] = weights, total, reference

    def keep(self, rows: Indices) -> None:
        """Forget every other row; the kept ones are renumbered in the given order."""
        self.weights, self.totals, self.references = (
            self.weights[rows],
            self.totals[rows],
            self.references[rows],
        )

    def _place(
        self, rows: ArrayLike, values: ArrayLike, weights: ArrayLike, times: ArrayLike
    ) -> tuple[Indices, Indices, Floats]:
        """The row, the flat cell and the decayed weight of each sample."""
        at, found, heavy, when = np.broadcast_arrays(
            np.asarray(rows, dtype=np.intp),
            self.buckets.find(values),
            weights,
            np.asarray(times, dtype=float),
        )
        self._shift(at, when)
        exponents = (when - self.references[at]) / self.half_life_s
        return at, at * len(self.buckets) + found, heavy * np.exp2(exponents)

    def _shift(self, rows: Indices, times: Floats) -> None:
        """Move references on where a new exponent would grow too large."""
        late = times > self.references[rows] + MAX_EXPONENT * self.half_life_s
        if not late.any():
            return
        newest = np.full(len(self.totals), -np.inf)
        np.maximum.at(newest, rows[late], times[late])
        moved = np.flatnonzero(newest > -np.inf)
        self._rescale(moved, np.floor(newest[moved] / self.half_life_s + 0.5) * self.half_life_s)

    def _rescale(self, rows: Indices, references: Floats) -> None:
        if self.half_life_s == NO_DECAY:
            return
        exponents = np.rint((self.references[rows] - references) / self.half_life_s)
        factors = np.ldexp(1.0, np.maximum(exponents, -10_000).astype(np.int64))
        full = self.totals[rows] > 0
        self.weights[rows[full]] *= factors[full, None]
        self.totals[rows] *= factors
        self.references[rows] = references
