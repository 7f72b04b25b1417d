"""What a policy would have done with a workload's own history, with the optimum beside it."""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

import numpy as np

from trimtab.policy import Policy
from trimtab.sim.cluster import Run
from trimtab.sim.cluster_spec import ClusterSpec
from trimtab.sim.grid import DAY_STEPS, HOUR_STEPS, STEP_S, delay_steps
from trimtab.sim.oracle import optimum, pods_needed
from trimtab.sim.program import is_cpu_share
from trimtab.sim.score import Counts, Provisioning, Score, oom_share, provisioning, score, slack
from trimtab.sim.simulate import simulate, why_slow
from trimtab.tune.candidates import in_the_lane
from trimtab.tune.demand import DEFAULT_TARGET, Demand


class Hour(NamedTuple):
    """The hour in which most load was violated."""

    start: float
    violations: float  # percent of that hour's load


class BacktestOutcome(NamedTuple):
    """One policy on one demand."""

    policy: str
    score: Score
    provisioning: Provisioning
    worst: Hour
    pod_hours: float
    slack: float  # percent of the requested cores that nobody used
    oom: float  # pods killed for memory, in percent of those that ran
    run: Run
    best: Counts  # what the optimum bills, by step
    why_slow: str

    def figures(self) -> dict[str, float]:
        """What --fail-if may name; violations and provisioning in percent."""
        return {
            "cost": self.score.cost,
            "violations": self.score.violations,
            "churn": self.score.churn_per_day,
            "j": self.score.j,
            "regret": self.score.regret,
            "worst": self.worst.violations,
            "under": self.provisioning.under,
            "over": self.provisioning.over,
            "podHours": self.pod_hours,
            "slack": self.slack,
            "oom": self.oom,
            "resizes": self.score.resizes_per_pod_day,
        }


def backtest(
    name: str, policy: Policy, demand: Demand, cluster: ClusterSpec, lam: float, seed: int = 0
) -> BacktestOutcome:
    """Replay and score. Cost and J are in proportion to the optimum of the same load and start-up, whatever the bounds:
    a policy with a higher minReplicas costs more, and is compared with another on one scale.
    """
    first = first_pods(policy, float(demand.values[0]) / cluster.pod_capacity)
    found = simulate(policy, demand.values, cluster, first_pods=first, seed=seed, start=demand.start)
    return judged(name, policy, found, demand.start, cluster, lam)


def on_the_total(policy: Policy, cluster: ClusterSpec) -> tuple[Policy, str]:
    """The form of a policy that is judged in a moment, and what to say of it where that is not the policy itself."""
    reason = why_slow(policy, cluster)
    if not reason:
        return policy, ""
    form = in_the_lane(policy, cluster.pod_capacity)
    how = "in a simpler form" if is_cpu_share(form) else "on the total of the load"
    return form, f"judged {how}: {reason}"


def judged(
    name: str, policy: Policy, found: Run, start: float, cluster: ClusterSpec, lam: float, from_step: int = 0
) -> BacktestOutcome:
    """The outcome of a run that began at `start`, or of its part from a step on."""
    needed = pods_needed(found.load, 1, cluster.level_share)
    best, part = optimum(needed, delay_steps(cluster.startup_s))[from_step:], found.since(from_step)
    days = part.days(DAY_STEPS)
    return BacktestOutcome(
        policy=name,
        score=score(days, float(best.sum()), lam, len(best) / DAY_STEPS),
        provisioning=provisioning(needed[from_step:], part.ready),
        worst=worst_hour(part, start + from_step * STEP_S),
        pod_hours=float(days.pods.sum()) / HOUR_STEPS,
        slack=slack(np.minimum(part.load, part.requested), part.requested),
        oom=oom_share(part.kills, int(part.replicas[0]) + int(np.maximum(np.diff(part.replicas), 0).sum())),
        run=part,
        best=best,
        why_slow=why_slow(policy, cluster),
    )


def first_pods(policy: Policy, load: float) -> int:
    """A run begins with what the first load needs at 70 %, within the bounds."""
    bounds = policy.bounds
    return max(1, bounds.min_replicas, min(bounds.max_replicas, ceil(load / DEFAULT_TARGET)))


def worst_hour(found: Run, start: float) -> Hour:
    edges = np.arange(0, len(found.load), HOUR_STEPS)
    load, violating = np.add.reduceat(found.load, edges), np.add.reduceat(found.violating, edges)
    share = np.divide(violating, load, out=np.zeros_like(load), where=load > 0)
    worst = int(np.argmax(violating))
    return Hour(start + worst * 3600.0, 100.0 * float(share[worst]))
