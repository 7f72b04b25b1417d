"""Forecaster: a model's function with everything the rest of the program knows about it, and how models answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from trimtab.core.model import Forecast, Missing, Quantile, Reason
from trimtab.policy import Record
from trimtab.series import Frame

FINE_S, COARSE_S = 60.0, 300.0
HOUR_S, DAY_S, WEEK_S = 3600.0, 86400.0, 604800.0
_REPORTED_STEPS = 48  # of the history that is needed: an hour of two days


class InTick(NamedTuple):
    """`forecast(observed, horizon_s, at, options)` answers from the observations of the last
    `span_s(horizon_s, options)` seconds, as they came."""

    forecast: Callable[..., list[Forecast | Missing]]
    span_s: Callable[..., float]


class Forecaster(NamedTuple):
    """One model. `forecast(frame, horizon_s, at, options)` answers each row with a forecast or the reason for none."""

    forecast: Callable[..., list[Forecast | Missing]]
    options: type[Record]
    bin_s: float = COARSE_S  # the history is averaged into bins of this length
    keep_s: float = 15 * DAY_S  # how much history it reads
    cost: float = 1.0  # of one point of history, relative to `seasonal`
    in_tick: InTick | None = None  # cheap enough to be computed in the tick that asks for it
    needs_training: bool = False  # it fits a study per workload first, and needs to know what one pod carries


class Dates(NamedTuple):
    """When a forecast was made and until when it may be used."""

    made_at: float
    expires_at: float


def known_at(frame: Frame, at: float) -> Frame:
    """Return what was known at `at`, so that a replay of history cannot look ahead."""
    known = int((frame.times <= at).sum())
    if known == frame.values.shape[1]:
        return frame
    return Frame(frame.names, frame.start, frame.step_s, frame.values[:, :known])


def certain(model: str, dates: Dates, value: float, per_pod: bool = False) -> Forecast:
    """Return the forecast of a model that knows one number only: it answers every quantile with it."""
    return Forecast(
        made_at=dates.made_at,
        expires_at=dates.expires_at,
        demand=(Quantile(0.5, float(value)),),
        model=model,
        per_pod=per_pod,
    )


def too_short(has_s: float, needs_s: float) -> Missing:
    """Report too little history, in steps of what is needed, so that the text does not change every minute."""
    step_s = needs_s / _REPORTED_STEPS
    has = f"less than {spell(step_s)}" if 0 < has_s < step_s else spell(has_s // step_s * step_s)
    return Missing(reason=Reason.NOT_ENOUGH_HISTORY, detail=f"{has} of history, {spell(needs_s)} needed")


def unpredictable(why: str) -> Missing:
    return Missing(reason=Reason.NOT_PREDICTABLE, detail=why)


def outdated(since: float, why: str) -> Missing:
    return Missing(reason=Reason.STALE, since=since, detail=why)


def spell(seconds: float) -> str:
    """Write a duration with one unit, as it stands inside a sentence: "36 h", "2.5 d", "90 s"."""
    for size, unit in ((DAY_S, "d"), (HOUR_S, "h"), (60.0, "min")):
        if seconds >= 2 * size or (seconds >= size and seconds % size == 0):
            return f"{np.round(seconds / size, 1):g} {unit}"
    return f"{seconds:g} s"
