"""The trained weights, as `benchmarks/train` writes them: part of the program, like its source."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import IO

import numpy as np

from trimtab.core.forecast.learned.net import NetWeights


def load_weights(stored: str | IO[bytes]) -> NetWeights:
    with np.load(stored) as arrays:
        return NetWeights(*(arrays[name] for name in NetWeights._fields))


@cache
def shipped_weights() -> NetWeights:
    """Read when the first forecast is made."""
    with (files(__package__) / "weights.npz").open("rb") as stored:
        return load_weights(stored)
