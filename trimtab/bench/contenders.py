"""The contenders of the benchmark: baselines that stay as they are, and policies retuned every night."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from msgspec.structs import replace

from trimtab.bench.baselines import BASELINES, Baseline, hpa
from trimtab.bench.protocol import MAX_PODS, MIN_PODS, Load
from trimtab.bench.summary import BenchRow
from trimtab.core.forecast.learned.net import NetWeights
from trimtab.core.forecast.learned.weights import shipped_weights
from trimtab.errors import InvalidInput
from trimtab.policy import Bridge, Policy
from trimtab.sim.cluster_spec import ClusterSpec
from trimtab.sim.fast import sweep
from trimtab.sim.grid import DAY_STEPS, STEP_S, delay_steps
from trimtab.sim.oracle import optimum, pods_needed
from trimtab.sim.priced_levels import band_path, priced_levels
from trimtab.sim.program import program
from trimtab.sim.resize_in_place import shown_load
from trimtab.sim.score import Days, measure, score
from trimtab.sim.simulate import simulate
from trimtab.tune.candidates import Setting, setting_of, settings, with_setting
from trimtab.tune.rolling_choice import choose, picked

NO_BRIDGE = (None,)
REACTIVE_BRIDGES = (None, Bridge(ceiling=0.65), Bridge(ceiling=0.70), Bridge(ceiling=0.75))
PRICED_BRIDGES = (None, Bridge(ceiling=0.70), Bridge(ceiling=0.75), Bridge(ceiling=0.78))
PRICES = tuple(2.0**power for power in range(12))  # from 1 to 128 for a start, two to sixteen times that for keeping
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
    return _rolling(load, startups_s, lambdas, NO_BRIDGE)


def rolling_bridge(load: Load, startups_s: Sequence[float], lambdas: Sequence[float]) -> Results:
    """The same, with the bridge as one more choice."""
    return _rolling(load, startups_s, lambdas, REACTIVE_BRIDGES)


def _rolling(
    load: Load, startups_s: Sequence[float], lambdas: Sequence[float], bridges: Sequence[Bridge | None]
) -> Results:
    return chosen(load, lambdas, reactive_days(load, startups_s, bridges))


def priced(weights: NetWeights, reactive: Sequence[Bridge | None], forecasting: Sequence[Bridge | None]) -> Contender:
    """The retuned family, with the priced policy at many prices as further choices; each with these bridges."""

    def days(load: Load, startups_s: Sequence[float], lambdas: Sequence[float]) -> Results:
        families = [
            found + priced_days(load, startup_s, weights, forecasting)
            for startup_s, found in zip(startups_s, reactive_days(load, startups_s, reactive), strict=True)
        ]
        return chosen(load, lambdas, families)

    return days


def chosen(load: Load, lambdas: Sequence[float], families: Sequence[list[Days]]) -> Results:
    """Of the family under each start-up time, the days of whoever was best so far; default HPA is there at first."""
    default = settings().index(Setting(*setting_of(hpa(), 1.0)))
    return {lam: [_chosen_days(family, lam, load.warmup_days, default) for family in families] for lam in lambdas}


def _chosen_days(family: list[Days], lam: float, first_day: int, incumbent: int) -> Days:
    return picked(family, choose(np.array([days.j(lam) for days in family]), first_day, incumbent))


def reactive_days(load: Load, startups_s: Sequence[float], bridges: Sequence[Bridge | None]) -> list[list[Days]]:
    """The days of the whole family (inner) under each start-up time (outer)."""
    policies = [with_setting(hpa(), setting, 1.0) for setting in settings()]
    programs = [program(replace(policy, bridge=bridge), STEP_S) for bridge in bridges for policy in policies]
    delays = [delay_steps(startup_s) for startup_s in startups_s]
    swept = sweep(load.values, load.signal, programs, load.first_pods, delays, DAY_STEPS)
    return [list(family) for family in zip(*swept, strict=True)]


def priced_days(load: Load, startup_s: float, weights: NetWeights, bridges: Sequence[Bridge | None]) -> list[Days]:
    found, seen = priced_levels(load.values, startup_s, weights, PRICES), shown_load(load.values)
    paths = [
        band_path(found, start, start + more, load.first_pods, MIN_PODS, MAX_PODS)
        for start in range(8)
        for more in range(1, 5)
    ]
    return [
        measure(load.values, path, delay_steps(startup_s), DAY_STEPS, bridge=bridge, seen=seen)
        for bridge in bridges
        for path in paths
    ]


CONTENDERS: dict[str, Contender] = {
    "hpa-rolling": rolling,
    "hpa-rolling-bridge": rolling_bridge,
    "trimtab": priced(shipped_weights(), NO_BRIDGE, NO_BRIDGE),
    "trimtab-bridge": priced(shipped_weights(), REACTIVE_BRIDGES, PRICED_BRIDGES),
} | {name: fixed(baseline) for name, baseline in BASELINES.items()}


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
