"""Forecasters: one module per model, batched over a Frame, giving dated forecasts or the reason for having none.

To add one, see CONTRIBUTING.md: a module with options, a `forecast` function and its FORECASTER record, and a line in
FORECASTERS.
"""

from __future__ import annotations

from typing import Any

import msgspec

from trimtab.core.forecast import dsp, holt_winters, linear, percentile, seasonal
from trimtab.core.forecast.forecaster import Forecaster
from trimtab.core.forecast.learned import model as learned
from trimtab.core.model import Forecast, Missing
from trimtab.errors import InvalidPolicy
from trimtab.policy import ForecastChoice
from trimtab.series import Frame

FORECASTERS: dict[str, Forecaster] = {
    "linear": linear.FORECASTER,
    "seasonal": seasonal.FORECASTER,
    "holtWinters": holt_winters.FORECASTER,
    "dsp": dsp.FORECASTER,
    "percentile": percentile.FORECASTER,
    "learned": learned.FORECASTER,
}


def forecast_rows(choice: ForecastChoice, frame: Frame, horizon_s: float, at: float) -> list[Forecast | Missing]:
    """Forecast rows of total demand, or of each pod's utilization for predictive HPA's exact line."""
    return FORECASTERS[choice.model].forecast(frame, horizon_s, at, options_of(choice))


def options_of(choice: ForecastChoice) -> Any:
    """A policy's plain settings as the model's own; a name or value that makes no sense is refused with its path."""
    if choice.model not in FORECASTERS:
        raise InvalidPolicy("forecast.model", choice.model, f"known models: {', '.join(FORECASTERS)}")
    kind = FORECASTERS[choice.model].options
    known = kind.__struct_fields__
    for name, value in choice.options.items():
        if name not in known:
            raise InvalidPolicy(f"forecast.options.{name}", value, f"known: {', '.join(sorted(known))}")
    implied = {"exact": choice.exact, "per_pod": choice.exact}
    settings = {name: value for name, value in implied.items() if name in known} | choice.options
    try:
        return msgspec.convert(settings, kind, strict=False)
    except msgspec.ValidationError as error:
        raise InvalidPolicy("forecast.options", choice.options, str(error)) from error


__all__ = ["FORECASTERS", "Forecast", "Forecaster", "forecast_rows", "options_of"]
