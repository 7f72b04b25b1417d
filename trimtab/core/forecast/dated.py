"""Predicted values become dated forecasts; what cannot be predicted becomes Missing and says why."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trimtab.core.model import Forecast, Missing, Quantile, Reason
from trimtab.series import Floats, Frame

STEPS = 48  # of the history that is needed: an hour of two days


class Dates(NamedTuple):
    """When a forecast was made and until when it may be used."""

    made_at: float
    expires_at: float


def known_at(frame: Frame, at: float) -> Frame:
    """What could be known at `at`: whoever replays history cannot look ahead by accident."""
    known = int((frame.times <= at).sum())
    return (
        frame
        if known == frame.values.shape[1]
        else Frame(frame.names, frame.start, frame.step_s, frame.values[:, :known])
    )


def dated(model: str, dates: Dates, demand: tuple[Quantile, ...], per_pod: bool = False) -> Forecast:
    return Forecast(made_at=dates.made_at, expires_at=dates.expires_at, demand=demand, model=model, per_pod=per_pod)


def certain(model: str, dates: Dates, value: float, per_pod: bool = False) -> Forecast:
    """A model that knows one number only: it answers every quantile with it."""
    return dated(model, dates, (Quantile(0.5, value),), per_pod)


def too_short(has_s: float, needs_s: float) -> Missing:
    """In steps of what is needed: a word that grows with every minute would be news in every minute."""
    step_s = needs_s / STEPS
    has = f"less than {spell(step_s)}" if 0 < has_s < step_s else spell(has_s // step_s * step_s)
    return Missing(reason=Reason.NOT_ENOUGH_HISTORY, detail=f"{has} of history, {spell(needs_s)} needed")


def unpredictable(why: str) -> Missing:
    return Missing(reason=Reason.NOT_PREDICTABLE, detail=why)


def outdated(since: float, why: str) -> Missing:
    return Missing(reason=Reason.STALE, since=since, detail=why)


def largest_between(times: Floats, values: Floats, start: float, end: float) -> float | None:
    """The largest value predicted for start <= t <= end; None when the prediction does not reach there."""
    inside = values[(times >= start) & (times <= end)]
    return float(inside.max()) if len(inside) else None


def spell(seconds: float) -> str:
    """ "36 h", "2.5 d", "90 s": one unit, because it stands inside a sentence."""
    for size, unit in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 2 * size or (seconds >= size and seconds % size == 0):
            return f"{np.round(seconds / size, 1):g} {unit}"
    return f"{seconds:g} s"
