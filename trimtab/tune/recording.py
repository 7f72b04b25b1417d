"""A simulated workload written into a journal as the operator writes a real one: its looks, its acts with inputs."""

from __future__ import annotations

from collections import deque

from msgspec.structs import replace

from trimtab.acts import Act, AxisOutcome, Fate, changed_axes
from trimtab.core.model import Decision, Memory, Observation
from trimtab.journal import Journal, ObjectName
from trimtab.policy import Mode, Policy
from trimtab.series import Floats
from trimtab.sim.cluster import run
from trimtab.sim.cluster_spec import ClusterSpec
from trimtab.sim.grid import delay_steps
from trimtab.ticks import Tick, tick_of


class SimulatedRecord:
    """Collects what a run shows; a wish that cannot be written counts once."""

    def __init__(self, name: ObjectName, policy: Policy, startup_s: float) -> None:
        self.name, self.policy, self.startup_s = name, policy, startup_s
        self._decided_by = replace(policy, bridge=None)  # in a simulation pods grow by the protocol, not by decisions
        self.acts: list[Act] = []
        self.ticks: list[Tick] = []
        self._pods: deque[int] = deque(maxlen=delay_steps(startup_s) + 1)
        self._wish: object = None

    def watch(self, seen: Observation, memory: Memory, decision: Decision) -> None:
        self._pods.append(seen.status_replicas)
        ready = None if seen.pods else min(self._pods)  # those that were there throughout a start-up
        tick = tick_of(self.name, self.policy, seen, decision, ready)
        ahead = tick.forecast is not None and tick.horizon_s is None  # a start-up is known here, not measured
        self.ticks.append(tick._replace(horizon_s=self.startup_s) if ahead else tick)
        shadow = self.policy.admit.mode is Mode.SHADOW
        if decision.change is not None and not (shadow and decision.change == self._wish):
            fate = Fate.SHADOW if shadow else Fate.WRITTEN
            outcome = tuple(AxisOutcome(axis=axis, fate=fate) for axis in changed_axes(decision.change))
            self.acts.append(Act(self.name, self._decided_by, seen, memory, _without_bridge(decision), outcome))
        self._wish = decision.change

    def write(self, journal: Journal) -> None:
        """What was collected since the last time."""
        acts, ticks, self.acts, self.ticks = self.acts, self.ticks, [], []
        journal.write(acts, ticks)


def _without_bridge(decision: Decision) -> Decision:
    return replace(decision, plan=replace(decision.plan, bridge=1.0))


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
    policy = cluster.fitted(policy)
    found = SimulatedRecord(name, policy, cluster.startup_s)
    run(policy, load, cluster, first_pods=first_pods, start=start, seed=seed, watch=found.watch)
    ticks = found.ticks
    found.write(journal)
    return ticks
