"""Pasts that no forecast should be learned from: no load, constant load, another unit."""

from __future__ import annotations

import numpy as np

from trimtab.core.forecast.dated import spell, unpredictable
from trimtab.core.model import Missing, Reason
from trimtab.series import Floats

UNIT_FACTOR = 8.0  # a level that moves by more than this, and never back, is counted in another unit
_LEAST_PODS = 0.1  # what is below says nothing about units
HOUR = 60  # minutes


def nothing_moves(demand: Floats) -> list[Missing | None]:
    """For each row of minutes; None where there is something to learn."""
    highest, lowest = demand.max(axis=1), demand.min(axis=1)
    return [
        unpredictable("there is no load")
        if high <= 0.0
        else unpredictable("the load is constant: there is nothing to forecast")
        if high == low
        else None
        for high, low in zip(highest.tolist(), lowest.tolist(), strict=True)
    ]


def other_unit_before(demand: Floats) -> np.ndarray:
    """The minute of each row from which on it is counted in the present unit; 0 where it always was.

    All hours after it lie above all hours before it, or all below, by more than the factor.
    """
    hours = demand.shape[1] // HOUR
    cut = demand.shape[1] - hours * HOUR
    middle = np.median(demand[:, cut:].reshape(len(demand), hours, HOUR), axis=2)
    level = np.log(np.maximum(middle, 0.0) + _LEAST_PODS)
    highest, lowest = np.maximum.accumulate(level, axis=1), np.minimum.accumulate(level, axis=1)
    highest_after = np.maximum.accumulate(level[:, ::-1], axis=1)[:, ::-1]
    lowest_after = np.minimum.accumulate(level[:, ::-1], axis=1)[:, ::-1]
    up, down = lowest_after[:, 1:] - highest[:, :-1], lowest[:, :-1] - highest_after[:, 1:]
    moved = np.maximum(up, down) > np.log(UNIT_FACTOR)
    last = moved.shape[1] - moved[:, ::-1].argmax(axis=1)  # the hour after the last such border
    return np.where(moved.any(axis=1), cut + last * HOUR, 0)


def other_unit(minutes: int) -> Missing:
    return Missing(
        reason=Reason.NOT_ENOUGH_HISTORY,
        detail=f"{spell(60.0 * minutes)} ago the load moved more than {UNIT_FACTOR:g}-fold and stayed there, as if it "
        "were counted in another unit; a day of it is needed",
    )
