"""A simulated workload written into a journal as the operator writes a real one: its looks, its acts with inputs."""

from __future__ import annotations

from collections.abc import Callable

from trimtab.core.model import Decision, Memory, Observation
from trimtab.journal import Act, AxisOutcome, Fate, Journal, ObjectName, changed_axes
from trimtab.policy import Mode, Policy
from trimtab.series import Floats
from trimtab.sim.cluster import run
from trimtab.sim.cluster_spec import ClusterSpec
from trimtab.ticks import Tick, tick_of

Watch = Callable[[Observation, Memory, Decision], None]


class SimulatedRecord:
    """Collects what a run shows; a wish that cannot be written counts once."""

    def __init__(self, name: ObjectName, policy: Policy) -> None:
        self.name, self.policy = name, policy
        self.acts: list[Act] = []
        self.looks: list[tuple[Observation, Decision]] = []

    def watch(self, seen: Observation, memory: Memory, decision: Decision) -> None:
        self.looks.append((seen, decision))
        shadow = self.policy.admit.mode is Mode.SHADOW
        known = self.acts[-1].decision.change if self.acts else None
        if decision.change is not None and not (shadow and decision.change == known):
            fate = Fate.SHADOW if shadow else Fate.WRITTEN
            outcome = tuple(AxisOutcome(axis=axis, fate=fate) for axis in changed_axes(decision.change))
            self.acts.append(Act(self.name, self.policy, seen, memory, decision, outcome))

    def ticks(self, ready: list[int]) -> list[Tick]:
        """The looks with the pods that were ready at each of them."""
        return [
            tick_of(self.name, self.policy, seen, decision, count)
            for (seen, decision), count in zip(self.looks, ready, strict=True)
        ]


def record(
    journal: Journal,
    name: ObjectName,
    policy: Policy,
    load: Floats,
    cluster: ClusterSpec,
    *,
    first_pods: int,
    start: float,
    seed: int = 0,
) -> list[Tick]:
    """Run a load under a policy and write down all of it."""
    recorder = SimulatedRecord(name, policy)
    found = run(policy, load, cluster, first_pods=first_pods, start=start, seed=seed, watch=recorder.watch)
    ticks = recorder.ticks(found.ready.tolist())
    journal.write(recorder.acts, ticks, [(name, policy)])
    return ticks
