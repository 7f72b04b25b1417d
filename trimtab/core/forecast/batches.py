"""Frames become batches that a model can take: five-minute bins, the same length of history, no holes.

Samples fall into the bin that contains them, so jittered timestamps do no harm; a bin without samples lies
on the straight line between its neighbours, and is never used to judge a forecast. What is said of a row depends on
that row alone: where a frame begins is the age of its oldest row.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trimtab.core.demand.log import bin_means
from trimtab.core.forecast.forecaster import COARSE_S, HOUR_S, outdated, spell, too_short
from trimtab.core.model import Missing, Reason
from trimtab.series import Floats, Frame

_LEAST_SHARE = 0.7  # of the bins that must hold a sample
_STALE_BINS = 3
_CHUNK = 500  # rows at a time: what fits the cache

Flags = NDArray[np.bool_]


class Batch(NamedTuple):
    """Rows of a frame that share one length of history; `present` marks the bins that were measured."""

    rows: NDArray[np.intp]
    values: Floats
    present: Flags
    step_s: float


def binned(frame: Frame) -> Frame:
    """The mean of each bin, counted back from the end of the frame; NaN where a bin is empty.

    A first bin that the frame has only a part of stays: a frame with an older row would have all of it.
    """
    width = max(1, round(COARSE_S / frame.step_s))
    if width == 1:
        return frame
    before = -frame.values.shape[1] % width
    whole = np.pad(frame.values, ((0, 0), (before, 0)), constant_values=np.nan)
    return Frame(frame.names, frame.start - before * frame.step_s, width * frame.step_s, bin_means(whole, width))


def unusable(frame: Frame, at: float, least_s: float) -> dict[int, Missing]:
    """The rows that no model should see, each with its reason."""
    present = np.isfinite(frame.values)
    columns, reasons = frame.values.shape[1], {}
    for row in np.flatnonzero(~_complete(present, frame, at, least_s)).tolist():
        first, last = _ends(present[row])
        span = last - first + 1
        share = float(present[row, first:].mean()) if span > 0 else 0.0
        newest = frame.start + (last + 1) * frame.step_s
        if span * frame.step_s < least_s:
            reasons[row] = too_short(max(0, span) * frame.step_s, least_s)
        elif at - newest >= _stale_s(frame):
            reasons[row] = _old(newest, at)
        else:
            reasons[row] = Missing(
                reason=Reason.NOT_ENOUGH_HISTORY,
                detail=f"only {share:.0%} of the last {spell((columns - first) * frame.step_s)} "
                f"has samples, {_LEAST_SHARE:.0%} needed",
            )
    return reasons


def stale(frame: Frame, at: float) -> dict[int, Missing]:
    """The rows whose newest sample is too old for any forecast of now; rows without one are not among them."""
    present, reasons = np.isfinite(frame.values), {}
    for row in np.flatnonzero(present.any(axis=1)).tolist():
        newest = frame.start + (_ends(present[row])[1] + 1) * frame.step_s
        if at - newest >= _stale_s(frame):
            reasons[row] = _old(newest, at)
    return reasons


def _stale_s(frame: Frame) -> float:
    """Bins shorter than usual make nobody silent after a minute."""
    return _STALE_BINS * max(COARSE_S, frame.step_s)


def _old(newest: float, at: float) -> Missing:
    return outdated(newest, f"the newest sample is {spell(at - newest)} old")


def _complete(present: Flags, frame: Frame, at: float, least_s: float) -> Flags:
    columns = present.shape[1]
    if columns == 0:
        return np.zeros(len(present), dtype=bool)
    first = present.argmax(axis=1)
    last = columns - 1 - present[:, ::-1].argmax(axis=1)
    fresh = at - (frame.start + (last + 1) * frame.step_s) < _stale_s(frame)
    dense = present.sum(axis=1) >= _LEAST_SHARE * (columns - first)
    long = (last - first + 1) * frame.step_s >= least_s
    complete: Flags = fresh & dense & long & (present.sum(axis=1) > 0)
    return complete


def _ends(present: Flags) -> tuple[int, int]:
    """The first and the last measured bin; an empty row ends before it begins."""
    where = np.flatnonzero(present)
    return (int(where[0]), int(where[-1])) if len(where) else (0, -1)


def batches(frame: Frame, skip: dict[int, Missing], least_s: float, whole_s: float = HOUR_S) -> Iterator[Batch]:
    """Rows that have as many whole hours go together, without the bins before their first sample.

    Hours count back from the end, for a row's forecast must not depend on who else is in the frame.
    """
    usable = np.array([row for row in range(len(frame.names)) if row not in skip], dtype=np.intp)
    if len(usable) == 0:
        return
    lengths = frame.values.shape[1] - np.isfinite(frame.values[usable]).argmax(axis=1)
    kept = np.maximum(lengths - lengths % max(1, round(whole_s / frame.step_s)), ceil(least_s / frame.step_s))
    for length in np.unique(kept):
        rows = usable[kept == length]
        for index in range(ceil(len(rows) / _CHUNK)):
            some = rows[index * _CHUNK : (index + 1) * _CHUNK]
            raw = frame.values[some, -int(length) :]
            yield Batch(some, filled(raw), np.isfinite(raw), frame.step_s)


def filled(values: Floats) -> Floats:
    """Straight lines across holes, the nearest value beyond the ends."""
    whole = values.copy()
    columns = np.arange(values.shape[1])
    for row in np.flatnonzero(~np.isfinite(values).all(axis=1)):
        known = np.isfinite(values[row])
        whole[row] = np.interp(columns, columns[known], values[row, known])
    return whole
