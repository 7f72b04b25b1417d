"""Simulate each workload of the demo twice: with its present autoscaler, and with trimtab.

Settings are tuned on the first week only; both policies are scored on the second.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

from trimtab.core.explain import sentence
from trimtab.core.explain.tuning import settings_text
from trimtab.core.model import ContainerSize, Decision, Memory, Observation
from trimtab.journal import ObjectName
from trimtab.policy import Policy
from trimtab.quantity import GIB
from trimtab.sim.cluster import Run, Watch, run
from trimtab.sim.prices import OBJECTIVES
from trimtab.tune.case import Case, Outcome, first_pods, judged
from trimtab.tune.demo_fleet import START, WEEK, WEEK_S, DemoWorkload, policy_of
from trimtab.tune.manifest import writable_space
from trimtab.tune.recording import SimulatedRecord
from trimtab.tune.search import search

PRICE = OBJECTIVES["balanced"]
SECOND_WEEK = START + WEEK_S


class DemoResult(NamedTuple):
    """Both policies in the second week, and how trimtab's came about."""

    workload: DemoWorkload
    today: Outcome
    ours: Outcome
    how: str
    decisions: tuple[str, ...]
    policy: Policy  # trimtab's
    record: SimulatedRecord  # of the second week

    @property
    def memory_gib(self) -> tuple[float, float]:
        """What a pod reserved on average, today and with trimtab."""
        return _memory_gib(self.workload, self.today.run), _memory_gib(self.workload, self.ours.run)


def play(workload: DemoWorkload) -> DemoResult:
    """Tune on the first week, then replay both weeks and score the second."""
    policy, how = _tuned(workload)
    today, ours = _case(workload, policy_of(workload.today)), _case(workload, policy)
    record = SimulatedRecord(ObjectName("Autoscaler", "demo", workload.name), policy, workload.pods.startup_s)
    stories = _Stories(policy)

    def watch(seen: Observation, memory: Memory, decision: Decision) -> None:
        if seen.at >= SECOND_WEEK:
            record.watch(seen, memory, decision)
            stories.watch(seen, memory, decision)

    return DemoResult(
        workload,
        judged("today", today, simulated(today), WEEK),
        judged("trimtab", ours, simulated(ours, watch), WEEK),
        how,
        stories.told(),
        policy,
        record,
    )


def simulated(case: Case, watch: Watch | None = None) -> Run:
    """Every step of a case, by decide()."""
    first = first_pods(case.policy, float(case.load[0]))
    return run(case.policy, case.demand.values, case.pods, first_pods=first, seed=1, start=START, watch=watch)


def _case(workload: DemoWorkload, policy: Policy) -> Case:
    return Case(workload.demand, policy, workload.pods, PRICE)


def _tuned(workload: DemoWorkload) -> tuple[Policy, str]:
    """The settings that `trimtab tune` finds on the first week, where nightly tuning is asked for."""
    policy = policy_of(workload.proposed)
    if "tuning" not in workload.proposed["spec"]:
        return policy, workload.change
    demand = workload.demand
    case = Case(demand._replace(values=demand.values[:WEEK]), policy, workload.pods, PRICE)
    choice = search(case, writable_space(workload.proposed["kind"], policy, workload.pods))
    return choice.policy, settings_text(choice.now)


def _memory_gib(workload: DemoWorkload, found: Run) -> float:
    """Return the mean of a pod; where memory is sized, half of what is billed is memory and half the fixed CPU."""
    if workload.pods.memory_load is None:
        return workload.pods.pod_memory_bytes / GIB
    share = 2.0 * float(found.billed.sum()) / float(found.replicas.sum()) - 1.0
    return share * workload.pods.pod_memory_bytes / GIB


class _Stories:
    """The most telling decisions of a run: the largest step up, a decrease that was held back, a resize."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._best: dict[str, tuple[float, float, str]] = {}

    def watch(self, seen: Observation, memory: Memory, decision: Decision) -> None:
        for kind, weight in _telling(seen, decision):
            if weight > self._best.get(kind, (0.0, 0.0, ""))[0]:
                self._best[kind] = (weight, seen.at, sentence(self._policy, seen, memory, decision))

    def told(self) -> tuple[str, ...]:
        return tuple(f"{_clock(at)}  {text}" for _, at, text in self._best.values())


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
    """ "Tue 08:05"."""
    return datetime.fromtimestamp(at, UTC).strftime("%a %H:%M")
