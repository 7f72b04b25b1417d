"""The contenders of the benchmark: baselines that stay as they are, and policies retuned every night."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from msgspec.structs import replace

from trimtab.bench.baselines import BASELINES, Baseline, hpa
from trimtab.bench.protocol import MIN_PODS, Load
from trimtab.bench.summary import BenchRow
from trimtab.errors import InvalidInput
from trimtab.policy import ForecastChoice, Policy
from trimtab.sim.cluster_spec import ClusterSpec
from trimtab.sim.demand_forecast import forecast_demand
from trimtab.sim.fast import sweep
from trimtab.sim.grid import DAY_STEPS, STEP_S, delay_steps
from trimtab.sim.oracle import optimum, pods_needed
from trimtab.sim.program import program
from trimtab.sim.score import Days, score
from trimtab.sim.simulate import simulate
from trimtab.tune.candidates import Setting, setting_of, settings, with_setting
from trimtab.tune.rolling_choice import choose, picked

FORECAST, QUANTILES = "seasonal", (0.5, 0.9, 0.97)
Results = dict[float, list[Days]]  # of each price: the days under each start-up time
Contender = Callable[[Load, Sequence[float], Sequence[float]], Results]


def fixed(baseline: Baseline) -> Contender:
    """A policy that stays as it is."""

    def days(load: Load, startups_s: Sequence[float], lambdas: Sequence[float]) -> Results:
        policy = baseline(load)
        found = [_days(policy, load, startup_s) for startup_s in startups_s]
        return dict.fromkeys(lambdas, found)

    return days


def _days(policy: Policy, load: Load, startup_s: float) -> Days:
    cluster = ClusterSpec(startup_s=startup_s)
    return simulate(policy, load.values, cluster, first_pods=load.first_pods, start=load.start).days(DAY_STEPS)


def rolling(load: Load, startups_s: Sequence[float], lambdas: Sequence[float]) -> Results:
    """Default HPA, retuned every night by a backtest of the workload's own past."""
    family = settings()
    default = hpa()
    found = sweep_days(load, [with_setting(default, setting, 1.0) for setting in family], startups_s)
    incumbent = family.index(Setting(*setting_of(default, 1.0)))
    return {
        lam: [
            _chosen_days([by_startup[index] for by_startup in found], lam, load.warmup_days, incumbent)
            for index in range(len(startups_s))
        ]
        for lam in lambdas
    }


def _chosen_days(family: list[Days], lam: float, first_day: int, incumbent: int) -> Days:
    return picked(family, choose(np.array([days.j(lam) for days in family]), first_day, incumbent))


def portfolio(load: Load, startups_s: Sequence[float], lambdas: Sequence[float]) -> Results:
    """The same, with a seasonal forecast on top as three more choices for each setting: how sure it has to be."""
    found = [_portfolio_days(load, startup_s) for startup_s in startups_s]
    incumbent = settings().index(Setting(*setting_of(hpa(), 1.0)))
    return {lam: [_chosen_days(family, lam, load.warmup_days, incumbent) for family in found] for lam in lambdas}


def _portfolio_days(load: Load, startup_s: float) -> list[Days]:
    reactive = [with_setting(hpa(), setting, 1.0) for setting in settings()]
    programs = [program(policy, STEP_S) for policy in reactive]
    choice = ForecastChoice(model=FORECAST)
    for ahead in forecast_demand(choice, QUANTILES, load.values, startup_s, load.start):
        programs += [program(replace(policy, forecast=choice), STEP_S, ahead) for policy in reactive]
    swept = sweep(load.values, load.signal, programs, load.first_pods, [delay_steps(startup_s)], DAY_STEPS)
    return [days for (days,) in swept]


def sweep_days(load: Load, policies: list[Policy], startups_s: Sequence[float]) -> list[list[Days]]:
    programs = [program(policy, STEP_S) for policy in policies]
    delays = [delay_steps(startup_s) for startup_s in startups_s]
    return sweep(load.values, load.signal, programs, load.first_pods, delays, DAY_STEPS)


CONTENDERS: dict[str, Contender] = {"hpa-rolling": rolling, "trimtab": portfolio} | {
    name: fixed(baseline) for name, baseline in BASELINES.items()
}


def check_names(names: Sequence[str]) -> None:
    unknown = [name for name in names if name not in CONTENDERS]
    if unknown:
        raise InvalidInput("--policies", unknown[0], f"known are {', '.join(sorted(CONTENDERS))}")


def rows_of(load: Load, names: Sequence[str], startups_s: Sequence[float], lambdas: Sequence[float]) -> list[BenchRow]:
    """Every contender on one trace."""
    first, needed = load.warmup_days, pods_needed(load.values, MIN_PODS)
    best = [float(optimum(needed, delay_steps(startup_s))[first * DAY_STEPS :].sum()) for startup_s in startups_s]
    rows = []
    for name in names:
        results = CONTENDERS[name](load, startups_s, lambdas)
        rows += [
            _row(load.name, startup_s, lam, name, results[lam][index].since(first), best[index])
            for index, startup_s in enumerate(startups_s)
            for lam in lambdas
        ]
    return rows


def _row(trace: str, init_s: float, lam: float, policy: str, days: Days, best: float) -> BenchRow:
    found = score(days, best, lam)
    return BenchRow(trace, init_s, lam, policy, *found, found.regret)
