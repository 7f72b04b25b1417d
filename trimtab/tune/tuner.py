"""tune(): better settings for one workload from its own days, and the evidence for them.

Every candidate is simulated on every day (load does not depend on how it is served), judged by the price of the user,
newer days weighing more; the present settings stay unless another is 2 % better.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from trimtab.policy import Bridge, Policy
from trimtab.sim.cluster_spec import ClusterSpec
from trimtab.sim.score import Score, score
from trimtab.tune.candidate_runs import candidate_runs
from trimtab.tune.candidates import Setting, allowed_settings, scored, setting_of, with_setting
from trimtab.tune.demand import Demand
from trimtab.tune.rolling_choice import choose, faded, picked, takeover


class Tuned(NamedTuple):
    """What to change, and how it would have done. `before` and `after` are over all days, `rolling` over the days that
    were chosen for by earlier ones only, `held` is the present policy on those same days."""

    before_setting: Setting
    before_bridge: Bridge | None
    setting: Setting
    bridge: Bridge | None
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
    present, runs = setting_of(policy, cluster.pod_capacity), candidate_runs(policy, demand, cluster)
    family = allowed_settings(policy, cluster.pod_capacity)
    family = family if present in family else [*family, present]
    choices = list(dict.fromkeys((policy.bridge, *bridges)))
    candidates = [(bridge, setting) for bridge in choices for setting in family]
    swept = runs.run(family, choices, done)
    results = [swept[family.index(setting)][choices.index(bridge)] for bridge, setting in candidates]
    incumbent = candidates.index((policy.bridge, present))
    j = np.array([days.j(lam) for days in results])
    best, optima = takeover(faded(j), incumbent), runs.optima()
    warmup = _warmup(j.shape[1])
    chosen = choose(j, warmup, incumbent)
    bridge, setting = candidates[best]
    new = replace(with_setting(policy, setting, cluster.pod_capacity), bridge=bridge)
    return Tuned(
        before_setting=present,
        before_bridge=policy.bridge,
        setting=setting,
        bridge=bridge,
        policy=policy if best == incumbent else new,
        before=score(results[incumbent], float(optima.sum()), lam),
        after=score(results[best], float(optima.sum()), lam),
        held=score(results[incumbent].since(warmup), float(optima[warmup:].sum()), lam) if warmup else None,
        rolling=score(picked(results, chosen).since(warmup), float(optima[warmup:].sum()), lam) if warmup else None,
        days=j.shape[1],
        days_won=tuple(np.flatnonzero(j[best] < j[incumbent]).tolist()),
        notes=scored(policy),
        changed=best != incumbent,
    )


def _warmup(days: int) -> int:
    """How many days come before the first that is judged by earlier ones; 0 where there are too few."""
    return 7 if days >= 28 else 3 if days >= 6 else 0
