"""requests: what a pod asks for, as Kubernetes' replica calculator adds it up.

A named container alone; else the pod's own request where it is set; else the sum over its containers and its
restartable init containers (sidecars). One missing request makes the whole sum unknown, never smaller.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from trimtab.core.limits import first_set
from trimtab.core.model import Missing, Observation, Pod, Reason
from trimtab.errors import InvalidInput
from trimtab.policy import Policy, Record, Signal, Size

USUAL_TARGET = 0.7  # of what a pod carries: what a target for each pod is taken to mean


class ContainerRequest(Record, frozen=True):
    """One container of a pod's spec; None means not set."""

    name: str
    request: Size = Size()
    cpu_limit: float | None = None
    init: bool = False
    restartable: bool = False


def pod_request(containers: Sequence[ContainerRequest], pod_level: Size | None = None, container: str = "") -> Size:
    """The request of the pod, or of one named container; None where a container that counts has none."""
    counted = [candidate for candidate in containers if counts(candidate) and container in ("", candidate.name)]
    if container:
        if not counted:
            names = ", ".join(candidate.name for candidate in containers if counts(candidate)) or "none"
            raise InvalidInput("container", container, f"not found in the pod; it has: {names}")
        return counted[0].request
    total = Size(
        cpu_cores=_sum([candidate.request.cpu_cores for candidate in counted]),
        memory_bytes=_sum([candidate.request.memory_bytes for candidate in counted]),
    )
    return first_set(pod_level or Size(), total)


def with_requests(
    pod: Pod, containers: Sequence[ContainerRequest], pod_level: Size | None = None, cpu_limit: float | None = None
) -> Pod:
    """The pod with its requests and CPU limits, those of each container, and whom to blame where a request is missing.

    `pod_level` and `cpu_limit` are of the pod as a whole.
    """
    total = pod_request(containers, pod_level)
    counted = [candidate for candidate in containers if counts(candidate)]
    limits = {candidate.name: candidate.cpu_limit for candidate in counted} | {"": cpu_limit}
    return replace(
        pod,
        requests=total,
        containers={candidate.name: candidate.request for candidate in counted},
        cpu_limits={name: limit for name, limit in limits.items() if limit},
        no_request=_culprit(containers, total),
    )


def scale_point(policy: Policy, signal: Signal, seen: Observation) -> float | None:
    """The request that a percentage was written for. Where vertical scaling alone moves requests the target moves with
    them, so that the usage at which a pod is added stays; a blend looks after that itself.
    """
    if policy.vertical is None or policy.blend is not None or not seen.written_for:
        return None
    axis, container = signal.metric.axis, signal.metric.container
    sizes = [size for name, size in seen.written_for.items() if container in ("", name)]
    return sum(size.amount(axis) or 0.0 for size in sizes) or None


def mean_request(pods: Sequence[Pod], signal: Signal) -> float | Missing:
    """The mean request of the pods that are not on their way out, in the unit of the signal's resource."""
    axis, container = signal.metric.axis, signal.metric.container
    sizes = [pod.containers.get(container) if container else pod.requests for pod in pods if not pod.deleting]
    amounts = [size.amount(axis) for size in sizes if size is not None]
    known = [amount for amount in amounts if amount]
    return mean(known) if known else Missing(reason=Reason.NO_REQUEST)


def mean(amounts: Sequence[float]) -> float:
    """Of amounts that are all the same, exactly that one."""
    return amounts[0] if min(amounts) == max(amounts) else sum(amounts) / len(amounts)


def counts(container: ContainerRequest) -> bool:
    """Init containers are gone when the pod serves, unless they restart for ever."""
    return not container.init or container.restartable


def _culprit(containers: Sequence[ContainerRequest], total: Size) -> str:
    for candidate in filter(counts, containers):
        lacks_cpu = total.cpu_cores is None and candidate.request.cpu_cores is None
        if lacks_cpu or (total.memory_bytes is None and candidate.request.memory_bytes is None):
            return candidate.name
    return ""


def _sum(amounts: list[float | None]) -> float | None:
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if known and len(known) == len(amounts) else None
