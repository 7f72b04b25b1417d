"""Case: one workload's load, the policy that scales it, its pods and the price of a violation.

Every command that judges a policy judges a Case, so the same case gives the same figures everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil
from typing import NamedTuple

import numpy as np
from msgspec import structs

from trimtab.core.figures import Figures
from trimtab.core.requests import USUAL_TARGET
from trimtab.core.tuned import by_percent, settings_of, tunable
from trimtab.policy import Admit, Policy, TotalAverage
from trimtab.series import Floats
from trimtab.sim.cluster import Run
from trimtab.sim.cluster_spec import ClusterSpec
from trimtab.sim.cost_limit import UNLIMITED, CostLimit
from trimtab.sim.grid import DAY_STEPS, HOUR_STEPS, STEP_S, delay_steps
from trimtab.sim.oracle import optimum_on, pods_needed
from trimtab.sim.program import is_cpu_share
from trimtab.sim.score import EVERY_STEP, Days, Provisioning, oom_share, provisioning, score, scored_steps, slack
from trimtab.sim.simulate import Simulation, stepped_parts, why_slow
from trimtab.tune.demand import Demand


class Hour(NamedTuple):
    """The hour in which most load was violated."""

    start: float
    violations: float  # percent of that hour's load


class Outcome(NamedTuple):
    """One policy on one case, step by step."""

    policy: str
    figures: Figures
    provisioning: Provisioning
    worst: Hour
    pod_hours: float
    slack: float  # percent of the requested cores that nobody used
    oom: float  # pods killed for memory, in percent of those that ran
    run: Run
    best: Floats  # what the optimum bills, by step
    why_slow: str

    def by_name(self) -> dict[str, float]:
        """What --fail-if may name; violations and provisioning in percent."""
        return {
            "cost": self.figures.cost,
            "violations": self.figures.violations,
            "churn": self.figures.churn_per_day,
            "j": self.figures.j,
            "regret": self.figures.regret,
            "worst": self.worst.violations,
            "under": self.provisioning.under,
            "over": self.provisioning.over,
            "slack": self.slack,
            "oom": self.oom,
            "podHours": self.pod_hours,
            "resizes": self.figures.resizes_per_pod_day,
        }


@dataclass(frozen=True, eq=False)
class Case:
    """`pods` say what one pod carries and above which load it is overloaded; `price` is J's lambda."""

    demand: Demand
    policy: Policy
    pods: ClusterSpec
    price: float
    seed: int = 0

    @cached_property
    def simulation(self) -> Simulation:
        first = first_pods(self.policy, float(self.load[0]))
        return Simulation(
            self.demand.values,
            self.pods,
            first_pods=first,
            start=self.demand.start,
            seed=self.seed,
            scored=self.scored,
        )

    @cached_property
    def scored(self) -> Floats:
        """1 where a step counts, 0 in gaps of the history and one start-up after them."""
        known = self.demand.known
        return EVERY_STEP if known is None else scored_steps(known, delay_steps(self.pods.startup_s))

    @property
    def gap_note(self) -> str:
        """How much of the time is not scored."""
        if not len(self.scored):
            return ""
        left_out = 1.0 - float(self.scored.mean())
        return f"{left_out:.1%} of the time is not scored: steps without a sample, and one start-up after them"

    @property
    def load(self) -> Floats:
        """In what one pod carries at 100 %."""
        return self.demand.values / self.pods.pod_capacity

    @property
    def whole_days(self) -> int:
        return len(self.demand.values) // DAY_STEPS

    def with_policy(self, policy: Policy) -> Case:
        return replace(self, policy=policy)

    def last_whole_days(self) -> Case:
        return replace(self, demand=self.demand.last_whole_days())

    def outcome(self, name: str) -> Outcome:
        """Replay the policy and score the run. Cost and J are ratios to the optimum whatever the bounds: a policy with
        a higher minReplicas costs more, and is compared with another on one scale."""
        return judged(name, self, self.simulation.run(self.policy))

    def days(
        self,
        policies: Sequence[Policy],
        done: Callable[[int], None] = lambda count: None,
        within: CostLimit = UNLIMITED,
    ) -> list[Days | None]:
        """What each day of other policies in the quick form cost; None: given up within the limit."""
        return self.simulation.days([quick_form(policy, self.pods) for policy in policies], done, within)

    def figures(self, days: Days, since: int = 0) -> Figures:
        """The figures of whole days."""
        best = self.optima()[since:]
        return score(days.since(since), float(best.sum()), self.price, len(best))

    def optima(self, least: int = 1) -> Floats:
        """The optimum's pod-steps of each day."""
        best = _weighed(optimum_on(self.pods, self.load, least), self.scored)
        by_day: Floats = best.reshape(self.whole_days, DAY_STEPS).sum(axis=1)
        return by_day

    @property
    def optima_above_the_floor(self) -> Floats:
        """Those that keep minReplicas, too."""
        return self.optima(max(1, self.policy.bounds.min_replicas))


def backtest(name: str, case: Case) -> Outcome:
    """The outcome of a case; a function, so that workers can be given it."""
    return case.outcome(name)


def judged(name: str, case: Case, run: Run, from_step: int = 0) -> Outcome:
    """The outcome of a run of the case's policy, or of its part from a step on."""
    pods, scored = case.pods, case.scored[from_step:]
    needed = pods_needed(run.load, 1, pods.level_share)[from_step:]
    best, part = optimum_on(pods, run.load)[from_step:], run.since(from_step)
    days = part.days(DAY_STEPS, scored)
    counts = scored > 0 if len(scored) else np.full(len(best), True)
    requested = part.requested[counts]
    return Outcome(
        policy=name,
        figures=score(days, float(_weighed(best, scored).sum()), case.price, int(counts.sum()) / DAY_STEPS),
        provisioning=provisioning(needed[counts], part.ready[counts]),
        worst=worst_hour(part, case.demand.start + from_step * STEP_S, scored),
        pod_hours=float(days.pods.sum()) / HOUR_STEPS,
        slack=slack(np.minimum(part.load[counts], requested), requested),
        oom=oom_share(part.kills, int(part.replicas[0]) + int(np.maximum(np.diff(part.replicas), 0).sum())),
        run=part,
        best=best,
        why_slow=why_slow(case.policy, pods),
    )


def _weighed(values: Floats, scored: Floats) -> Floats:
    return values * scored if len(scored) else values


def worst_hour(run: Run, start: float, scored: Floats = EVERY_STEP) -> Hour:
    edges = np.arange(0, len(run.load), HOUR_STEPS)
    load, violating = (np.add.reduceat(_weighed(column, scored), edges) for column in (run.load, run.violating))
    share = np.divide(violating, load, out=np.zeros_like(load), where=load > 0)
    worst = int(np.argmax(violating))
    return Hour(start + worst * 3600.0, 100.0 * float(share[worst]))


def first_pods(policy: Policy, load: float) -> int:
    """A run begins with what the first load needs at 70 %, within the bounds."""
    bounds = policy.bounds
    return max(1, bounds.min_replicas, min(bounds.max_replicas, ceil(load / USUAL_TARGET)))


def quick_form(policy: Policy, pods: ClusterSpec) -> Policy:
    """The form of a policy that the compiled engine runs; `quick_notes` say how it differs."""
    simple = structs.replace(
        policy,
        admit=Admit(),
        bounds=structs.replace(policy.bounds, min_replicas=max(1, policy.bounds.min_replicas)),
        forecast=structs.replace(policy.forecast, exact=False) if policy.forecast else None,
        vertical=policy.vertical if policy.blend else None,
        bridge=structs.replace(policy.bridge, resizes_per_hour=None) if policy.bridge else None,
    )
    return simple if pods.queue or is_cpu_share(simple) else _on_the_total(simple, pods)


def _on_the_total(policy: Policy, pods: ClusterSpec) -> Policy:
    """It differs where pods are unready or saturated, for a total shows the whole demand at once."""
    signal, target = tunable(policy), settings_of(policy).target
    if policy.objective is not None and by_percent(signal):  # a price asks what a pod carries, which is its request
        target = USUAL_TARGET * pods.pod_capacity
    elif by_percent(signal):
        target *= pods.pod_capacity / 100.0
    total = TotalAverage(metric=signal.metric, target=target, tolerance=signal.tolerance)
    return structs.replace(policy, signals=(total,))


def quickly(case: Case) -> tuple[Case, str]:
    """The case with its policy in the quick form, and what to say of it where that is not the policy itself."""
    reason = why_slow(case.policy, case.pods)
    if not reason or case.pods.queue:  # no shorter form has a queue
        return case, ""
    form = quick_form(case.policy, case.pods)
    how = "in a simpler form" if is_cpu_share(form) else "on the total of the load"
    return case.with_policy(form), f"judged {how}: {reason}"


def quick_notes(policy: Policy, pods: ClusterSpec) -> tuple[str, ...]:
    """What every candidate was scored with and without, where that is not the policy and the pods to the letter."""
    forecast, said = policy.forecast, []
    if parts := stepped_parts(pods):
        said.append(f"settings were scored without {', '.join(parts)}")
    if not pods.queue and not isinstance(tunable(policy), TotalAverage) and not is_cpu_share(policy):
        said.append("simulated on the total load; what pods report may lag behind it")
    if forecast is not None:
        exact = ", without the quirks of its source" if forecast.exact else ""
        said.append(f"every setting was scored with the {forecast.model} forecast{exact}")
    if policy.bounds.spans:
        said.append("every setting was scored with the schedules")
    if policy.vertical is not None:
        said.append("settings were scored at the present size of pods: the vertical part is left out")
    if policy.bridge is not None and policy.bridge.resizes_per_hour is not None:
        said.append("every setting was scored without the limit of resizes per hour")
    if policy.admit != Admit():
        said.append("settings were scored as if the policy were on, neither paused nor pinned")
    if policy.bounds.min_replicas == 0:
        said.append("settings were scored with one replica at least, not zero")
    return tuple(said)
