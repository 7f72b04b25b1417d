"""Would this model have beaten "the same as now" on days it has not seen?

A model gives a baseline b, fitted before a cut and continued beyond it. Its error now decays with the horizon h:
predicted(t + h) = b(t + h) + m * (y(t) - b(t)) * b(t + h) / b(t), with m in [0, 1] by least squares on the held-out
stretches. The quantiles of the errors on those stretches are the uncertainty (split conformal).
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import NamedTuple

import numpy as np

from trimtab.core.forecast.batches import Batch
from trimtab.core.forecast.forecaster import Dates, too_short, unpredictable
from trimtab.core.model import Forecast, Missing, Quantile
from trimtab.policy import Record
from trimtab.series import Floats

_CUTS = (1 / 2, 2 / 3, 5 / 6)
_LEAST_RATIO_BASE = 0.05  # of the mean: below it a proportional deviation means nothing

Baseline = Callable[[int], Floats]  # fitted on the columns before a cut; (rows, columns + beyond)


class AccuracyGate(Record, frozen=True):
    """A model may forecast when its error at the horizon is at most this share of the error of "the same as now"."""

    acceptable: float = 0.95
    probabilities: tuple[float, ...] = (0.5, 0.75, 0.9, 0.95, 0.99)


class Reach(NamedTuple):
    """From how many columns after the last one, to how many, a forecast counts."""

    first: int
    last: int


class HeldOutVerdict(NamedTuple):
    ratio: Floats  # error of the model / error of persistence, of each row
    memory: Floats  # how much of a deviation is left after the horizon
    errors: Floats  # held-out errors in ascending order, NaN last


def reach_of(horizon_s: float, behind_s: float, valid_s: float, step_s: float) -> Reach:
    """`behind_s` is how long ago the last column ended."""
    first = max(1, ceil((horizon_s + behind_s) / step_s))
    return Reach(first, first + ceil(valid_s / step_s))


def judge(batch: Batch, baseline: Baseline, ahead: int) -> HeldOutVerdict:
    """Fit before each cut, and predict after it from each origin."""
    columns = batch.values.shape[1]
    cuts = [int(columns * share) for share in _CUTS]
    parts = [
        _stretch(batch, baseline(cut), slice(cut, end), ahead)
        for cut, end in zip(cuts, [*cuts[1:], columns], strict=True)
    ]
    expected, carried, now, later = (np.concatenate(part, axis=1) for part in zip(*parts, strict=True))
    memory = _memory(later - expected, carried)
    errors = later - (expected + memory[:, None] * carried)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.nansum(np.abs(errors), axis=1) / np.nansum(np.abs(later - now), axis=1)
    return HeldOutVerdict(ratio, memory, np.sort(errors, axis=1))


def _stretch(batch: Batch, baseline: Floats, where: slice, ahead: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Baseline at the target, deviation carried there, value at the origin and at the target; NaN if a hole."""
    origins = slice(where.start, max(where.start, where.stop - ahead))
    targets = slice(min(where.start + ahead, where.stop), where.stop)
    measured = batch.present[:, origins] & batch.present[:, targets]
    now, later = batch.values[:, origins], batch.values[:, targets]
    expected = baseline[:, targets]
    carried = _carried(now - baseline[:, origins], baseline[:, origins], expected)
    hide = np.where(measured, 0.0, np.nan)
    return expected, carried, now + hide, later + hide


def _carried(deviation: Floats, base_now: Floats, base_later: Floats) -> Floats:
    if not deviation.size:
        return deviation
    least = _LEAST_RATIO_BASE * np.abs(base_now).mean(axis=1, keepdims=True) + 1e-12
    carried: Floats = deviation * np.maximum(base_later, least) / np.maximum(base_now, least)
    return carried


def _memory(missed: Floats, carried: Floats) -> Floats:
    together = np.nansum(missed * carried, axis=1)
    alone = (np.where(np.isfinite(missed), carried, 0.0) ** 2).sum(axis=1)
    share: Floats = np.clip(together / np.maximum(alone, 1e-300), 0.0, 1.0)
    return share


def forecasts(
    model: str,
    batch: Batch,
    drawn: Floats,
    verdict: HeldOutVerdict,
    reach: Reach,
    gate: AccuracyGate,
    dates: Dates,
) -> list[Forecast | Missing]:
    """Return the largest expectation within reach plus the quantiles of past errors, or why the model abstains.

    `drawn` is the baseline fitted on the whole history.
    """
    columns = batch.values.shape[1]
    if not verdict.errors.shape[1]:  # no held-out stretch, a sixth of the history, reaches as far as the horizon
        return [too_short(columns * batch.step_s, 6 * (reach.first + 1) * batch.step_s)] * len(drawn)
    base_now, base_later = drawn[:, columns - 1 : columns], drawn[:, columns - 1 + reach.first : columns + reach.last]
    carried = _carried(batch.values[:, -1:] - base_now, base_now, base_later)
    expected = (base_later + verdict.memory[:, None] * carried).max(axis=1)
    shifts = quantiles(verdict.errors, gate.probabilities)
    return admitted(model, expected, shifts, verdict.ratio, gate, dates)


def admitted(
    model: str, expected: Floats, shifts: Floats, ratios: Floats, gate: AccuracyGate, dates: Dates
) -> list[Forecast | Missing]:
    """Return the forecasts of the rows whose error ratio passes the gate."""
    demand = np.maximum(0.0, expected[:, None] + shifts)
    return [
        Forecast(
            made_at=dates.made_at,
            expires_at=dates.expires_at,
            demand=tuple(map(Quantile, gate.probabilities, row)),
            model=model,
        )
        if ratio <= gate.acceptable
        else unpredictable(_why_refused(ratio, gate))
        for row, ratio in zip(demand.tolist(), ratios.tolist(), strict=True)
    ]


def _why_refused(ratio: float, gate: AccuracyGate) -> str:
    if not np.isfinite(ratio):
        return "the load is constant: there is nothing to forecast"
    return f'{ratio:.3f} times the error of "the same as now" on held-out days; at most {gate.acceptable:g} is worth it'


def quantiles(ordered: Floats, probabilities: tuple[float, ...]) -> Floats:
    """Of each row of ascending values with NaN last; (rows, probabilities)."""
    count = np.isfinite(ordered).sum(axis=1, keepdims=True)
    ranks = np.clip(np.ceil(np.array(probabilities) * (count + 1)) - 1, 0, np.maximum(count - 1, 0))
    found: Floats = np.take_along_axis(ordered, ranks.astype(np.intp), axis=1)
    return found
