"""tune(): better settings for one workload from its own days, and the evidence for them.

Every candidate is simulated on every day (load does not depend on how it is served), judged by the price of the user,
newer days weighing more; the present settings stay unless another is 2 % better.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from trimtab.errors import InvalidPolicy, NotEnoughData
from trimtab.policy import Policy
from trimtab.series import Floats
from trimtab.sim.cluster_spec import ClusterSpec
from trimtab.sim.demand_forecast import forecast_demand
from trimtab.sim.fast import sweep
from trimtab.sim.grid import DAY_STEPS, MEAN_STEPS, STEP_S, delay_steps
from trimtab.sim.oracle import optimum, pods_needed
from trimtab.sim.program import NOTHING_AHEAD, bounds_by_step, program, uncovered
from trimtab.sim.score import Actuator, Days, Score, score
from trimtab.sim.sliding_windows import trailing_mean
from trimtab.tune.candidates import Setting, on_demand, scored, setting_of, settings, with_setting
from trimtab.tune.demand import Demand
from trimtab.tune.policy_backtest import first_pods
from trimtab.tune.rolling_choice import choose, fade, picked, takeover

LEAST_DAYS = 2


class Tuned(NamedTuple):
    """What to change, and how it would have done. `before` and `after` are over all days, `rolling` over the days that
    were chosen for by earlier ones only, `held` is the present policy on those same days."""

    before_setting: Setting
    setting: Setting
    policy: Policy
    before: Score
    after: Score
    held: Score | None
    rolling: Score | None
    days: int
    days_won: tuple[int, ...]  # days, counted from 0, on which the new settings would have been better
    notes: tuple[str, ...]

    @property
    def changed(self) -> bool:
        return self.setting != self.before_setting


def tune(
    policy: Policy, demand: Demand, cluster: ClusterSpec, lam: float, done: Callable[[], None] = lambda: None
) -> Tuned:
    """The settings for the next day."""
    present = setting_of(policy, cluster.pod_capacity)
    family = settings()
    if present not in family:
        family = [*family, present]
    incumbent = family.index(present)
    results = _simulate(policy, family, demand, cluster, done)
    j = np.array([days.j(lam) for days in results])
    scores = np.zeros(len(family))
    for day in range(j.shape[1]):
        scores = fade(scores, j[:, day])
    best = takeover(scores, incumbent)
    optima = _optima(policy, demand, cluster)
    warmup = _warmup(j.shape[1])
    chosen = choose(j, warmup, incumbent)
    return Tuned(
        before_setting=present,
        setting=family[best],
        policy=policy if best == incumbent else with_setting(policy, family[best], cluster.pod_capacity),
        before=score(results[incumbent], float(optima.sum()), lam),
        after=score(results[best], float(optima.sum()), lam),
        held=score(results[incumbent].since(warmup), float(optima[warmup:].sum()), lam) if warmup else None,
        rolling=score(picked(results, chosen).since(warmup), float(optima[warmup:].sum()), lam) if warmup else None,
        days=j.shape[1],
        days_won=tuple(np.flatnonzero(j[best] < j[incumbent]).tolist()),
        notes=scored(policy),
    )


def _simulate(
    policy: Policy, family: list[Setting], demand: Demand, cluster: ClusterSpec, done: Callable[[], None]
) -> list[Days]:
    whole = len(demand.values) // DAY_STEPS
    if whole < LEAST_DAYS:
        raise NotEnoughData(f"{demand.name}: {demand.days:.1f} days of history; tuning needs {LEAST_DAYS} whole days")
    values = demand.values[: whole * DAY_STEPS]
    simple = on_demand(policy, cluster.pod_capacity)
    if why := uncovered(simple):
        raise InvalidPolicy("policy", type(policy).__name__, f"it cannot be tuned: {why}")
    ahead = _ahead(simple, values, demand.start, cluster.startup_s)
    by_step = bounds_by_step(simple.bounds, demand.start, len(values), STEP_S)
    candidates = [with_setting(simple, setting, cluster.pod_capacity) for setting in family]
    programs = [program(candidate, STEP_S, ahead, by_step) for candidate in candidates]
    load, signal = values / cluster.pod_capacity, trailing_mean(values, MEAN_STEPS)
    first, delay = first_pods(policy, float(load[0])), delay_steps(cluster.startup_s)
    found = sweep(load, signal, programs, first, [Actuator(delay)], DAY_STEPS, cluster.slo, done)
    return [days for (days,) in found]


def _ahead(policy: Policy, values: Floats, start: float, startup_s: float) -> Floats:
    """Demand does not depend on the settings, so one look ahead serves them all."""
    if policy.forecast is None:
        return NOTHING_AHEAD
    (ahead,) = forecast_demand(policy.forecast, [policy.forecast.quantile], values, startup_s, start)
    return ahead


def _optima(policy: Policy, demand: Demand, cluster: ClusterSpec) -> Floats:
    """The optimum's pod-steps of each day."""
    whole = len(demand.values) // DAY_STEPS
    needed = pods_needed(demand.values / cluster.pod_capacity, max(1, policy.bounds.min_replicas), cluster.slo)
    best = optimum(needed, delay_steps(cluster.startup_s))[: whole * DAY_STEPS]
    by_day: Floats = best.reshape(whole, DAY_STEPS).sum(axis=1).astype(np.float64)
    return by_day


def _warmup(days: int) -> int:
    """How many days come before the first that is judged by earlier ones; 0 where there are too few."""
    return 7 if days >= 28 else 3 if days >= 6 else 0
