"""Crane's percentile predictor: a percentile of the history is the forecast for every horizon."""

from __future__ import annotations

import numpy as np

from trimtab.core.forecast.batches import stale
from trimtab.core.forecast.forecaster import FINE_S, Dates, Forecaster, certain, known_at
from trimtab.core.model import Forecast, Missing, Reason
from trimtab.core.weighted_percentile import DEFAULT, PercentileOptions, estimate
from trimtab.series import Frame

_SILENT = Missing(reason=Reason.NOT_ENOUGH_HISTORY, detail="no sample in the whole history")


def forecast(
    frame: Frame, horizon_s: float, at: float, options: PercentileOptions = DEFAULT
) -> list[Forecast | Missing]:
    """Return one constant for each row, whatever the horizon."""
    known_then = known_at(frame, at)
    values = estimate(known_then, options).tolist()
    known = (np.isfinite(known_then.values).sum(axis=1) > 0).tolist()
    dates, old = Dates(at, at + options.valid_s), stale(known_then, at)
    return [
        old.get(row) or (certain("percentile", dates, value) if seen else _SILENT)
        for row, (value, seen) in enumerate(zip(values, known, strict=True))
    ]


# A percentile of means is not the mean of percentiles, so the bins are fine.
FORECASTER = Forecaster(forecast, PercentileOptions, bin_s=FINE_S, cost=0.2)
