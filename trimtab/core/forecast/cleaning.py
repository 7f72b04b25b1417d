"""Crane's preparation of a series: cut before long gaps, fill short ones, keep whole units, flatten outliers.

Not ours: our own models take frames with holes. A gap above an hour discards everything before it;
timestamps that are no multiple of the interval apart make the series invalid.
"""

from __future__ import annotations

import numpy as np

from trimtab.core.weighted_percentile import rank_percentile
from trimtab.errors import InvalidInput, NotEnoughData
from trimtab.series import Floats, Series

LONGEST_GAP_S = 3600.0
_LOW_PERCENT, _HIGH_PERCENT = 0.1, 99.9


def clean(series: Series, step_s: float, unit_s: float) -> Series:
    """All of it, in Crane's order."""
    filled = fill(after_last_gap(series), step_s)
    whole = newest_units(filled, step_s, unit_s)
    return Series(whole.times, without_outliers(whole.values)) if len(whole) else whole


def after_last_gap(series: Series) -> Series:
    gaps = np.flatnonzero(np.diff(series.times) > LONGEST_GAP_S)
    return series.since(float(series.times[gaps[-1] + 1])) if len(gaps) else series


def fill(series: Series, step_s: float) -> Series:
    """Straight lines across what is missing."""
    if len(series) == 0:
        raise NotEnoughData("the series is empty: check the query and its time range")
    steps = np.diff(series.times) / step_s
    if bool((steps == 1.0).all()):
        return series
    odd = np.flatnonzero(steps != np.rint(steps))
    if len(odd):
        late = float(series.times[odd[0] + 1])
        raise InvalidInput("timestamp", late, f"must lie a multiple of {step_s:g} s after the one before")
    places = np.concatenate(([0.0], np.cumsum(steps)))
    count = int(places[-1]) + 1
    values = np.interp(np.arange(count), places, series.values)
    return Series(series.times[0] + step_s * np.arange(count), values)


def newest_units(series: Series, step_s: float, unit_s: float) -> Series:
    """The newest whole units (hours, days, weeks)."""
    first = len(series) % int(unit_s / step_s)
    return Series(series.times[first:], series.values[first:])


def outlier_bounds(values: Floats) -> tuple[float, float] | None:
    """What lies outside is an outlier; None when the series is too short to say."""
    try:
        return rank_percentile(values, _LOW_PERCENT), rank_percentile(values, _HIGH_PERCENT)
    except NotEnoughData:
        return None


def without_outliers(values: Floats) -> Floats:
    """Outliers take the value before them; the first sample stays what it is."""
    bounds = outlier_bounds(values)
    if bounds is None:
        return values
    good = (values >= bounds[0]) & (values <= bounds[1])
    good[0] = True
    source = np.maximum.accumulate(np.where(good, np.arange(len(values)), 0))
    flattened: Floats = values[source]
    return flattened
