"""bridge: which pods have more cpu than written, for a while, and which containers cannot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from trimtab.core.model import ContainerSize
from trimtab.policy import Size
from trimtab.wire.from_kubernetes import FINISHED, carries, condition, factor_on, grown, written_sizes
from trimtab.wire.objects import WirePod


class BridgeInForce(NamedTuple):
    """What the pods of one workload have of it."""

    pods: int = 0  # that have it; not those whose resize is put off or ruled out
    left_out: tuple[str, ...] = ()  # containers that a resize would restart, or that ask for no cpu


NO_BRIDGE = BridgeInForce()


def in_force(pods: Sequence[WirePod]) -> BridgeInForce:
    living = [pod for pod in pods if pod.status.phase not in FINISHED and pod.metadata.deletion_timestamp is None]
    bridged = sum(1 for pod in living if factor_on(pod) > 1.0 and not _waits(pod))
    left_out = {container.name for pod in living for container in pod.spec.containers if container not in carries(pod)}
    return BridgeInForce(bridged, tuple(sorted(left_out)))


def is_ready(pod: WirePod) -> bool:
    found = condition(pod.status.conditions, "Ready")
    return found is not None and found.status == "True" and pod.metadata.deletion_timestamp is None


def cpu_with(pod: WirePod, factor: float) -> dict[str, ContainerSize]:
    """The cpu of each container that grows; never its memory."""
    sizes = written_sizes(pod)
    return {container.name: _cpu(grown(sizes[container.name], factor)) for container in carries(pod)}


def _cpu(size: ContainerSize) -> ContainerSize:
    return ContainerSize(requests=Size(cpu_cores=size.requests.cpu_cores), limits=Size(cpu_cores=size.limits.cpu_cores))


def _waits(pod: WirePod) -> bool:
    found = condition(pod.status.conditions, "PodResizePending")
    return found is not None and found.status == "True"
