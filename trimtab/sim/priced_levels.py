"""The priced policy on a simulated load: how many pods the learned forecast is worth at the end of each step.

Demand does not depend on how it is served, so one forecast serves every price; the local layer learns on the way, from
outcomes that are over.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trimtab.core.forecast.learned.features import OFFSET_PODS
from trimtab.core.forecast.learned.net import (
    BIN_WIDTHS,
    BINS,
    FADING,
    KEEP,
    LOWER_EDGES,
    PROBABILITIES,
    RATE,
    START,
    NetWeights,
    Singles,
    bins_of,
    hidden_of,
)
from trimtab.policy import SLO, Bounds, Rule
from trimtab.series import Floats
from trimtab.sim.compiled import compiled
from trimtab.sim.demand_features import KEEP_STEPS, DemandFeatures, outcomes
from trimtab.sim.grid import DAY_STEPS, MEAN_STEPS, STEP_S, delay_steps
from trimtab.sim.numba_engine import run_compiled
from trimtab.sim.program import FIXED_BOUNDS, BoundsBySteps, band_program
from trimtab.sim.score import Counts
from trimtab.sim.sliding_windows import trailing_mean

LESSON_STEPS = 3  # between two lessons; four would meet the same quarter of every minute
FIRST_LESSON = 400  # steps; before, a workload has no past to compare with
_CHUNK = 2 * DAY_STEPS


class PricedLevels(NamedTuple):
    """The pods to start and to keep for each price (prices, steps); never fewer to start than the load needs now."""

    start: Counts
    keep: Counts


def priced_levels(
    load: Floats, startup_s: float, weights: NetWeights, prices: Sequence[float], service_level: float = SLO
) -> PricedLevels:
    found, first = np.empty((2, len(prices), len(load)), dtype=np.int32), 0
    for shares, level in _forecasts(load, startup_s, weights):
        part = slice(first, first + len(level))
        for question in (START, KEEP):
            of_one = np.ascontiguousarray(shares[:, question])
            levels_into(of_one, level, PROBABILITIES, np.array(prices), service_level, found[question, :, part])
        first += len(level)
    need = np.ceil(trailing_mean(load, MEAN_STEPS) / service_level - 1e-9).astype(np.int32)
    return PricedLevels(np.maximum(found[START], need, out=found[START]), found[KEEP])


class LearnedForecast(NamedTuple):
    shares: Singles  # (steps, 2, bins)
    level: Floats


def forecast_of(load: Floats, startup_s: float, weights: NetWeights) -> LearnedForecast:
    shares, level = zip(*_forecasts(load, startup_s, weights), strict=True)
    return LearnedForecast(np.concatenate(shares), np.concatenate(level))


def _forecasts(load: Floats, startup_s: float, weights: NetWeights) -> Iterator[LearnedForecast]:
    """A few days after the other: all at once are too much memory for a night."""
    steps, delay = np.arange(len(load)), delay_steps(startup_s)
    behind = delay + 1 + KEEP_STEPS  # until it is known what came of a moment
    demand, came, last = DemandFeatures(load, startup_s), outcomes(load, delay), weights.last.copy()
    hidden, bins = np.zeros((behind, len(last)), dtype=np.float32), np.zeros((len(load), 2), dtype=np.intp)
    for first in range(0, len(load), _CHUNK):
        part = slice(first, first + _CHUNK)
        features, level = demand.at(steps[part])
        hidden = np.concatenate([hidden[len(hidden) - behind :], hidden_of(weights, features)])
        bins[part] = bins_of(came[part] - level[:, None])
        shares = np.empty((len(level), 2, BINS), dtype=np.float32)
        learn_into(hidden, last, weights.last, bins, first, shares)
        yield LearnedForecast(shares, level)


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
    hidden: Singles, last: Singles, common: Singles, bins: NDArray[np.intp], first: int, shares: Singles
) -> None:
    """`local_layer.lesson` for one workload, step by step: forecast first, then learn from what is over by now.

    The hidden layer is of the steps from `first` on and of those before it whose lessons are still to come.
    """
    width, outputs = last.shape
    said, missed = np.empty(outputs, dtype=np.float32), np.empty(outputs, dtype=np.float32)
    by_step, delay = shares.reshape(len(shares), outputs), len(hidden) - len(shares)
    for index in range(len(shares)):
        shares_into(hidden[delay + index], last, said)
        by_step[index] = said
        moment = first + index - delay
        if moment >= FIRST_LESSON and moment % LESSON_STEPS == 0:
            seen = hidden[index]
            shares_into(seen, last, missed)
            size = np.float32(0.0)
            for row in range(1, width):
                size += seen[row] * seen[row]
            rate = np.float32(RATE) / (np.float32(1.0) + size)
            for place in range(outputs):
                missed[place] = -missed[place]
            for question in range(2):
                missed[question * (outputs // 2) + bins[moment, question]] += np.float32(1.0)
            for row in range(width):
                step = seen[row] * rate
                for place in range(outputs):
                    own = common[row, place] + (last[row, place] - common[row, place]) * np.float32(1.0 - FADING)
                    last[row, place] = own + step * missed[place]


@compiled
def shares_into(hidden: Singles, last: Singles, shares: Singles) -> None:
    """`net.probabilities_of` for one moment, one question after the other; one loop sums for both, in long rows."""
    outputs = len(shares)
    for place in range(outputs):
        shares[place] = np.float32(0.0)
    for row in range(len(hidden)):
        for place in range(outputs):
            shares[place] += hidden[row] * last[row, place]
    for question in range(2):
        scores = shares[question * (outputs // 2) : (question + 1) * (outputs // 2)]
        highest, total = scores.max(), np.float32(0.0)
        for column in range(len(scores)):
            scores[column] = np.exp(scores[column] - highest)
            total += scores[column]
        for column in range(len(scores)):
            scores[column] /= total
