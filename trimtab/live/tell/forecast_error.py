"""forecast_error: how far forecasts were off, once the moment that they spoke of has come.

error = forecast made a horizon ago / load now - 1: 0.1 is a tenth too much, -0.1 a tenth too little.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from trimtab.core.demand.total import demand_of
from trimtab.core.forecast.horizon import horizon_s
from trimtab.core.model import Forecast
from trimtab.journal import ObjectName
from trimtab.live.object_tick import ObjectTick
from trimtab.live.tell.telemetry import Line, labels_of

CHECKS = 20  # forecasts under way for each signal: one for each twentieth of its horizon


class ObjectSignal(NamedTuple):
    """One signal of one object."""

    name: ObjectName
    place: int  # among the object's signals
    label: str


class ForecastErrors:
    """Watches each tick's forecasts and loads; `errors` has the last error of each signal."""

    def __init__(self) -> None:
        self.errors: dict[ObjectSignal, float] = {}
        self._due: dict[ObjectSignal, deque[tuple[float, float]]] = defaultdict(deque)  # (when, value)

    def saw(self, ticks: Sequence[ObjectTick]) -> None:
        alive = set()
        for tick in ticks:
            name, policy, seen = tick.subject.name, tick.subject.policy, tick.seen
            if policy.forecast is None:
                continue
            for index, (signal, forecast) in enumerate(zip(policy.signals, seen.forecasts, strict=False)):
                value = None
                if isinstance(forecast, Forecast) and not forecast.per_pod:
                    value = forecast.at_quantile(policy.forecast.quantile)
                load = demand_of(seen.samples[index], seen.pods) if index < len(seen.samples) else None
                source = ObjectSignal(name, index, signal.metric.label)
                self.note(source, seen.at, value, horizon_s(policy.forecast, seen), load)
                alive.add(source)
        self._forget(alive)

    def note(
        self, source: ObjectSignal, at: float, forecast: float | None, horizon_s: float, load: float | None
    ) -> None:
        waiting = self._due[source]
        while waiting and waiting[0][0] <= at:
            _, value = waiting.popleft()
            if load:
                self.errors[source] = value / load - 1.0
        if forecast is not None and (not waiting or at + horizon_s - waiting[-1][0] >= horizon_s / CHECKS):
            waiting.append((at + horizon_s, forecast))

    def lines(self) -> Iterable[Line]:
        for source, error in self.errors.items():
            yield "trimtab_forecast_error", labels_of(source.name) | {"source": source.label}, error

    def _forget(self, alive: set[ObjectSignal]) -> None:
        for gone in self.errors.keys() - alive:
            del self.errors[gone]
        for gone in self._due.keys() - alive:
            del self._due[gone]
