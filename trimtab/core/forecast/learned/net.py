"""The learned distribution of growth: one hidden layer for all workloads, and a last layer that each may bend.

Two questions are answered at once, each by the probabilities of 30 steps of growth over the present level: `START`, the
highest demand in the minute after a pod that is ordered now begins to serve; `KEEP`, the highest from now until a pod
that is let go now could be back and three minutes more.
"""

from __future__ import annotations

from typing import NamedTuple

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
LOWER_EDGES = np.concatenate([[EDGES[0] - 1.0], EDGES])
BIN_WIDTHS = np.concatenate([[1.0], np.diff(EDGES), [0.5]])  # of each bin; the open ones count as this wide


class NetWeights(NamedTuple):
    """What training found; the hidden layer comes out whitened, so that one rate fits every direction of `last`."""

    mean: Singles
    spread: Singles
    first: Singles
    first_bias: Singles
    whiten: Singles
    whiten_bias: Singles
    last: Singles  # (1 + hidden, 2 x bins); the first row is the bias


def hidden_of(weights: NetWeights, features: Floats) -> Singles:
    """(rows, 1 + hidden): a constant and the whitened hidden layer."""
    scaled = features.astype(np.float32)
    scaled -= weights.mean
    scaled /= weights.spread
    summed = np.clip(scaled, -_OUTMOST, _OUTMOST, out=scaled) @ weights.first + weights.first_bias
    white = np.maximum(summed, _LEAK * summed) @ weights.whiten + weights.whiten_bias
    return np.concatenate([np.ones((len(white), 1), dtype=np.float32), white], axis=1)


def probabilities_of(last: Singles, hidden: Singles) -> Singles:
    """(rows, 2, bins); `last` is the layer of all, (1 + hidden, outputs), or one for each row, with rows in front."""
    summed = hidden @ last if last.ndim == 2 else np.matmul(hidden[:, None, :], last)[:, 0]
    shaped = summed.reshape(len(hidden), 2, BINS)
    powers = np.exp(shaped - shaped.max(axis=2, keepdims=True))
    shares: Singles = powers / powers.sum(axis=2, keepdims=True)
    return shares


def bins_of(growth: Floats) -> NDArray[np.intp]:
    """Into which bin a growth that has come to pass falls."""
    return np.searchsorted(EDGES, growth, side="right")


def quantiles_of(shares: Singles, level: Floats, probabilities: Floats = PROBABILITIES) -> Floats:
    """Demand in pods (rows, probabilities) from the shares of one question (rows, bins), linear within a bin."""
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
