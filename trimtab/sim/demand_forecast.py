"""Forecasts in the simulated cluster: the core's own, from what the simulated operator observed and remembers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from trimtab.core.demand.checkpoint import RecentDemand
from trimtab.core.forecast.demand_forecasts import DemandForecasts
from trimtab.core.model import Missing, Observation, Pod, TotalSample
from trimtab.core.startup import StartupLog, after_others, startup, startup_of, watch
from trimtab.policy import ForecastChoice, Metric, MetricKind, Policy, TotalAverage
from trimtab.series import Floats
from trimtab.sim.cluster_spec import ClusterSpec
from trimtab.sim.grid import STEP_S, delay_steps
from trimtab.sim.sliding_windows import delayed, trailing_mean

OWNER = "simulated"
CHECKPOINT_S, RECENT_S = 600.0, 60.0  # as the operator writes them


class SimulatedForecasts:
    """The forecasts of one policy, and what of them survives the operator."""

    def __init__(self, policy: Policy, keeps: bool = False) -> None:
        self.policy, self.keeps = policy, keeps
        self._stored, self._recent = b"", RecentDemand(0.0, (), (), {})
        self._begin()

    def _begin(self, after_another: bool = False) -> None:
        self._demand, self._startups, self._pods = DemandForecasts(), StartupLog(), tuple[Pod, ...]()
        self._reading, self._stored_at, self._kept_at = after_another, float("-inf"), float("-inf")

    def complete(self, seen: Observation, pods: tuple[Pod, ...]) -> Observation:
        """The observation with start-up times and forecasts."""
        if pods is not self._pods:
            self._startups, self._pods = watch(self._startups, pods), pods
        seen = replace(seen, startup=startup_of(self._startups, seen.at))
        self._demand.note(OWNER, self.policy, seen)
        return replace(seen, forecasts=self._demand.of(OWNER, self.policy, seen, self._reading))

    def after_tick(self, at: float) -> None:
        """What the operator does between two ticks; after its first one it reads what the one before has left."""
        if self._reading:
            self._read()
        self._demand.make_due()
        if self._stored_at == float("-inf"):
            self._stored_at = self._kept_at = at
        if self.keeps and at - self._kept_at >= RECENT_S:
            startups, self._kept_at = (self._startups.witnessed, self._startups.waits), at
            self._recent = self._demand.recent_of(OWNER, self.policy, at, *startups)
        if self.keeps and at - self._stored_at >= CHECKPOINT_S:
            self._stored, self._stored_at = self._demand.save(OWNER, self.policy, at), at

    def _read(self) -> None:
        self._reading = False
        self._demand.load(OWNER, self.policy, self._recent)
        self._startups = after_others(self._startups, self._recent.startups_s, self._recent.waits_s)
        if self._stored:
            self._demand.load(OWNER, self.policy, self._stored)
        self._demand.history_read([OWNER])

    def restart(self) -> None:
        """A new operator knows what was left to it."""
        self._begin(after_another=True)


def forecast_demand(
    choice: ForecastChoice, quantiles: Sequence[float], load: Floats, cluster: ClusterSpec, start: float
) -> list[Floats]:
    """The demand that is forecast at the end of each step, for each quantile; 0 where nothing is said.

    Demand does not depend on how it is served, so one look ahead serves every policy with this choice.
    """
    total = TotalAverage(metric=Metric(kind=MetricKind.EXTERNAL, name="load"), target=1.0)
    policy, demand = Policy(signals=(total,), forecast=choice), DemandForecasts()
    started = startup([delay_steps(cluster.startup_s) * STEP_S], start)
    found, delay = np.zeros((len(quantiles), len(load))), cluster.metric_delay_steps
    for step, value in enumerate(delayed(trailing_mean(load, cluster.mean_steps), delay).tolist()):
        at = start + (step + 1) * STEP_S
        sample = TotalSample(value=value, at=start + (max(0, step - delay) + 1) * STEP_S)
        seen = Observation(at=at, spec_replicas=1, status_replicas=1, samples=(sample,), startup=started)
        demand.note(OWNER, policy, seen)
        for forecast in demand.of(OWNER, policy, seen):
            if not isinstance(forecast, Missing) and at < forecast.expires_at:
                found[:, step] = [max(0.0, forecast.at_quantile(quantile)) for quantile in quantiles]
        demand.make_due()
    return list(found)
