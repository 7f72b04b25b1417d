"""Forecasters: one module per model, batched over a Frame, giving dated forecasts or the reason for having none.

To add one, see CONTRIBUTING.md: its name in `policy.ForecastModel`, and a module of that name with its options, a
`forecast` function and the FORECASTER record.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, get_args

import msgspec

from trimtab.core.forecast.forecaster import Forecaster
from trimtab.core.model import Forecast, Missing
from trimtab.errors import InvalidPolicy
from trimtab.policy import ForecastChoice, ForecastModel
from trimtab.series import Frame


def _forecaster(model: str) -> Forecaster:
    """The FORECASTER of the module that is named after the model."""
    module = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in model)
    found: Forecaster = import_module(f"trimtab.core.forecast.{module}").FORECASTER
    return found


FORECASTERS: dict[str, Forecaster] = {model: _forecaster(model) for model in get_args(ForecastModel)}


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
