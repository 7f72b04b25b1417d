"""Sliding windows over a series, in linear time: means of the past, maxima of the future."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from trimtab.series import Floats

Number = TypeVar("Number", bound=np.generic)


def trailing_mean(values: Floats, width: int) -> Floats:
    """The mean of the last `width` values, of all there are at the beginning; a later value changes no earlier mean."""
    total = values.copy()
    for back in range(1, min(width, len(values))):
        total[back:] += values[:-back]
    return total / np.minimum(np.arange(1, len(values) + 1), width)


def delayed(values: Floats, steps: int) -> Floats:
    """Each value `steps` later; the first one stands for those before it."""
    if not steps:
        return values
    return np.concatenate((np.full(min(steps, len(values)), values[0]), values[:-steps]))


def forward_max(values: NDArray[Number], ahead: int) -> NDArray[Number]:
    """max(values[t] .. values[t + ahead]) for every t (van Herk): running maxima of blocks from both sides."""
    width = ahead + 1
    blocks = -(-(len(values) + ahead) // width)
    filler = np.full(blocks * width - len(values), values.min(), dtype=values.dtype)
    rows = np.concatenate((values, filler)).reshape(blocks, width)
    forward = np.maximum.accumulate(rows, axis=1).ravel()
    backward = np.maximum.accumulate(rows[:, ::-1], axis=1)[:, ::-1].ravel()
    return np.maximum(backward[: len(values)], forward[ahead : ahead + len(values)])


def backward_min(values: NDArray[Number], back: int) -> NDArray[Number]:
    """min(values[t - back] .. values[t]); before the first value it is taken to have been the same."""
    padded = np.concatenate((np.full(back, values[0], dtype=values.dtype), values))
    lowest: NDArray[Number] = np.negative(forward_max(np.negative(padded), back))[: len(values)]
    return lowest
