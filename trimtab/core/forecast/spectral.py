"""Harmonics of the period at which a series repeats, re-anchored to now: our own answer beside Crane's DSP.

b(t) = level + slope * min(t, cut) + sum_j a_j cos(2 pi j t / p) + b_j sin(2 pi j t / p), tones below a
share of the strongest left out. Any period from an hour to half the history (cycles.py); holes and jitter
do no harm (batches.py); a model that does not beat persistence is silent (rolling.py).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from trimtab.core.forecast.batches import Batch, batches, binned, unusable
from trimtab.core.forecast.cycles import SHORTEST_S, Cycle, find_cycles
from trimtab.core.forecast.dated import Dates, known_at, spell, unpredictable
from trimtab.core.forecast.forecaster import Forecaster
from trimtab.core.forecast.held_out import AccuracyGate, Reach, forecasts, judge, reach_of
from trimtab.core.model import Forecast, Missing
from trimtab.policy import Record
from trimtab.series import Floats, Frame

DAY_S = 86400.0
_HARMONICS_A_DAY = 12  # features of two hours


class SpectralOptions(Record, frozen=True):
    weakest_tone: float = 0.05  # share of the strongest
    weakest_season: float = 0.02  # its standard deviation as a share of the mean load
    gate: AccuracyGate = AccuracyGate()
    valid_s: float = 300.0


DEFAULT = SpectralOptions()


def forecast(frame: Frame, horizon_s: float, at: float, options: SpectralOptions = DEFAULT) -> list[Forecast | Missing]:
    """The demand from at + horizon_s until it expires, with quantiles; or the reason why nobody can know."""
    grid = binned(known_at(frame, at))
    least_s = 4 * SHORTEST_S
    skip = unusable(grid, at, least_s)
    answers: dict[int, Forecast | Missing] = dict(skip)
    reach = reach_of(horizon_s, max(0.0, at - grid.end), options.valid_s, grid.step_s)
    dates = Dates(at, at + options.valid_s)
    for batch in batches(grid, skip, least_s):
        cycles = find_cycles(batch)
        for lag in sorted({cycle.lag for cycle in cycles}):
            chosen = np.array([cycle.lag == lag for cycle in cycles])
            part = Batch(batch.rows[chosen], batch.values[chosen], batch.present[chosen], batch.step_s)
            known = [cycle for cycle in cycles if cycle.lag == lag]
            found = _forecast_cycle(part, known, lag, reach, dates, options)
            answers.update(zip(part.rows.tolist(), found, strict=True))
    return [answers[row] for row in range(len(frame.names))]


def _forecast_cycle(
    batch: Batch, cycles: list[Cycle], lag: float, reach: Reach, dates: Dates, options: SpectralOptions
) -> list[Forecast | Missing]:
    if lag == 0.0:
        return [_aperiodic(batch, index, cycle) for index, cycle in enumerate(cycles)]
    baseline = harmonic_baseline(batch.values, lag, reach.last, batch.step_s, options.weakest_tone)
    verdict = judge(batch, baseline, reach.first, proportional=False)
    columns = batch.values.shape[1]
    drawn = baseline(columns)
    found = forecasts("spectral", batch, drawn, verdict, reach, options.gate, dates, proportional=False)
    season = drawn[:, :columns].std(axis=1)
    weak = season < options.weakest_season * np.abs(batch.values).mean(axis=1)
    period = spell(lag * batch.step_s)
    return [
        unpredictable(f"repeats every {period}, but too weakly to matter") if faint else forecast_of_row
        for forecast_of_row, faint in zip(found, weak.tolist(), strict=True)
    ]


def _aperiodic(batch: Batch, index: int, cycle: Cycle) -> Missing:
    values = batch.values[index]
    if np.ptp(values) == 0:
        return unpredictable("the load is constant: there is nothing to forecast")
    longest = spell(len(values) * batch.step_s / 2)
    return unpredictable(
        f"no period between {spell(SHORTEST_S)} and {longest} stands out of the noise "
        f"(best correlation {cycle.correlation:.2f})"
    )


def harmonic_baseline(
    values: Floats, lag: float, beyond: int, step_s: float, weakest_tone: float
) -> Callable[[int], Floats]:
    """A fit before a cut, drawn over all columns and `beyond`; after the cut the trend stays where it was."""
    columns = values.shape[1]
    count = harmonics_of(lag, step_s)

    def baseline(cut: int) -> Floats:
        waves = _waves(np.arange(columns + beyond + 1), lag, min(count, cut // 8), cut)
        seen = waves[:cut]
        # Tones are nearly orthogonal, so the normal equations are safe; the hair of ridge is for too short cuts.
        gram = seen.T @ seen + 1e-9 * cut * np.eye(seen.shape[1])
        solution = np.asarray(np.linalg.solve(gram, seen.T @ values[:, :cut].T).T, dtype=np.float64)
        drawn: Floats = _strong(solution, weakest_tone) @ waves.T
        return drawn

    return baseline


def harmonics_of(lag: float, step_s: float) -> int:
    """Enough for features of two hours, of a quarter of what the bins can show in short periods."""
    days = lag * step_s / DAY_S
    return max(1, min(int(lag / 4), max(24, int(_HARMONICS_A_DAY * days))))


def _waves(clock: Floats | np.ndarray, lag: float, count: int, cut: int) -> Floats:
    phases = 2 * np.pi * np.outer(clock, np.arange(1, count + 1)) / lag
    level = np.ones((len(clock), 1))
    trend = np.minimum(clock, cut)[:, None] / cut
    waves: Floats = np.hstack([level, trend, np.cos(phases), np.sin(phases)])
    return waves


def _strong(solution: Floats, weakest_tone: float) -> Floats:
    """Cosine and sine of a tone stay or go together."""
    count = (solution.shape[1] - 2) // 2
    amplitude = np.hypot(solution[:, 2 : 2 + count], solution[:, 2 + count :])
    strong = amplitude >= weakest_tone * amplitude.max(axis=1, keepdims=True)
    keep = np.hstack([np.ones((len(solution), 2), dtype=bool), strong, strong])
    return np.where(keep, solution, 0.0)


FORECASTER = Forecaster(forecast, SpectralOptions, cost=2.0)
