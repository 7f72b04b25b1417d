"""A workload under constant load in closed loop with decide(): what it uses follows its replicas and sizes."""

from __future__ import annotations

from typing import NamedTuple

from tests.core.build import CPU, NOW
from trimtab.core.decide import decide
from trimtab.core.model import (
    ContainerSize,
    Decision,
    Estimate,
    Memory,
    Observation,
    Pod,
    PodSamples,
    UsageEstimates,
)
from trimtab.core.remember import first_sight, remember
from trimtab.policy import Policy, Size, Utilization

TICK_S = 60.0
DAY_S = 86400.0


class Load(NamedTuple):
    """What the world needs: work shared by all replicas, and a base that each of them has. Cores and bytes."""

    cpu: float
    memory: float = 1e9
    base_cpu: float = 0.0
    base_memory: float = 1e8

    def each(self, replicas: int) -> Size:
        return Size(
            cpu_cores=self.base_cpu + self.cpu / replicas, memory_bytes=self.base_memory + self.memory / replicas
        )


class State(NamedTuple):
    replicas: int
    size: ContainerSize
    memory: Memory

    @property
    def shape(self) -> tuple[int, ContainerSize]:
        return self.replicas, self.size

    def total(self) -> Size:
        requests = self.size.requests
        assert requests.cpu_cores is not None and requests.memory_bytes is not None
        return Size(cpu_cores=requests.cpu_cores * self.replicas, memory_bytes=requests.memory_bytes * self.replicas)


def start(replicas: int, cpu_cores: float, memory_bytes: float) -> State:
    size = ContainerSize(requests=Size(cpu_cores=cpu_cores, memory_bytes=memory_bytes))
    return State(replicas, size, first_sight(NOW, replicas))


def look(state: State, load: Load, at: float, margin: float = 1.15) -> Observation:
    """Vertical estimates follow at once, which is the worst they can do."""
    each, requests = load.each(state.replicas), state.size.requests
    assert each.cpu_cores is not None and each.memory_bytes is not None
    pods = tuple(
        Pod(
            name=f"p{i}",
            started_at=NOW - DAY_S,
            ready_since=NOW - DAY_S,
            requests=requests,
            containers={"app": requests},
        )
        for i in range(state.replicas)
    )
    target = Size(cpu_cores=each.cpu_cores * margin, memory_bytes=each.memory_bytes * margin)
    estimate = Estimate(target=target, observed_s=10 * DAY_S, memory_peak_bytes=each.memory_bytes)
    return Observation(
        at=at,
        spec_replicas=state.replicas,
        status_replicas=state.replicas,
        pods=pods,
        sizes={"app": state.size},
        samples=(PodSamples(values={pod.name: each.cpu_cores for pod in pods}, at=at),),
        usage=UsageEstimates(made_at=at, expires_at=at + 600, containers={"app": estimate}),
    )


def tick(policy: Policy, state: State, load: Load, at: float) -> tuple[State, Decision]:
    decision = decide(policy, look(state, load, at), state.memory)
    memory = decision.memory
    if decision.change is not None:
        memory = remember(policy, memory, decision.change, at)
    return State(decision.plan.replicas, decision.plan.sizes["app"], memory), decision


def settled(policy: Policy, state: State, load: Load, ticks: int = 120) -> list[tuple[int, ContainerSize]]:
    """The shapes of the workload, tick by tick."""
    shapes = []
    for index in range(ticks):
        state, _ = tick(policy, state, load, NOW + TICK_S * index)
        shapes.append(state.shape)
    return shapes


def cpu_percent(percent: int) -> Utilization:
    return Utilization(metric=CPU, percent=percent)
