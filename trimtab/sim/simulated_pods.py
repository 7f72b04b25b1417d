"""The pods of one simulated workload: they start, become ready, serve, run out of memory, are resized and removed.

A pod is billed from its first step and serves from the step in `ready_at`. Removal takes those that are last to be
ready, the youngest of them first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from trimtab.core.model import ContainerSize, Pod
from trimtab.policy import Size

CONTAINER = "main"


class SimPod:
    """One pod; `cores` and `memory_bytes` are its request and limit."""

    __slots__ = ("cores", "created", "facts", "memory_bytes", "name", "ready", "ready_at", "restarted")

    def __init__(self, name: str, created: int, ready_at: int, cores: float, memory_bytes: float) -> None:
        self.name, self.created, self.ready_at = name, created, ready_at
        self.cores, self.memory_bytes = cores, memory_bytes
        self.ready, self.restarted = False, created
        self.facts: Pod | None = None


class Pods:
    """All pods of the workload, of one container, which answers to any of its `names`. `startup_steps` draws how long
    the next pod takes."""

    def __init__(
        self,
        count: int,
        cores: float,
        memory_bytes: float,
        startup_steps: Callable[[], int],
        took_steps: int = 0,
        names: Collection[str] = (CONTAINER,),
    ) -> None:
        self._startup_steps, self._made, self._containers = startup_steps, 0, names
        self.cores, self.memory_bytes = cores, memory_bytes  # of the template
        self.cpu_limit: float | None = None  # as a share of the request
        self.all: list[SimPod] = []
        self.ready, self.ready_cores = 0, 0.0
        self._next_ready = 0
        self._facts: tuple[Pod, ...] | None = None
        self._names: list[str] | None = None
        for _ in range(count):
            self._add(0, 0)
            self.all[-1].created = -took_steps  # they were started before anybody looked
        self.tick(0)

    def _add(self, step: int, ready_at: int) -> None:
        self._made += 1
        self.all.append(SimPod(f"pod-{self._made}", step, ready_at, self.cores, self.memory_bytes))
        self._next_ready = min(self._next_ready, ready_at)
        self._forget()

    def tick(self, step: int) -> None:
        """Make ready whose time has come."""
        if step < self._next_ready:
            return
        for pod in self.all:
            if not pod.ready and pod.ready_at <= step:
                pod.ready, pod.facts = True, None
        self._count()

    def scale(self, count: int, step: int) -> None:
        """From `step` on there are `count` pods."""
        for _ in range(count - len(self.all)):
            self._add(step, step + self._startup_steps())
        if count < len(self.all):
            oldest_first = sorted(self.all, key=lambda pod: (pod.ready_at, pod.created))
            gone = set(map(id, oldest_first[count:]))
            self.all = [pod for pod in self.all if id(pod) not in gone]
            self._count()

    def lose(self, share: float, step: int) -> int:
        """A node is gone: its pods come back as new ones; how many there were."""
        lost = round(share * len(self.all))
        self.all = self.all[lost:]
        for _ in range(lost):
            self._add(step, step + self._startup_steps())
        self._count()
        return lost

    def restart(self, pod: SimPod, step: int) -> None:
        """The container was killed: it starts again in its pod."""
        pod.ready, pod.facts, pod.restarted = False, None, step
        pod.ready_at = step + self._startup_steps()
        self._count()

    def resize(self, pod: SimPod, cores: float, memory_bytes: float) -> None:
        pod.cores, pod.memory_bytes, pod.facts = cores, memory_bytes, None
        self._count()

    def _count(self) -> None:
        self.ready = sum(pod.ready for pod in self.all)
        self.ready_cores = sum(pod.cores for pod in self.all if pod.ready)
        self._next_ready = min((pod.ready_at for pod in self.all if not pod.ready), default=1 << 60)
        self._forget()

    def _forget(self) -> None:
        self._facts, self._names = None, None

    def ready_names(self) -> list[str]:
        if self._names is None:
            self._names = [pod.name for pod in self.all if pod.ready]
        return self._names

    def facts(self, start: float, step_s: float) -> tuple[Pod, ...]:
        """The pods as the cluster shows them; the same tuple until something changes."""
        if self._facts is None:
            self._facts = tuple(self._fact(pod, start, step_s) for pod in self.all)
        return self._facts

    def _fact(self, pod: SimPod, start: float, step_s: float) -> Pod:
        if pod.facts is None:
            size = Size(cpu_cores=pod.cores, memory_bytes=pod.memory_bytes)
            pod.facts = Pod(
                name=pod.name,
                ready=pod.ready,
                created_at=start + pod.created * step_s,
                started_at=start + pod.restarted * step_s,
                ready_since=start + (pod.ready_at if pod.ready else pod.restarted) * step_s,
                requests=size,
                containers=dict.fromkeys(self._containers, size),
                cpu_limits=dict.fromkeys(("", *self._containers), pod.cores * self.cpu_limit) if self.cpu_limit else {},
            )
        return pod.facts

    def sizes(self, limited: bool) -> dict[str, ContainerSize]:
        """The size of the template: limits equal requests, or there are none."""
        size = Size(cpu_cores=self.cores, memory_bytes=self.memory_bytes)
        return {CONTAINER: ContainerSize(requests=size, limits=size if limited else Size())}
