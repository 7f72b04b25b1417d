"""What one workload teaches: its own last layer, bent a little by every forecast that has come to pass.

A normalised gradient step on the likelihood of what happened. The change fades, so that a workload that behaves like
all others ends with the layer of all others.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trimtab.core.forecast.learned.net import BINS, Singles, probabilities_of

RATE = 0.06
FADING = 2e-5  # for each lesson


def lesson(
    last: Singles,
    common: Singles,
    hidden: Singles,
    outcome: NDArray[np.intp],
    rate: float = RATE,
    fading: float = FADING,
) -> Singles:
    """The layers (rows, 1 + hidden, outputs) after one outcome each: the bins (rows, 2) that growth fell into.

    `common` is the layer of all workloads, towards which each fades. The fewer lessons, the higher the rate.
    """
    missed = -probabilities_of(last, hidden)
    np.put_along_axis(missed, outcome[:, :, None], np.take_along_axis(missed, outcome[:, :, None], 2) + 1.0, axis=2)
    step_rate = np.float32(rate) / (1.0 + (hidden[:, 1:] ** 2).sum(axis=1))
    step = (hidden * step_rate[:, None])[:, :, None] * missed.reshape(len(hidden), 1, 2 * BINS)
    faded: Singles = common + (last - common) * np.float32(1.0 - fading) + step
    return faded
