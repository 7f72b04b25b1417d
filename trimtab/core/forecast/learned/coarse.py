"""Minutes that were remembered in coarser steps get back the noise that their mean lost.

What comes from a checkpoint or from Prometheus stands still for five minutes at a time. A lesson from it would teach
that this workload has no noise, and upper quantiles would be too low for the minutes that are seen as they are.
"""

from __future__ import annotations

import numpy as np

from trimtab.series import Floats

USUAL_NOISE = 0.015  # of a minute's mean, where nothing finer has been seen
_LEAST_MINUTES = 60  # that were seen as they are


def with_noise(demand: Floats, first: int) -> Floats:
    """Rows of minutes from minute `first` on; the same minute always gets the same noise."""
    same = demand[:, 1:] == demand[:, :-1]
    still = np.pad(same, ((0, 0), (1, 0))) | np.pad(same, ((0, 0), (0, 1)))
    noise = _noise(demand, still)[:, None] * _draws(first, demand.shape[1])
    noisy: Floats = np.where(still, demand * (1.0 + noise), demand)
    return noisy


def _noise(demand: Floats, still: np.ndarray) -> Floats:
    """The spread of neighbouring minutes where they differ; 1.05 x the median distance of two is one deviation."""
    with np.errstate(divide="ignore", invalid="ignore"):
        moved = np.abs(np.diff(np.log(demand), axis=1))
    seen = ~still[:, 1:] & ~still[:, :-1] & np.isfinite(moved)
    found = np.full(len(demand), USUAL_NOISE)
    for row in np.flatnonzero(seen.sum(axis=1) >= _LEAST_MINUTES):
        found[row] = min(1.05 * float(np.median(moved[row, seen[row]])), 0.1)
    return found


def _draws(first: int, count: int) -> Floats:
    """Nearly normal numbers that depend on the minute alone: twelve uniform ones, less six."""
    clock = first + np.arange(count, dtype=np.float64)
    mixed = np.sin(clock[None] * (12.9898 + 7.233 * np.arange(12.0)[:, None])) * 43758.5453
    draws: Floats = (mixed - np.floor(mixed)).sum(axis=0) - 6.0
    return draws
