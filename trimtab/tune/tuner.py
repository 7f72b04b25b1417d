"""tune(): better settings for one workload from its own days, and the evidence for them. An objective stays unless a
target does better.

Every candidate is simulated on every day (load does not depend on how it is served), judged by the price of the user,
newer days weighing more; the present settings stay unless another is 2 % better.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from trimtab.core.tuned import by_target, check_tunable
from trimtab.policy import BRIDGED_START_SHARE, START_SHARE, Bridge, Objective, Policy, PricedBand
from trimtab.series import Floats
from trimtab.sim.cluster_spec import ClusterSpec
from trimtab.sim.score import Days, Score, score
from trimtab.tune.candidate_runs import CandidateRuns, candidate_runs
from trimtab.tune.candidates import Setting, allowed_settings, scored, setting_of, with_setting
from trimtab.tune.demand import Demand
from trimtab.tune.priced_run import PricedRuns
from trimtab.tune.rolling_choice import choose, faded, picked, takeover

QUICKER = (
    "the objective was scored with a quicker form of its forecast, which speaks from the first day on;"
    " `trimtab backtest` runs the operator's own"
)


class Choice(NamedTuple):
    """One candidate; `priced`: the objective steers, and the setting rests."""

    bridge: Bridge | None
    setting: Setting
    priced: bool = False


class Tuned(NamedTuple):
    """What to change, and how it would have done. `before` and `after` are over all days, `rolling` over the days that
    were chosen for by earlier ones only, `held` is the present policy on those same days."""

    was: Choice
    now: Choice
    policy: Policy
    before: Score
    after: Score
    held: Score | None
    rolling: Score | None
    days: int
    days_won: tuple[int, ...]  # days, counted from 0, on which the new settings would have been better
    notes: tuple[str, ...]
    changed: bool


def tune(
    policy: Policy,
    demand: Demand,
    cluster: ClusterSpec,
    lam: float,
    bridges: Sequence[Bridge | None] = (),
    done: Callable[[], None] = lambda: None,
) -> Tuned:
    """The settings for the next day; with other bridges than the policy's where these are given."""
    if policy.objective is not None:
        check_tunable(policy)
    written = by_target(policy)
    present, runs = setting_of(written, cluster.pod_capacity), candidate_runs(written, demand, cluster)
    family = allowed_settings(written, cluster.pod_capacity)
    family = family if present in family else [*family, present]
    with_bridges = list(dict.fromkeys((policy.bridge, *bridges)))
    candidates = [Choice(bridge, setting) for bridge in with_bridges for setting in family]
    swept = runs.run(family, with_bridges, done)
    results = [swept[family.index(each.setting)][with_bridges.index(each.bridge)] for each in candidates]
    if policy.objective is not None:
        candidates += [Choice(bridge, present, priced=True) for bridge in with_bridges]
        results += _priced(runs, policy.objective, with_bridges)
    incumbent = candidates.index(Choice(policy.bridge, present, policy.objective is not None))
    j = np.array([days.j(lam) for days in results])
    best, optima = takeover(faded(j), incumbent), runs.optima()
    warmup = _warmup(j.shape[1])
    chosen = choose(j, warmup, incumbent)
    return Tuned(
        was=candidates[incumbent],
        now=candidates[best],
        policy=policy if best == incumbent else _chosen(policy, candidates[best], cluster.pod_capacity),
        before=_score(results[incumbent], optima, lam),
        after=_score(results[best], optima, lam),
        held=_score(results[incumbent].since(warmup), optima[warmup:], lam) if warmup else None,
        rolling=_score(picked(results, chosen).since(warmup), optima[warmup:], lam) if warmup else None,
        days=j.shape[1],
        days_won=tuple(np.flatnonzero(j[best] < j[incumbent]).tolist()),
        notes=scored(written) if policy.objective is None else (*scored(written), QUICKER),
        changed=best != incumbent,
    )


def _score(days: Days, optima: Floats, lam: float) -> Score:
    """Of whole days."""
    return score(days, float(optima.sum()), lam, len(optima))


def _priced(runs: CandidateRuns, objective: Objective, bridges: Sequence[Bridge | None]) -> list[Days]:
    """The objective with each bridge, at the price of starting that comes with it."""
    keep = objective.price * objective.keep_share
    shares = [BRIDGED_START_SHARE if bridge else START_SHARE for bridge in bridges]
    bands = [PricedBand(start=objective.price * share, keep=keep) for share in shares]
    priced = PricedRuns(runs, objective, bands)
    return [priced.days(band, bridge) for band, bridge in zip(bands, bridges, strict=True)]


def _chosen(policy: Policy, choice: Choice, pod_capacity: float) -> Policy:
    bridged = replace(policy, bridge=choice.bridge)
    return bridged if choice.priced else with_setting(by_target(bridged), choice.setting, pod_capacity)


def _warmup(days: int) -> int:
    """How many days come before the first that is judged by earlier ones; 0 where there are too few."""
    return 7 if days >= 28 else 3 if days >= 6 else 0
