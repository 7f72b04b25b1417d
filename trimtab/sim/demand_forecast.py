"""Forecasts in the simulated cluster: made from what was measured so far, as often as they expire."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trimtab.core.forecast import forecast_rows
from trimtab.core.model import Forecast, Missing
from trimtab.policy import ForecastChoice, Metric, MetricKind, Signal, TotalAverage, Utilization
from trimtab.series import Floats, Frame
from trimtab.sim.cluster_spec import ClusterSpec
from trimtab.sim.meter import Meter

OF_MINUTES = ("linear",)  # they look at minutes of the past, the others at weeks
COARSE_S = 300.0
REFRESH_S = 60.0  # of a forecast that could not be made
HISTORY_S = {"linear": 3600.0, "holtWinters": 4 * 86400.0}  # PHPA keeps four seasons
LONGEST_S = 15 * 86400.0


class SignalForecasts:
    """The forecasts of one policy's signals."""

    def __init__(
        self, choice: ForecastChoice, signals: tuple[Signal, ...], startup_s: float, start: float, step_s: float
    ) -> None:
        self._choice, self._signals = choice, signals
        self._horizon_s = startup_s if choice.horizon_s is None else choice.horizon_s
        fine = choice.model in OF_MINUTES
        self._fold = 1 if fine else max(1, round(COARSE_S / step_s))
        self._start, self._step_s = start, step_s * self._fold
        self._rows: list[list[float]] = [[] for _ in signals]
        self._forecasts: tuple[Forecast | Missing, ...] = ()
        self._due = float("-inf")

    def __call__(self, meter: Meter, at: float) -> tuple[Forecast | Missing, ...]:
        """What is expected at the end of the newest step; the same answer until it is about to expire."""
        self._note(meter)
        if at >= self._due and self._rows[0]:
            self._forecasts = self._look(at)
            self._due = min(self._expiry(forecast, at) for forecast in self._forecasts)
        return self._forecasts

    def _note(self, meter: Meter) -> None:
        """Fold the newest steps into the history once a whole bin of them is there."""
        steps = len(meter.totals)
        if steps % self._fold:
            return
        for row, signal in zip(self._rows, self._signals, strict=True):
            newest = self._series(meter, signal)[steps - self._fold :]
            row.append(sum(newest) / self._fold)

    def _series(self, meter: Meter, signal: Signal) -> list[float]:
        if self._choice.exact and isinstance(signal, Utilization):
            return meter.percent  # document 003's program looks at utilisation, which drops when pods are added
        return meter.cores if isinstance(signal, Utilization) else meter.totals

    def _look(self, at: float) -> tuple[Forecast | Missing, ...]:
        keep = int(HISTORY_S.get(self._choice.model, LONGEST_S) / self._step_s)
        values = np.array([row[-keep:] for row in self._rows])
        first = len(self._rows[0]) - values.shape[1]
        names = tuple(signal.metric.label for signal in self._signals)
        # A bin belongs to the moment it was complete: what is dated `at` is known at `at`.
        frame = Frame(names, self._start + (first + 1) * self._step_s, self._step_s, values)
        return tuple(forecast_rows(self._choice, frame, self._horizon_s, at))

    def _expiry(self, forecast: Forecast | Missing, at: float) -> float:
        if isinstance(forecast, Missing):
            return at + REFRESH_S
        return max(at + self._step_s, forecast.expires_at - self._step_s)


def forecast_demand(
    choice: ForecastChoice, quantiles: Sequence[float], load: Floats, startup_s: float, start: float, step_s: float
) -> list[Floats]:
    """The demand that is forecast at the end of each step, for each quantile; 0 where nothing is said.

    Demand does not depend on how it is served, so one look ahead serves every policy with this choice.
    """
    total = TotalAverage(metric=Metric(kind=MetricKind.EXTERNAL, name="load"), target=1.0)
    forecasts, meter = SignalForecasts(choice, (total,), startup_s, start, step_s), Meter(ClusterSpec(), start, step_s)
    found = np.zeros((len(quantiles), len(load)))
    for step, value in enumerate(load.tolist()):
        meter.totals.append(value)
        at = start + (step + 1) * step_s
        for forecast in forecasts(meter, at):
            if not isinstance(forecast, Missing) and at < forecast.expires_at:
                found[:, step] = [max(0.0, forecast.at_quantile(quantile)) for quantile in quantiles]
    return list(found)
