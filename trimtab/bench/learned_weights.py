"""The trained weights of the learned forecast, as `benchmarks/train` writes them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

from trimtab.core.forecast.learned.net import NetWeights


def load_weights(path: Path) -> NetWeights:
    with np.load(path) as stored:
        return NetWeights(*(stored[name] for name in NetWeights._fields))


@cache
def shipped_weights() -> NetWeights:
    return load_weights(Path(__file__).parent / "learned_weights.npz")
