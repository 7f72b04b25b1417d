"""The priced policy on a simulated load: how many pods the learned forecast is worth at the end of each step.

Demand does not depend on how it is served, so one forecast serves every price; the local layer learns on the way, from
outcomes that are over.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trimtab.core.forecast.learned.features import OFFSET_PODS
from trimtab.core.forecast.learned.local_layer import FADING, RATE
from trimtab.core.forecast.learned.net import (
    BIN_WIDTHS,
    BINS,
    KEEP,
    LOWER_EDGES,
    PROBABILITIES,
    START,
    NetWeights,
    Singles,
    bins_of,
    hidden_of,
)
from trimtab.core.priced import SERVICE_LEVEL
from trimtab.policy import Bounds, Rule
from trimtab.series import Floats
from trimtab.sim.compiled import compiled
from trimtab.sim.demand_features import KEEP_STEPS, features_at, outcomes
from trimtab.sim.fast import run_compiled
from trimtab.sim.grid import DAY_STEPS, MEAN_STEPS, STEP_S, delay_steps
from trimtab.sim.program import FIXED_BOUNDS, BoundsBySteps, band_program
from trimtab.sim.score import Counts
from trimtab.sim.sliding_windows import trailing_mean

LESSON_STEPS = 3  # between two lessons; four would meet the same quarter of every minute
FIRST_LESSON = 400  # steps; before, a workload has no past to compare with
_CHUNK = 4 * DAY_STEPS


class PricedLevels(NamedTuple):
    """The pods to start and to keep for each price (prices, steps); never fewer to start than the load needs now."""

    start: Counts
    keep: Counts


def priced_levels(
    load: Floats, startup_s: float, weights: NetWeights, prices: Sequence[float], service_level: float = SERVICE_LEVEL
) -> PricedLevels:
    forecast = forecast_of(load, startup_s, weights)
    found = np.empty((2, len(prices), len(load)), dtype=np.int32)
    for question in (START, KEEP):
        shares = np.ascontiguousarray(forecast.shares[:, question])
        levels_into(shares, forecast.level, PROBABILITIES, np.array(prices), service_level, found[question])
    need = np.ceil(trailing_mean(load, MEAN_STEPS) / service_level - 1e-9).astype(np.int32)
    return PricedLevels(np.maximum(found[START], need), found[KEEP])


class LearnedForecast(NamedTuple):
    shares: Singles  # (steps, 2, bins)
    level: Floats


def forecast_of(load: Floats, startup_s: float, weights: NetWeights) -> LearnedForecast:
    steps, delay = np.arange(len(load)), delay_steps(startup_s)
    hidden, level = np.empty((len(load), len(weights.last)), dtype=np.float32), np.empty(len(load))
    for first in range(0, len(load), _CHUNK):
        part = slice(first, first + _CHUNK)
        features, level[part] = features_at(load, startup_s, steps[part])
        hidden[part] = hidden_of(weights, features)
    bins = bins_of(outcomes(load, delay) - level[:, None])
    shares = np.empty((len(load), 2, BINS), dtype=np.float32)
    learn_into(hidden, weights.last.copy(), weights.last, bins, delay + 1 + KEEP_STEPS, shares)
    return LearnedForecast(shares, level)


def band_path(
    start: Counts,
    keep: Counts,
    first_pods: int,
    bounds: Bounds,
    rules: tuple[Rule, ...] = (),
    by_step: BoundsBySteps = FIXED_BOUNDS,
) -> Counts:
    """The billed pods of every step, from what is worth starting and keeping; written rules bind."""
    program = band_program(rules, bounds, STEP_S, keep.astype(np.float64), by_step)
    return run_compiled(start.astype(np.float64), program, first_pods)


@compiled
def levels_into(
    shares: Singles, level: Floats, probabilities: Floats, prices: Floats, service_level: float, found: Counts
) -> None:
    """`priced.levels` of `net.quantiles_of`, step by step."""
    count = len(probabilities)
    demand, above, pods = np.empty(count), np.empty(count), np.empty(count)
    for t in range(len(shares)):
        quantiles_into(shares[t], level[t], probabilities, demand)
        above[count - 1] = (1.0 - probabilities[count - 1]) * demand[count - 1] * (4.0 / 3.0)
        for number in range(count - 2, -1, -1):
            width = probabilities[number + 1] - probabilities[number]
            above[number] = above[number + 1] + width * (demand[number + 1] + demand[number]) / 2.0
        for number in range(count):
            pods[number] = np.ceil(demand[number] / service_level - 1e-9)
        for place in range(len(prices)):
            best, least = 0, np.inf
            for number in range(count):
                cost = pods[number] + prices[place] * above[number]
                if cost < least:
                    best, least = number, cost
            found[place, t] = int(pods[best])


@compiled
def quantiles_into(shares: Singles, level: float, probabilities: Floats, demand: Floats) -> None:
    total = 0.0
    for share in shares:
        total += share
    place, before = 0, 0.0
    for number in range(len(probabilities)):
        wanted = probabilities[number] * total
        while place < len(shares) - 1 and before + shares[place] < wanted:
            before += shares[place]
            place += 1
        part = min(max((wanted - before) / max(shares[place], 1e-9), 0.0), 1.0)
        growth = LOWER_EDGES[place] + part * BIN_WIDTHS[place]
        demand[number] = max(np.exp(level + growth) - OFFSET_PODS, 0.0)


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
