"""The usual shape of a day or a week, times how today compares with it: seasonal profile x decaying level ratio.

b(phase) = mean of the same phase in past periods, newer ones weighing more; predicted = b(t + h) * (1 + m *
(y(t) / b(t) - 1)), where m says how much of today's difference is usually left after h (held_out.py). Each row takes
the period that was better on its held-out days, and abstains when neither beats "the same as now".
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from trimtab.core.forecast.batches import Batch, batches, binned, unusable
from trimtab.core.forecast.forecaster import DAY_S, WEEK_S, Dates, Forecaster, known_at
from trimtab.core.forecast.held_out import AccuracyGate, Reach, forecasts, judge, reach_of
from trimtab.core.model import Forecast, Missing
from trimtab.policy import Record
from trimtab.series import Floats, Frame


class SeasonalOptions(Record, frozen=True):
    periods_s: tuple[float, ...] = (DAY_S, WEEK_S)
    fading: float = 0.8  # the weight of a period against the one after it
    gate: AccuracyGate = AccuracyGate()
    valid_s: float = 300.0


DEFAULT = SeasonalOptions()


def forecast(frame: Frame, horizon_s: float, at: float, options: SeasonalOptions = DEFAULT) -> list[Forecast | Missing]:
    """Return the demand from at + horizon_s until it expires, with quantiles, or why there is no forecast."""
    grid = binned(known_at(frame, at))
    least_s = 2 * min(options.periods_s)
    skip = unusable(grid, at, least_s)
    answers: dict[int, Forecast | Missing] = dict(skip)
    reach = reach_of(horizon_s, max(0.0, at - grid.end), options.valid_s, grid.step_s)
    dates = Dates(at, at + options.valid_s)
    for batch in batches(grid, skip, least_s):
        answers.update(zip(batch.rows.tolist(), _best_of(batch, reach, dates, options), strict=True))
    return [answers[row] for row in range(len(frame.names))]


def _best_of(batch: Batch, reach: Reach, dates: Dates, options: SeasonalOptions) -> list[Forecast | Missing]:
    """Try every period that fits twice into the history; the smaller error wins, row by row."""
    columns = batch.values.shape[1]
    best: list[Forecast | Missing] = []
    ratios = np.full(len(batch.rows), np.inf)
    for period_s in options.periods_s:
        period = round(period_s / batch.step_s)
        if best and 2 * period > columns:
            continue
        baseline = profile_baseline(batch.values, period, reach.last, options.fading)
        verdict = judge(batch, baseline, reach.first)
        found = forecasts("seasonal", batch, baseline(columns), verdict, reach, options.gate, dates)
        better = np.nan_to_num(verdict.ratio, nan=np.inf) < ratios
        best = [new if take else old for new, old, take in zip(found, best or found, better, strict=True)]
        ratios = np.where(better, verdict.ratio, ratios)
    return best


def profile_baseline(values: Floats, period: int, beyond: int, fading: float) -> Callable[[int], Floats]:
    """Return the faded mean of the whole periods before a cut, repeated over all columns and `beyond`."""
    clock = np.arange(values.shape[1] + beyond + 1)

    def baseline(cut: int) -> Floats:
        size = min(period, cut)
        whole = cut // size
        periods = values[:, cut - whole * size : cut].reshape(len(values), whole, size)
        weights = fading ** np.arange(whole - 1, -1, -1)
        profile = np.einsum("rwp,w->rp", periods, weights / weights.sum())
        drawn: Floats = profile[:, (clock - cut) % size]
        return drawn

    return baseline


FORECASTER = Forecaster(forecast, SeasonalOptions)
