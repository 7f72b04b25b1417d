"""Many settings on one demand: prepared once, simulated by the compiled lane, each with several bridges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from trimtab.errors import InvalidPolicy, NotEnoughData
from trimtab.policy import Bridge, Policy
from trimtab.series import Floats
from trimtab.sim.cluster_spec import ClusterSpec
from trimtab.sim.cost_limit import UNLIMITED, CostLimit
from trimtab.sim.demand_forecast import forecast_demand
from trimtab.sim.grid import DAY_STEPS, MEAN_STEPS, STEP_S, delay_steps
from trimtab.sim.numba_engine import sweep
from trimtab.sim.oracle import optimum, pods_needed
from trimtab.sim.program import NOTHING_AHEAD, BoundsBySteps, bounds_by_step, program, uncovered
from trimtab.sim.score import Actuator, Days
from trimtab.sim.sliding_windows import trailing_mean
from trimtab.tune.candidates import Setting, in_the_lane, with_setting
from trimtab.tune.demand import Demand
from trimtab.tune.policy_backtest import first_pods

LEAST_DAYS = 2


class CandidateRuns(NamedTuple):
    """One policy's demand, whole days of it, and everything that no setting changes."""

    policy: Policy  # on the total of the load
    values: Floats
    ahead: Floats
    by_step: BoundsBySteps
    first_pods: int
    cluster: ClusterSpec

    @property
    def days(self) -> int:
        return len(self.values) // DAY_STEPS

    @property
    def load(self) -> Floats:
        """In what one pod carries at 100 %."""
        return self.values / self.cluster.pod_capacity

    def run(
        self,
        settings: Sequence[Setting],
        bridges: Sequence[Bridge | None],
        done: Callable[[], None] = lambda: None,
        within: CostLimit = UNLIMITED,
    ) -> list[list[Days]]:
        """The days of every setting (outer) with every bridge (inner); none of one that is given up."""
        candidates = [with_setting(self.policy, setting, self.cluster.pod_capacity) for setting in settings]
        programs = [program(candidate, STEP_S, self.ahead, self.by_step) for candidate in candidates]
        delay, ceiling = delay_steps(self.cluster.startup_s), self.cluster.ceiling_share
        actuators = [
            Actuator(delay, bridge if self.cluster.bridge_counts else None, ceiling=ceiling) for bridge in bridges
        ]
        signal = trailing_mean(self.values, MEAN_STEPS)
        slo = self.cluster.level_share
        return sweep(self.load, signal, programs, self.first_pods, actuators, DAY_STEPS, slo, done, within=within)

    def optima(self, least: int = 1) -> Floats:
        """The optimum's pod-steps of each day."""
        needed = pods_needed(self.load, least, self.cluster.level_share)
        best = optimum(needed, delay_steps(self.cluster.startup_s))
        by_day: Floats = best.reshape(self.days, DAY_STEPS).sum(axis=1).astype(np.float64)
        return by_day

    def optima_above_the_floor(self) -> Floats:
        """Those that keep minReplicas, too: by them a quiet day is as good as a busy one."""
        return self.optima(max(1, self.policy.bounds.min_replicas))


def candidate_runs(policy: Policy, demand: Demand, cluster: ClusterSpec, least_days: int = LEAST_DAYS) -> CandidateRuns:
    """What the settings of a policy can be tried on, or why they cannot."""
    if demand.days < least_days:
        raise NotEnoughData(f"{demand.name}: {demand.days:.1f} days of history; tuning needs {least_days} whole days")
    demand = demand.last_whole_days()
    values = demand.values
    simple = in_the_lane(policy, cluster.pod_capacity)
    if why := uncovered(simple):
        raise InvalidPolicy(*_at_fault(policy), f"it cannot be tuned: {why}")
    ahead = _ahead(simple, values, demand.start, cluster.startup_s)
    by_step = bounds_by_step(simple.bounds, demand.start, len(values), STEP_S)
    pods = first_pods(policy, float(values[0]) / cluster.pod_capacity)
    return CandidateRuns(simple, values, ahead, by_step, pods, cluster)


def _at_fault(policy: Policy) -> tuple[str, str]:
    """The field that keeps it from being tuned, as far as one alone can, and what stands there."""
    parts = (("spec.blend", policy.blend), ("spec.vertical", policy.vertical))
    found = [(path, type(part).__name__) for path, part in parts if part is not None]
    return found[0] if found else ("policy", type(policy).__name__)


def _ahead(policy: Policy, values: Floats, start: float, startup_s: float) -> Floats:
    """Demand does not depend on the settings, so one look ahead serves them all."""
    if policy.forecast is None:
        return NOTHING_AHEAD
    (ahead,) = forecast_demand(policy.forecast, [policy.forecast.quantile], values, startup_s, start)
    return ahead
