"""pods: each pod of a workload as it is and as it would be with new sizes; what every blocker adds up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from trimtab.core.limits import first_set
from trimtab.core.model import ContainerSize
from trimtab.live.look.cluster import ScaleTarget, WatchedCluster
from trimtab.policy import RESOURCES, Axis, Size
from trimtab.quantity import describe_memory, format_cpu
from trimtab.wire.from_kubernetes import FINISHED, container_size, size_of
from trimtab.wire.objects import Container, PodSpec

Sizes = Mapping[str, ContainerSize]


class Sized(NamedTuple):
    """One pod: the sizes of its containers, sidecars included, before and after."""

    spec: PodSpec
    before: dict[str, ContainerSize]
    after: dict[str, ContainerSize]

    def growth(self, axis: Axis, limits: bool) -> float:
        """What a quota would have to give for it."""
        return sum(
            (_part(size, axis, limits) or 0.0) - (_part(self.before[name], axis, limits) or 0.0)
            for name, size in self.after.items()
        )

    def request(self, axis: Axis, sizes: Sizes) -> float:
        """What the scheduler looks for: all containers at once, or the largest of those that run before them."""
        running = sum(_part(size, axis, limits=False) or 0.0 for size in sizes.values())
        first = [
            size_of(container.resources.requests)
            for container in self.spec.init_containers
            if not _is_sidecar(container)
        ]
        whole = size_of(self.spec.resources.requests) if self.spec.resources else Size()
        return max([running, whole.amount(axis) or 0.0, *(size.amount(axis) or 0.0 for size in first)])

    def moves(self, axis: Axis) -> bool:
        return any(_both(size, axis) != _both(self.before[name], axis) for name, size in self.after.items())


def sized(cluster: WatchedCluster, target: ScaleTarget, wanted: Sizes) -> list[Sized]:
    """The workload's living pods, which may have sidecars and defaults of others; without any, its template."""
    assert target.workload is not None
    living = [
        pod.spec
        for pod in cluster.members.pods(target.namespace, target.uid)
        if pod.status.phase not in FINISHED and pod.metadata.deletion_timestamp is None
    ]
    return [sized_pod(spec, wanted) for spec in living or [target.workload.spec.template.spec]]


def sized_pod(spec: PodSpec, wanted: Sizes) -> Sized:
    running = [*spec.containers, *(container for container in spec.init_containers if _is_sidecar(container))]
    before = {container.name: container_size(container.resources) for container in running}
    after = {name: _merged(size, wanted[name]) if name in wanted else size for name, size in before.items()}
    return Sized(spec, before, after)


def _merged(now: ContainerSize, wanted: ContainerSize) -> ContainerSize:
    """As a strategic merge leaves it: what is not said stays, such as a limit that a LimitRange has set."""
    return ContainerSize(requests=first_set(wanted.requests, now.requests), limits=first_set(wanted.limits, now.limits))


def _is_sidecar(container: Container) -> bool:
    return container.restart_policy == "Always"


def _part(size: ContainerSize, axis: Axis, limits: bool) -> float | None:
    return (size.limits if limits else size.requests).amount(axis)


def _both(size: ContainerSize, axis: Axis) -> tuple[float | None, float | None]:
    return size.requests.amount(axis), size.limits.amount(axis)


def growth(pods: Sequence[Sized], limits: bool, beside: bool) -> dict[Axis, float]:
    """All pods together, and one of the old ones if it stays `beside` the new; a shrinking one gives nothing back."""
    return {axis: _growth(pods, axis, limits, beside) for axis in RESOURCES}


def _growth(pods: Sequence[Sized], axis: Axis, limits: bool, beside: bool) -> float:
    more = sum(max(0.0, pod.growth(axis, limits)) for pod in pods)
    old = max(sum(_part(size, axis, limits) or 0.0 for size in pod.before.values()) for pod in pods)
    return more + old if more and beside else more


def text(axis: Axis, much: float) -> str:
    return format_cpu(much) if axis is Axis.CPU else describe_memory(much)
