"""horizon: how far ahead a forecast looks: what the policy says, else the start-up time of nine pods of ten."""

from __future__ import annotations

from trimtab.core.model import Missing, Startup
from trimtab.policy import ForecastChoice

UNKNOWN_STARTUP_S = 60.0


def horizon_s(choice: ForecastChoice, started: Startup | Missing) -> float:
    if choice.horizon_s is not None:
        return choice.horizon_s
    return UNKNOWN_STARTUP_S if isinstance(started, Missing) else max(1.0, started.quantiles[-1].value)
