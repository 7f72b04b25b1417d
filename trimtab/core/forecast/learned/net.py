"""The learned distribution of growth: one hidden layer for all workloads, and a last layer fine-tuned per workload.

The net answers two questions at once, each by the probabilities of 30 steps of growth over the present level: `START`,
the highest demand in the minute after a pod started now begins to serve; `KEEP`, the highest from now until three
minutes after a pod removed now could be replaced.

Inputs and weights of every product lie on grids on which 64-bit sums of so many products cannot round. So a product of
matrices has one answer, whatever library, processor or number of rows computes it.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trimtab.core.forecast.learned.features import OFFSET_PODS, on_grid
from trimtab.series import Floats

Singles = NDArray[np.float32]

START, KEEP = range(2)
# fmt: off
EDGES = np.array([
    -1, -0.5, -0.3, -0.2, -0.13, -0.08, -0.05, -0.03, -0.01, 0.01, 0.03, 0.05, 0.07, 0.1, 0.13, 0.17, 0.22, 0.28, 0.35,
    0.43, 0.53, 0.65, 0.8, 1.0, 1.25, 1.6, 2.0, 2.6, 3.3,
])
PROBABILITIES = np.array([
    0.3, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.93, 0.95, 0.965, 0.98, 0.99, 0.995, 0.998, 0.9995,
])
# fmt: on
BINS = len(EDGES) + 1
LOWER_EDGES = np.concatenate([[EDGES[0] - 1.0], EDGES])
BIN_WIDTHS = np.concatenate([[1.0], np.diff(EDGES), [0.5]])  # of each bin; the open ones count as this wide

_LEAK = 0.05
_OUTMOST, _LARGEST = 6.0, 32.0  # of an input, in standard deviations, and of a hidden value
_INPUT_GRID, _WEIGHT_GRID, _LAST_GRID = 2.0**10, 2.0**14, 2.0**20
_LARGEST_WEIGHT = 48.0
_LAST_LIMIT = 15.0  # multiples of 2^-20 below 16 fit into 32 bits
RATE, FADING = 0.12, 2e-4  # of a lesson


class NetWeights(NamedTuple):
    """The trained weights. The hidden layer comes out whitened, so that one rate fits every direction of `last`."""

    mean: Floats
    spread: Floats
    first: Floats
    first_bias: Floats
    whiten: Floats
    whiten_bias: Floats
    last: Floats  # (1 + hidden, 2 x bins); the first row is the bias


def on_grids(weights: NetWeights) -> NetWeights:
    """Return the weights as they are used: each where sums of its products are exact."""
    wide = NetWeights(*(np.asarray(part, dtype=np.float64) for part in weights))
    first, first_bias, whiten, whiten_bias = (
        on_grid(np.clip(part, -_LARGEST_WEIGHT, _LARGEST_WEIGHT), _WEIGHT_GRID) for part in wide[2:6]
    )
    return NetWeights(wide.mean, wide.spread, first, first_bias, whiten, whiten_bias, _bounded(wide.last))


def load_weights(stored: str | IO[bytes]) -> NetWeights:
    with np.load(stored) as arrays:
        return on_grids(NetWeights(*(arrays[name] for name in NetWeights._fields)))


@cache
def shipped_weights() -> NetWeights:
    """Read the weights that `benchmarks/train` wrote, when the first forecast is made."""
    with (files(__package__) / "weights.npz").open("rb") as stored:
        return load_weights(stored)


def hidden_of(weights: NetWeights, features: Floats) -> Floats:
    """Return (rows, 1 + hidden): a constant and the whitened hidden layer."""
    scaled = on_grid(np.clip((features - weights.mean) / weights.spread, -_OUTMOST, _OUTMOST), _INPUT_GRID)
    summed = scaled @ weights.first + weights.first_bias
    bent = on_grid(np.maximum(summed, _LEAK * summed), _WEIGHT_GRID)
    white = on_grid(np.clip(bent @ weights.whiten + weights.whiten_bias, -_LARGEST, _LARGEST), _INPUT_GRID)
    return np.concatenate([np.ones((len(white), 1)), white], axis=1)


def powers_of(scores: Floats) -> Floats:
    """Return (rows, 2, bins) cumulated along the bins: how likely growth is to end in a bin or below, not yet shares
    of one. `scores` are what a last layer makes of the hidden one, (rows, outputs)."""
    shaped = scores.reshape(len(scores), 2, BINS)
    cumulated: Floats = np.cumsum(np.exp(shaped - shaped.max(axis=2, keepdims=True)), axis=2)
    return cumulated


def probabilities_of(last: Floats, hidden: Floats) -> Floats:
    """Return (rows, 2, bins) by one last layer."""
    below = powers_of(hidden @ last)
    shares: Floats = np.diff(below, axis=2, prepend=0.0) / below[:, :, -1:]
    return shares


def bins_of(growth: Floats) -> NDArray[np.intp]:
    """Return the bin of a growth that was observed."""
    return np.searchsorted(EDGES, growth, side="right")


def quantiles_of(below: Floats, level: Floats, probabilities: Floats = PROBABILITIES) -> Floats:
    """Return demand in pods (rows, probabilities) from `powers_of` one question (rows, bins), linear within a bin."""
    wanted = probabilities * below[:, -1:]
    reached = np.zeros(wanted.shape, dtype=np.intp)
    for edge in range(below.shape[1] - 1):
        reached += below[:, edge, None] < wanted
    rows = np.arange(len(below))[:, None]
    before = np.where(reached > 0, below[rows, reached - 1], 0.0)
    inside = below[rows, reached] - before
    part = np.clip((wanted - before) / np.maximum(inside, 1e-300), 0.0, 1.0)
    growth = LOWER_EDGES[reached] + part * BIN_WIDTHS[reached]
    demand: Floats = np.maximum(np.exp(level[:, None] + growth) - OFFSET_PODS, 0.0)
    return demand


def lessons(
    last: Floats, common: Floats, hidden: Floats, outcomes: NDArray[np.intp], rate: float = RATE
) -> tuple[Floats, Floats]:
    """Return the last layer after these lessons, and how likely it called each outcome (rows, 2) before.

    Each is a normalized gradient step on the likelihood of the bins that growth fell into. The layer fades toward
    `common`, the layer of all workloads, so a workload that behaves like all others ends with that.
    """
    missed = -probabilities_of(last, hidden)
    rows, questions = np.arange(len(hidden))[:, None], np.arange(2)
    likely = -missed[rows, questions, outcomes]
    missed[rows, questions, outcomes] += 1.0
    rates = rate / (1.0 + (hidden[:, 1:] ** 2).sum(axis=1))
    taught = on_grid(hidden * rates[:, None], _LAST_GRID).T @ on_grid(missed.reshape(len(hidden), -1), _WEIGHT_GRID)
    kept = (1.0 - FADING) ** len(hidden)
    return _bounded(common + (last - common) * kept + taught), likely


def _bounded(last: Floats) -> Floats:
    return on_grid(np.clip(last, -_LAST_LIMIT, _LAST_LIMIT), _LAST_GRID)
