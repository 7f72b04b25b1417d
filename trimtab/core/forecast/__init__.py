"""Forecasters: one module per model, batched over a Frame, giving dated forecasts or the reason for having none.

To add one: its module with options and `forecast(frame, horizon_s, at, options)`, a line in FORECASTERS, a test that
flat, noisy, trending and gappy series get the right answer, a line in the documentation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from trimtab.core import weighted_percentile as percentiles
from trimtab.core.forecast import dsp, holt_winters, linear, percentile, seasonal, spectral
from trimtab.core.forecast.learned import model as learned
from trimtab.core.model import Forecast, Missing
from trimtab.errors import InvalidPolicy
from trimtab.policy import ForecastChoice, Record
from trimtab.series import Frame

Forecaster = Callable[..., list[Forecast | Missing]]  # (frame, horizon_s, at, options of the model)

FORECASTERS: dict[str, Forecaster] = {
    "linear": linear.forecast,
    "seasonal": seasonal.forecast,
    "spectral": spectral.forecast,
    "holtWinters": holt_winters.forecast,
    "dsp": dsp.forecast,
    "percentile": percentile.forecast,
    "learned": learned.forecast,
}
OPTIONS: dict[str, type[Record]] = {
    "linear": linear.LinearOptions,
    "seasonal": seasonal.SeasonalOptions,
    "spectral": spectral.SpectralOptions,
    "holtWinters": holt_winters.HoltWintersOptions,
    "dsp": dsp.DspOptions,
    "percentile": percentiles.PercentileOptions,
    "learned": learned.LearnedOptions,
}


def forecast_rows(choice: ForecastChoice, frame: Frame, horizon_s: float, at: float) -> list[Forecast | Missing]:
    """What a policy asks for. Rows are total demand; for document 003's exact line they are each pod's utilisation."""
    return FORECASTERS[choice.model](frame, horizon_s, at, options_of(choice))


def options_of(choice: ForecastChoice) -> Any:
    """A policy's plain settings as the model's own; a name or value that makes no sense is refused with its path."""
    kind = OPTIONS.get(choice.model)
    if kind is None:
        raise InvalidPolicy("forecast.model", choice.model, f"known models: {', '.join(FORECASTERS)}")
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


__all__ = ["FORECASTERS", "OPTIONS", "Forecast", "forecast_rows", "options_of"]
