"""The priced policy on a simulated load: how many pods the learned forecast is worth at the end of each step.

Demand does not depend on how it is served, so one forecast serves every price; the local layer learns on the way, from
outcomes that are over.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trimtab.core.bounds_in_force import clamp
from trimtab.core.forecast.learned.local_layer import FADING, RATE
from trimtab.core.forecast.learned.net import (
    BINS,
    KEEP,
    PROBABILITIES,
    START,
    NetWeights,
    Singles,
    bins_of,
    hidden_of,
    quantiles_of,
)
from trimtab.core.priced import into_band, levels
from trimtab.series import Floats
from trimtab.sim.compiled import compiled, shared
from trimtab.sim.demand_features import KEEP_STEPS, features_at, outcomes
from trimtab.sim.grid import DAY_STEPS, delay_steps
from trimtab.sim.score import Counts

LESSON_STEPS = 3  # between two lessons; four would meet the same quarter of every minute
FIRST_LESSON = 400  # steps; before, a workload has no past to compare with
_CHUNK = 4 * DAY_STEPS

shared(clamp, into_band)


class PricedLevels(NamedTuple):
    """The pods to start and to keep for each price (prices, steps)."""

    start: Counts
    keep: Counts


def priced_levels(load: Floats, startup_s: float, weights: NetWeights, prices: Sequence[float]) -> PricedLevels:
    forecast = _forecast(load, startup_s, weights)
    found = np.empty((2, len(prices), len(load)), dtype=np.int32)
    for first in range(0, len(load), _CHUNK):
        part = slice(first, first + _CHUNK)
        for question in (START, KEEP):
            demand = quantiles_of(forecast.shares[part, question], forecast.level[part])
            found[question, :, part] = [levels(PROBABILITIES, demand, price) for price in prices]
    return PricedLevels(*found)


class _Forecast(NamedTuple):
    shares: Singles  # (steps, 2, bins)
    level: Floats


def _forecast(load: Floats, startup_s: float, weights: NetWeights) -> _Forecast:
    steps, delay = np.arange(len(load)), delay_steps(startup_s)
    hidden, level = np.empty((len(load), len(weights.last)), dtype=np.float32), np.empty(len(load))
    for first in range(0, len(load), _CHUNK):
        part = slice(first, first + _CHUNK)
        features, level[part] = features_at(load, startup_s, steps[part])
        hidden[part] = hidden_of(weights, features)
    bins = bins_of(outcomes(load, delay) - level[:, None])
    shares = np.empty((len(load), 2, BINS), dtype=np.float32)
    learn_into(hidden, weights.last.copy(), weights.last, bins, delay + 1 + KEEP_STEPS, shares)
    return _Forecast(shares, level)


def band_path(found: PricedLevels, start: int, keep: int, first_pods: int, least: int, most: int) -> Counts:
    """The billed pods of every step, where `start` and `keep` number the prices."""
    replicas = np.empty(found.start.shape[1], dtype=np.int32)
    band_into(found.start[start], found.keep[keep], first_pods, least, most, replicas)
    return replicas


@compiled
def band_into(start: Counts, keep: Counts, first_pods: int, least: int, most: int, replicas: Counts) -> None:
    current = first_pods
    for t in range(len(start)):
        replicas[t] = current
        current = clamp(into_band(current, int(start[t]), int(keep[t])), least, most)


@compiled
def learn_into(
    hidden: Singles, last: Singles, common: Singles, bins: NDArray[np.intp], delay: int, shares: Singles
) -> None:
    """`local_layer.lesson` for one workload, step by step: forecast first, then learn from what is over by now."""
    width, outputs = last.shape
    missed = np.empty((2, outputs // 2), dtype=np.float32)
    for t in range(len(hidden)):
        shares_into(hidden[t], last, shares[t])
        moment = t - delay
        if moment >= FIRST_LESSON and moment % LESSON_STEPS == 0:
            seen = hidden[moment]
            shares_into(seen, last, missed)
            size = np.float32(0.0)
            for row in range(1, width):
                size += seen[row] * seen[row]
            rate = np.float32(RATE) / (np.float32(1.0) + size)
            for question in range(2):
                for column in range(outputs // 2):
                    missed[question, column] = -missed[question, column]
                missed[question, bins[moment, question]] += np.float32(1.0)
            for row in range(width):
                step = seen[row] * rate
                for question in range(2):
                    for column in range(outputs // 2):
                        place = question * (outputs // 2) + column
                        own = common[row, place] + (last[row, place] - common[row, place]) * np.float32(1.0 - FADING)
                        last[row, place] = own + step * missed[question, column]


@compiled
def shares_into(hidden: Singles, last: Singles, shares: Singles) -> None:
    """`net.probabilities_of` for one moment."""
    count = shares.shape[1]
    for question in range(2):
        scores = shares[question]
        scores[:] = np.float32(0.0)
        for row in range(len(hidden)):
            for column in range(count):
                scores[column] += hidden[row] * last[row, question * count + column]
        highest, total = scores.max(), np.float32(0.0)
        for column in range(count):
            scores[column] = np.exp(scores[column] - highest)
            total += scores[column]
        for column in range(count):
            scores[column] /= total
