"""The contenders of the benchmark: baselines that stay as they are, and policies retuned every night."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from trimtab.bench.baselines import BASELINES, Baseline, hpa
from trimtab.bench.families import CALM, OPERATOR, Bridges, Disturbance, Families, View, cluster_of, families_of
from trimtab.bench.protocol import MIN_PODS, Load
from trimtab.bench.summary import BenchRow
from trimtab.core.forecast.learned.net import NetWeights, shipped_weights
from trimtab.core.tuned import settings_of
from trimtab.errors import InvalidInput
from trimtab.policy import Bridge
from trimtab.sim.cluster_spec import ClusterSpec
from trimtab.sim.grid import DAY_STEPS, delay_steps
from trimtab.sim.oracle import optimum, pods_needed
from trimtab.sim.score import Days, score
from trimtab.sim.simulate import simulate
from trimtab.tune.rolling_choice import SILENT_DAYS, choose, picked
from trimtab.tune.search import CEILINGS, reactive_settings


class Untuned(NamedTuple):
    """A policy that stays as it is."""

    baseline: Baseline


class Retuned(NamedTuple):
    """The best of a family on the workload's own days so far: reactive settings, and the priced policy at many prices,
    each with every one of its bridges."""

    reactive: Bridges
    priced: Bridges = ()


NO_BRIDGE: Bridges = (None,)
PROTOCOL_BRIDGES: Bridges = (None, Bridge(ceiling=0.65), Bridge(ceiling=0.70), Bridge(ceiling=0.75))
NIGHTLY_BRIDGES: Bridges = (None, *(Bridge(ceiling=ceiling) for ceiling in CEILINGS))

CONTENDERS: dict[str, Untuned | Retuned] = {
    "hpa-rolling": Retuned(NO_BRIDGE),
    "hpa-rolling-bridge": Retuned(PROTOCOL_BRIDGES),
    "trimtab": Retuned(NO_BRIDGE, NO_BRIDGE),
    "trimtab-bridge": Retuned(NIGHTLY_BRIDGES, NIGHTLY_BRIDGES),
} | {name: Untuned(baseline) for name, baseline in BASELINES.items()}


def check_names(names: Sequence[str]) -> None:
    unknown = [name for name in names if name not in CONTENDERS]
    if unknown:
        raise InvalidInput("--policies", unknown[0], f"known are {', '.join(sorted(CONTENDERS))}")


def rows_of(
    load: Load,
    names: Sequence[str],
    startups_s: Sequence[float],
    lambdas: Sequence[float],
    disturbance: Disturbance = CALM,
    weights: NetWeights | None = None,
    view: View = OPERATOR,
) -> list[BenchRow]:
    """Every contender on one trace."""
    runs = Runs(load, names, startups_s, disturbance, weights or shipped_weights(), view=view)
    return rows_from(runs, names, startups_s, lambdas)


def rows_from(
    runs: Runs, names: Sequence[str], startups_s: Sequence[float], lambdas: Sequence[float]
) -> list[BenchRow]:
    return [
        _row(runs.load, startup_s, lam, name, runs.days(name, startup_s, lam), runs.disturbance)
        for name in names
        for startup_s in startups_s
        for lam in lambdas
    ]


class Runs:
    """What every contender did with one load; what several of them need is simulated once."""

    def __init__(
        self,
        load: Load,
        names: Sequence[str],
        startups_s: Sequence[float],
        disturbance: Disturbance,
        weights: NetWeights,
        calm: Runs | None = None,
        view: View = OPERATOR,
    ) -> None:
        """`calm`: the runs of these contenders on this load when all is as believed, where somebody has them."""
        chosen = [CONTENDERS[name] for name in names]
        reactive = _all([each.reactive for each in chosen if isinstance(each, Retuned)])
        priced = _all([each.priced for each in chosen if isinstance(each, Retuned)])
        self.load, self.disturbance, self.view = load, disturbance, view
        self._believed: Families = (
            calm._believed if calm else families_of(load, startups_s, weights, reactive, priced, view)
        )
        self._happened = (
            self._believed
            if disturbance == CALM
            else families_of(load, startups_s, weights, reactive, priced, view, disturbance)
        )
        self._fixed: dict[tuple[str, float], Days] = {}

    def days(self, name: str, startup_s: float, lam: float) -> Days:
        contender = CONTENDERS[name]
        if isinstance(contender, Retuned):
            return self._chosen(contender, startup_s, lam)
        if (name, startup_s) not in self._fixed:
            self._fixed[name, startup_s] = self._stays(contender.baseline, startup_s)
        return self._fixed[name, startup_s]

    def _chosen(self, contender: Retuned, startup_s: float, lam: float) -> Days:
        """The days of whoever was best so far; default HPA is there at first."""
        default = reactive_settings(hpa(), ClusterSpec()).index(settings_of(hpa()))
        j = np.array([days.j(lam) for days in self._family(self._believed, contender, startup_s)])
        chosen = choose(j, self.load.warmup_days, default, SILENT_DAYS if contender.priced else 0)
        return picked(self._family(self._happened, contender, startup_s), chosen)

    @staticmethod
    def _family(families: Families, contender: Retuned, startup_s: float) -> list[Days]:
        return families.of(startup_s, contender.reactive, contender.priced)

    def _stays(self, baseline: Baseline, startup_s: float) -> Days:
        assert self.disturbance == CALM, "disturbance is for those that are retuned"
        load = self.load
        cluster = cluster_of(self.view, startup_s)
        run = simulate(baseline(load), load.values, cluster, first_pods=load.first_pods, start=load.start)
        return run.days(DAY_STEPS)


def _all(wanted: Sequence[Bridges]) -> Bridges:
    """Every bridge that somebody wants, once."""
    return tuple(dict.fromkeys(bridge for bridges in wanted for bridge in bridges))


def _row(load: Load, startup_s: float, lam: float, policy: str, days: Days, disturbance: Disturbance) -> BenchRow:
    needed = pods_needed(load.values, MIN_PODS)
    best = optimum(needed, delay_steps(startup_s * disturbance.startup_factor))[load.warmup_days * DAY_STEPS :]
    found = score(days.since(load.warmup_days), float(best.sum()), lam, len(best) / DAY_STEPS)
    return BenchRow(
        load.name,
        startup_s,
        lam,
        policy,
        found.cost,
        found.violations,
        found.churn_per_day,
        found.starts_per_day,
        found.resizes_per_pod_day,
        found.j,
        found.optimum,
        found.regret,
    )
