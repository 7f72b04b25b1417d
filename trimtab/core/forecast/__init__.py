"""Forecasters: one module a model, batched over a Frame, giving dated outlooks or the reason for having none.

To add one: its module with `Options` and `forecast(frame, horizon_s, at, options)`, a line in FORECASTERS,
a test that flat, noisy, trending and gappy series get the right answer, a line in the documentation.
"""

from __future__ import annotations

from collections.abc import Callable

from trimtab.core.forecast import dsp, holt_winters, linear, percentile, seasonal, spectral
from trimtab.core.model import Missing, Outlook

Forecast = Callable[..., list[Outlook | Missing]]  # (frame, horizon_s, at, options of the model)

FORECASTERS: dict[str, Forecast] = {
    "linear": linear.forecast,
    "seasonal": seasonal.forecast,
    "spectral": spectral.forecast,
    "dsp": dsp.forecast,
    "percentile": percentile.forecast,
    "holtWinters": holt_winters.forecast,
}

__all__ = ["FORECASTERS", "Forecast"]
