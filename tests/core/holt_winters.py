"""The next values of a series by Holt-Winters, refused where statsmodels refuses them."""

from __future__ import annotations

import numpy as np

from trimtab.core.forecast.holt_winters import ComponentType, HoltWintersOptions, ahead, least_samples, smooth
from trimtab.errors import InvalidInput, NotEnoughData


def predict(series: np.ndarray, season: int, steps: int, options: HoltWintersOptions | None = None) -> np.ndarray:
    options = options or HoltWintersOptions()
    if series.shape[1] < least_samples(season):
        raise NotEnoughData(f"{series.shape[1]} samples, {least_samples(season)} are needed")
    if ComponentType.MUL in (options.trend, options.seasonal) and bool((series <= 0).any()):
        raise InvalidInput("series", float(series.min()), "a multiplicative model needs values above zero")
    path = smooth(series, season, options)
    return np.hstack([ahead(path, slice(-1, None), step, season, options) for step in range(1, steps + 1)])
