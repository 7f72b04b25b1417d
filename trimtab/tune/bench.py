"""The benchmark: contenders on traces by the protocol, and the figures that a comparison may rest on.

Geometric means over traces (the trace is the unit), a bootstrap over traces for the interval, wins, the worst trace.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from trimtab.errors import InvalidInput
from trimtab.policy import ForecastChoice, Policy
from trimtab.series import Floats
from trimtab.sim.baselines import BASELINES, Baseline, hpa
from trimtab.sim.fast import sweep
from trimtab.sim.foresight import foreseen
from trimtab.sim.oracle import demand, optimum
from trimtab.sim.program import program
from trimtab.sim.protocol import DAY_STEPS, MIN_PODS, STEP_S, Load, delay_steps
from trimtab.sim.replay import replay
from trimtab.sim.score import Days, score
from trimtab.sim.world import World
from trimtab.tune.candidates import Setting, setting_of, settings, with_setting
from trimtab.tune.rolling import choose, picked

DEFAULT = "hpa-default"
FORECAST, QUANTILES = "seasonal", (0.5, 0.9, 0.97)
Results = dict[float, list[Days]]  # of each price: the days under each start-up time
Contender = Callable[[Load, Sequence[float], Sequence[float]], Results]


class Row(NamedTuple):
    """One contender on one trace; cost, j and regret are relative to the optimum, violations in percent of the load."""

    trace: str
    init_s: float
    lam: float
    policy: str
    cost: float
    violations: float
    churn_per_day: float
    starts_per_day: float
    j: float
    j_oracle: float
    regret: float

    def plain(self) -> dict[str, Any]:
        return _plain(self._asdict())


def fixed(baseline: Baseline) -> Contender:
    """A policy that stays as it is."""

    def days(load: Load, startups_s: Sequence[float], lambdas: Sequence[float]) -> Results:
        policy = baseline(load)
        found = [_days(policy, load, startup_s) for startup_s in startups_s]
        return dict.fromkeys(lambdas, found)

    return days


def _days(policy: Policy, load: Load, startup_s: float) -> Days:
    world = World(startup_s=startup_s)
    return replay(policy, load.values, world, first_pods=load.first_pods, start=load.start).days(DAY_STEPS)


def rolling(load: Load, startups_s: Sequence[float], lambdas: Sequence[float]) -> Results:
    """Default HPA, retuned every night by a backtest of the workload's own past."""
    family = settings()
    default = hpa()
    found = sweep_days(load, [with_setting(default, one, 1.0) for one in family], startups_s)
    incumbent = family.index(Setting(*setting_of(default, 1.0)))
    return {
        lam: [
            _chosen_days([of_one[index] for of_one in found], lam, load.warmup_days, incumbent)
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
    reactive = [with_setting(hpa(), one, 1.0) for one in settings()]
    programs = [program(one, STEP_S) for one in reactive]
    choice = ForecastChoice(model=FORECAST)
    for ahead in foreseen(choice, QUANTILES, load.values, startup_s, load.start, STEP_S):
        programs += [program(replace(one, forecast=choice), STEP_S, ahead) for one in reactive]
    days = sweep(load.values, load.signal, programs, load.first_pods, [delay_steps(startup_s)], DAY_STEPS)
    return [one for (one,) in days]


def sweep_days(load: Load, policies: list[Policy], startups_s: Sequence[float]) -> list[list[Days]]:
    programs = [program(one, STEP_S) for one in policies]
    delays = [delay_steps(startup_s) for startup_s in startups_s]
    return sweep(load.values, load.signal, programs, load.first_pods, delays, DAY_STEPS)


CONTENDERS: dict[str, Contender] = {"hpa-rolling": rolling, "trimtab": portfolio} | {
    name: fixed(baseline) for name, baseline in BASELINES.items()
}


def check_names(names: Sequence[str]) -> None:
    unknown = [name for name in names if name not in CONTENDERS]
    if unknown:
        raise InvalidInput("--policies", unknown[0], f"known are {', '.join(sorted(CONTENDERS))}")


def rows_of(load: Load, names: Sequence[str], startups_s: Sequence[float], lambdas: Sequence[float]) -> list[Row]:
    """Every contender on one trace."""
    first, needed = load.warmup_days, demand(load.values, MIN_PODS)
    best = [float(optimum(needed, delay_steps(one))[first * DAY_STEPS :].sum()) for one in startups_s]
    rows = []
    for name in names:
        results = CONTENDERS[name](load, startups_s, lambdas)
        rows += [
            _row(load.name, startup_s, lam, name, results[lam][index].since(first), best[index])
            for index, startup_s in enumerate(startups_s)
            for lam in lambdas
        ]
    return rows


def _row(trace: str, init_s: float, lam: float, policy: str, days: Days, best: float) -> Row:
    found = score(days, best, lam)
    return Row(trace, init_s, lam, policy, *found, found.regret)


class Summary(NamedTuple):
    """One contender over all traces; `change` and `wins` are against default HPA."""

    init_s: float
    lam: float
    policy: str
    traces: int
    j: float
    low: float
    high: float
    cost: float
    violations: float
    change: float | None
    wins: int | None
    worst: float
    worst_trace: str
    churn: float | None  # of default HPA's

    def plain(self) -> dict[str, Any]:
        return _plain(self._asdict())


def _plain(record: dict[str, Any]) -> dict[str, Any]:
    """For JSON, where `lambda` may be called by its name."""
    return {"lambda" if name == "lam" else name: value for name, value in record.items()}


def summarise(rows: Sequence[Row]) -> list[Summary]:
    groups: dict[tuple[float, float, str], dict[str, Row]] = {}
    for row in rows:
        groups.setdefault((row.init_s, row.lam, row.policy), {})[row.trace] = row
    return [_summary(key, group, groups.get((key[0], key[1], DEFAULT))) for key, group in groups.items()]


def _summary(key: tuple[float, float, str], group: dict[str, Row], default: dict[str, Row] | None) -> Summary:
    j = np.array([row.j for row in group.values()])
    low, high = interval(j)
    worst = max(group.values(), key=lambda row: row.j)
    compared = [(row, default[name]) for name, row in group.items()] if default else []
    return Summary(
        *key,
        traces=len(group),
        j=geometric_mean(j),
        low=low,
        high=high,
        cost=geometric_mean(np.array([row.cost for row in group.values()])),
        violations=float(np.mean([row.violations for row in group.values()])),
        change=geometric_mean(np.array([one.j / two.j for one, two in compared])) - 1 if compared else None,
        wins=sum(one.j < two.j for one, two in compared) if compared else None,
        worst=worst.j,
        worst_trace=worst.trace,
        churn=geometric_mean(np.array([_more(one, two) for one, two in compared])) if compared else None,
    )


def _more(one: Row, two: Row) -> float:
    """Churn in proportion; a pod a day is the least that counts, or a quiet trace would rule the mean."""
    return max(one.churn_per_day, 1.0) / max(two.churn_per_day, 1.0)


def geometric_mean(values: Floats) -> float:
    return float(np.exp(np.log(values).mean()))


def interval(values: Floats, draws: int = 2000) -> tuple[float, float]:
    """95 % of the geometric means of traces drawn again with replacement."""
    picks = np.random.default_rng(0).integers(len(values), size=(draws, len(values)))
    low, high = np.quantile(np.exp(np.log(values)[picks].mean(axis=1)), [0.025, 0.975])
    return float(low), float(high)
