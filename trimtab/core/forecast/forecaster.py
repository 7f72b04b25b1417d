"""Forecaster: a model's function together with everything the rest of the program needs to know about it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from trimtab.core.model import Forecast, Missing
from trimtab.policy import Record

FINE_S, COARSE_S = 60.0, 300.0
DAY_S = 86400.0


class Forecaster(NamedTuple):
    """One model. `forecast(frame, horizon_s, at, options)` answers each row with a forecast or the reason for none."""

    forecast: Callable[..., list[Forecast | Missing]]
    options: type[Record]
    bin_s: float = COARSE_S  # the history is averaged into bins of this length
    keep_s: float = 15 * DAY_S  # how much history it reads
    cost: float = 1.0  # of one point of history, relative to `seasonal`
    within_tick: bool = False  # cheap enough to be computed in the tick that asks for it
    needs_training: bool = False  # it fits a study per workload first, and needs to know what one pod carries
