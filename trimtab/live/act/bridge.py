"""bridge: more cpu for ready pods for a while, in place. A pod gets it when ready, and gives it back in any state.

Growing and shrinking pods alike are written at once: each pod has its written size under it. One that the API server
refuses holds up no other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from trimtab.core.admit import pinned
from trimtab.core.bridge import in_force
from trimtab.core.model import Change, ContainerSize
from trimtab.errors import Refused
from trimtab.live.act.resize import patch
from trimtab.live.look.bridge import cpu_with, is_ready
from trimtab.live.look.cluster import ScaleTarget, WatchedCluster
from trimtab.live.look.memory import ObjectMemory
from trimtab.live.look.subject import Subject
from trimtab.wire.from_kubernetes import (
    FINISHED,
    carries,
    container_size,
    factor_on,
    same_size,
    template_sizes,
    written_sizes,
)
from trimtab.wire.kube import Kube
from trimtab.wire.objects import WirePod


async def write(
    writer: Kube,
    cluster: WatchedCluster,
    subject: Subject,
    target: ScaleTarget,
    change: Change,
    memory: ObjectMemory,
    at: float,
) -> ObjectMemory:
    """A new factor, or the one in force on pods that became ready since."""
    if (subject.policy.bridge is None and change.bridge is None) or pinned(subject.policy.admit, at):
        return memory  # a bridge on its pods may be another object's
    factor = in_force(subject.policy.bridge, memory.core) if change.bridge is None else change.bridge
    pods = cluster.members.pods(target.namespace, target.uid)
    if factor > 1.0:
        pods = [pod for pod in pods if _is_of_written_size(pod, target, memory)]
    resized = await bring(writer, pods, factor)
    return replace(memory, bridge_resizes=memory.bridge_resizes + resized) if resized else memory


async def bring(writer: Kube, pods: Sequence[WirePod], factor: float) -> int:
    """Pods to this factor; how many were written. Refused only when nothing else could be written either."""
    resized, refused = 0, None
    for pod in pods:
        if not _is_due(pod, factor):
            continue
        try:
            resized += await patch(writer, pod, cpu_with(pod, factor), factor)
        except Refused as refusal:
            refused = refusal
    if refused is not None and not resized:
        raise refused
    return resized


def _is_of_written_size(pod: WirePod, target: ScaleTarget, memory: ObjectMemory) -> bool:
    """What a factor is put on is no more than the template or our sizes say: nothing ever grows upon a bridge.

    Such a pod would be one of an older, larger template, or one whose bridge was not recorded on it.
    """
    template = template_sizes(target.workload) if target.workload else {}
    known = [
        (size, template[name], memory.sizes.get(name)) for name, size in written_sizes(pod).items() if name in template
    ]
    return bool(known) and all(_cpu(size) <= max(_cpu(ours), _cpu(sized)) for size, ours, sized in known)


def _cpu(size: ContainerSize | None) -> float:
    return 0.0 if size is None else size.requests.cpu_cores or 0.0


def _is_due(pod: WirePod, factor: float) -> bool:
    if pod.metadata.deletion_timestamp is not None or pod.status.phase in FINISHED or factor_on(pod) == factor:
        return False
    wanted = cpu_with(pod, factor)
    differs = any(
        not same_size(container_size(container.resources), wanted[container.name]) for container in carries(pod)
    )
    return differs and (factor == 1.0 or is_ready(pod))


def strays(cluster: WatchedCluster, served: Iterable[ScaleTarget], doubtful: set[str]) -> list[WirePod]:
    """Pods with a bridge that no object of ours asks for any more.

    `served` are the workloads that somebody speaks for; in a doubtful namespace an object could not be read, and the
    workload may be its.
    """
    if not cluster.members.bridged:
        return []
    kept = {pod.metadata.uid for target in served for pod in cluster.members.pods(target.namespace, target.uid)}
    return [
        pod
        for pod in cluster.members.bridged.values()
        if pod.metadata.uid not in kept
        and pod.metadata.namespace not in doubtful
        and cluster.enabled(pod.metadata.namespace)
    ]
