"""The demo's fleet played: each workload scaled by default HPA and by trimtab.

trimtab is tuned on the first week only; both are scored on the second.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec import structs

from trimtab.core.explain import sentence
from trimtab.core.model import ContainerSize, Decision, Memory, Observation
from trimtab.core.tuned import settings_of, tuned
from trimtab.policy import BRIDGED_START_SHARE, Bridge, ForecastChoice, Objective, Policy
from trimtab.sim.cluster import Run, run
from trimtab.sim.grid import DAY_STEPS, STEP_S
from trimtab.sim.prices import OBJECTIVES
from trimtab.tune.case import Case, Outcome, first_pods, judged
from trimtab.tune.demo_fleet import WEEK, DemoWorkload
from trimtab.tune.rolling_choice import GAIN
from trimtab.tune.search import CEILINGS, search, space_of

PRICE = OBJECTIVES["balanced"]
SLOW_S = 300.0  # from here on it is worth to look ahead
FORECAST_AFTER = 3 * DAY_STEPS  # before that a forecast knows too little to be judged
OBJECTIVE = Objective(price=PRICE, start_share=BRIDGED_START_SHARE)


class DemoResult(NamedTuple):
    """Both policies in the second week, and how trimtab's came about."""

    workload: DemoWorkload
    default: Outcome
    ours: Outcome
    how: str
    decisions: tuple[str, ...]
    policy: Policy  # trimtab's


def play(workload: DemoWorkload) -> DemoResult:
    """Tune on the first week, then replay both weeks and score the second."""
    first_week = workload.demand._replace(values=workload.demand.values[:WEEK])
    case = Case(first_week, workload.better, workload.cluster, PRICE)
    choice = search(case, space_of(case.policy, case.pods))
    share = choice.now.target / (100 if workload.on_cpu else workload.cluster.pod_capacity)
    how = [f"target {share:.0%}, tolerance {choice.now.tolerance:g}"]
    ours, found, said = choice.policy, *_watched(choice.policy, workload)
    if workload.cluster.startup_s >= SLOW_S:
        priced = _priced(case)
        priced_run, told = _watched(priced, workload)
        if _j_of_first_week(priced, priced_run, workload) < (1 - GAIN) * _j_of_first_week(ours, found, workload):
            ours, found, said = priced, priced_run, told
            how = [f"an objective (price {PRICE:g}) with its learned forecast, and the bridge"]
    if ours.vertical is not None:
        how.append("memory sized by use")
    before = _simulate(workload.default, workload)
    return DemoResult(
        workload,
        judged("HPA", _case(workload, workload.default), before, WEEK),
        judged("trimtab", _case(workload, ours), found, WEEK),
        ", ".join(how),
        said,
        ours,
    )


def _case(workload: DemoWorkload, policy: Policy) -> Case:
    return Case(workload.demand, policy, workload.cluster, PRICE)


def _priced(case: Case) -> Policy:
    """By the price, with the bridge whose ceiling did best in the first week, as a night would choose it."""
    learned = ForecastChoice(model="learned")
    priced = structs.replace(case.policy, objective=OBJECTIVE, forecast=learned, bridge=Bridge())
    own = settings_of(priced)
    policies = [tuned(priced, structs.replace(own, ceiling=ceiling)) for ceiling in CEILINGS]
    costs = [float(days.j(PRICE).sum()) for days in case.with_policy(priced).days(policies) if days is not None]
    return policies[costs.index(min(costs))]


def _j_of_first_week(policy: Policy, found: Run, workload: DemoWorkload) -> float:
    return judged("", _case(workload, policy), found.until(WEEK), FORECAST_AFTER).figures.j


def _simulate(policy: Policy, workload: DemoWorkload) -> Run:
    first = first_pods(policy, float(workload.demand.values[0]))
    return run(policy, workload.demand.values, workload.cluster, first_pods=first, seed=1)


def _watched(policy: Policy, workload: DemoWorkload) -> tuple[Run, tuple[str, ...]]:
    """A run with its two most telling decisions of the second week: the largest step up, and one that was held back."""
    best: dict[str, tuple[float, float, str]] = {}

    def watch(seen: Observation, memory: Memory, decision: Decision) -> None:
        if seen.at < WEEK * STEP_S:
            return
        for kind, weight in _telling(seen, decision):
            if weight > best.get(kind, (0.0, 0.0, ""))[0]:
                best[kind] = (weight, seen.at, sentence(policy, seen, memory, decision))

    first = first_pods(policy, float(workload.demand.values[0]))
    found = run(policy, workload.demand.values, workload.cluster, first_pods=first, seed=1, watch=watch)
    return found, tuple(f"{_clock(at)}  {said}" for _, at, said in best.values())


def _telling(seen: Observation, decision: Decision) -> list[tuple[str, float]]:
    """Which kinds of story a decision tells, and how strongly."""
    change = decision.change
    if change is not None and change.sizes:
        return [("resize", max(_growth(seen, name, size) for name, size in change.sizes.items()))]
    if change is not None and change.replicas is not None and change.replicas > seen.spec_replicas:
        return [("up", float(change.replicas - seen.spec_replicas))]
    held = [step.before for step in decision.steps if step.until is not None and step.after == seen.spec_replicas]
    return [("held", abs(seen.spec_replicas - held[0]))] if held else []


def _growth(seen: Observation, name: str, size: ContainerSize) -> float:
    before, after = seen.sizes[name].requests.memory_bytes, size.requests.memory_bytes
    return abs(after / before - 1) if before and after else 0.0


def _clock(at: float) -> str:
    return f"day {int(at // 86400) + 1} {int(at % 86400 // 3600):02d}:{int(at % 3600 // 60):02d}"
