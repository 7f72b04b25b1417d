"""The learned distribution of growth: one hidden layer for all workloads, and a last layer fine-tuned per workload.

The net answers two questions at once, each by the probabilities of 30 steps of growth over the present level: `START`,
the highest demand in the minute after a pod started now begins to serve; `KEEP`, the highest from now until three
minutes after a pod removed now could be replaced.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trimtab.core.forecast.learned.features import OFFSET_PODS
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
_LEAK = np.float32(0.05)
_OUTMOST = 6.0  # standard deviations
RATE = 0.06  # of a lesson
FADING = 2e-5  # of what was learned, at each lesson
LOWER_EDGES = np.concatenate([[EDGES[0] - 1.0], EDGES])
BIN_WIDTHS = np.concatenate([[1.0], np.diff(EDGES), [0.5]])  # of each bin; the open ones count as this wide


class NetWeights(NamedTuple):
    """The trained weights. The hidden layer comes out whitened, so that one rate fits every direction of `last`."""

    mean: Singles
    spread: Singles
    first: Singles
    first_bias: Singles
    whiten: Singles
    whiten_bias: Singles
    last: Singles  # (1 + hidden, 2 x bins); the first row is the bias


def load_weights(stored: str | IO[bytes]) -> NetWeights:
    with np.load(stored) as arrays:
        return NetWeights(*(arrays[name] for name in NetWeights._fields))


@cache
def shipped_weights() -> NetWeights:
    """Read the weights that `benchmarks/train` wrote, when the first forecast is made."""
    with (files(__package__) / "weights.npz").open("rb") as stored:
        return load_weights(stored)


def hidden_of(weights: NetWeights, features: Floats) -> Singles:
    """Return (rows, 1 + hidden): a constant and the whitened hidden layer."""
    scaled = features.astype(np.float32)
    scaled -= weights.mean
    scaled /= weights.spread
    summed = np.clip(scaled, -_OUTMOST, _OUTMOST, out=scaled) @ weights.first + weights.first_bias
    white = np.maximum(summed, _LEAK * summed) @ weights.whiten + weights.whiten_bias
    return np.concatenate([np.ones((len(white), 1), dtype=np.float32), white], axis=1)


def probabilities_of(last: Singles, hidden: Singles) -> Singles:
    """Return (rows, 2, bins). `last` is the layer of all, (1 + hidden, outputs), or one for each row, rows in front."""
    summed = hidden @ last if last.ndim == 2 else np.matmul(hidden[:, None, :], last)[:, 0]
    shaped = summed.reshape(len(hidden), 2, BINS)
    powers = np.exp(shaped - shaped.max(axis=2, keepdims=True))
    shares: Singles = powers / powers.sum(axis=2, keepdims=True)
    return shares


def bins_of(growth: Floats) -> NDArray[np.intp]:
    """Return the bin of a growth that was observed."""
    return np.searchsorted(EDGES, growth, side="right")


def quantiles_of(shares: Singles, level: Floats, probabilities: Floats = PROBABILITIES) -> Floats:
    """Return demand in pods (rows, probabilities) from the shares of one question (rows, bins), linear within a bin."""
    below = np.cumsum(shares, axis=1, dtype=np.float64)
    below /= below[:, -1:]
    reached = (below[:, None, :-1] < probabilities[None, :, None]).sum(axis=2)
    inside = np.take_along_axis(shares, reached, axis=1)
    before = np.take_along_axis(below, reached, axis=1) - inside
    part = np.clip((probabilities - before) / np.maximum(inside, 1e-9), 0.0, 1.0)
    lower = LOWER_EDGES[reached]
    growth = lower + part * BIN_WIDTHS[reached]
    demand: Floats = np.maximum(np.exp(level[:, None] + growth) - OFFSET_PODS, 0.0)
    return demand


def lesson(
    last: Singles,
    common: Singles,
    hidden: Singles,
    outcome: NDArray[np.intp],
    rate: float = RATE,
    fading: float = FADING,
) -> Singles:
    """Return the last layers (rows, 1 + hidden, outputs) after one outcome each: the bins (rows, 2) growth fell into.

    It is a normalized gradient step on the likelihood of what happened. Each layer fades toward `common`, the layer of
    all workloads, so a workload that behaves like all others ends with that. The fewer lessons, the higher the rate.
    """
    missed = -probabilities_of(last, hidden)
    np.put_along_axis(missed, outcome[:, :, None], np.take_along_axis(missed, outcome[:, :, None], 2) + 1.0, axis=2)
    step_rate = np.float32(rate) / (1.0 + (hidden[:, 1:] ** 2).sum(axis=1))
    step = (hidden * step_rate[:, None])[:, :, None] * missed.reshape(len(hidden), 1, 2 * BINS)
    faded: Singles = common + (last - common) * np.float32(1.0 - fading) + step
    return faded
