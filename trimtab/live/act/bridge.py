"""bridge: give ready pods more CPU in place for a while, and take it back.

Growing and shrinking pods are written at once: each pod keeps its written size under the bridge. A pod that the API
server refuses holds up no other. Bridges that no object asks for any more are taken back.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Sequence

from msgspec.structs import replace

from trimtab.core.admit import pinned, writes
from trimtab.core.bridge import in_force
from trimtab.core.model import Change, ContainerSize
from trimtab.errors import Refused, TrimtabError
from trimtab.live.act.sizes import patch_pod
from trimtab.live.look.cluster import ScaleTarget, WatchedCluster
from trimtab.live.look.memory import ObjectMemory
from trimtab.live.look.sizes import cpu_with, is_ready
from trimtab.live.look.subject import Subject
from trimtab.live.object_tick import ObjectTick
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
from trimtab.wire.objects import Custom, WirePod

log = logging.getLogger(__name__)


async def write_bridge(
    writer: Kube,
    cluster: WatchedCluster,
    subject: Subject,
    target: ScaleTarget,
    change: Change,
    memory: ObjectMemory,
    at: float,
) -> ObjectMemory:
    """Write a new factor, or the one in force on pods that became ready since."""
    if (subject.policy.bridge is None and change.bridge is None) or pinned(subject.policy.admit, at):
        return memory  # a bridge on its pods may be another object's
    factor = in_force(subject.policy.bridge, memory.core) if change.bridge is None else change.bridge
    pods = cluster.members.pods(target.namespace, target.uid)
    if factor > 1.0:
        pods = [pod for pod in pods if _is_of_written_size(pod, target, memory)]
    resized = await set_bridge(writer, pods, factor)
    return replace(memory, bridge_resizes=memory.bridge_resizes + resized) if resized else memory


async def set_bridge(writer: Kube, pods: Sequence[WirePod], factor: float) -> int:
    """Bring pods to this factor and return how many were written; raise Refused only when none could be."""
    resized, refused = 0, None
    for pod in pods:
        if not _is_due(pod, factor):
            continue
        try:
            resized += await patch_pod(writer, pod, cpu_with(pod, factor), factor)
        except Refused as refusal:
            refused = refusal
    if refused is not None and not resized:
        raise refused
    return resized


def _is_of_written_size(pod: WirePod, target: ScaleTarget, memory: ObjectMemory) -> bool:
    """Whether the pod is no larger than the template or our sizes, so that no bridge grows on top of a bridge.

    A larger pod has an older template, or a bridge that was not recorded on it.
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


async def take_back_bridges(
    writer: Kube, cluster: WatchedCluster, objects: Sequence[Custom], looked: Sequence[ObjectTick], within_s: float
) -> None:
    """Take back the bridges of pods whose object is gone. What is refused or slow is tried again in the next tick.

    `looked` are the objects read in this tick. In a namespace with an object that could not be read, nothing is taken
    back, because the pods may be that object's.
    """
    if cluster.frozen or any(not feed.settled or feed.trouble for feed in cluster.ours.values()):
        return
    known = {tick.subject.uid for tick in looked}
    doubtful = {found.metadata.namespace for found in objects if found.metadata.uid not in known}
    targets = [tick.target for tick in looked if _keeps_bridge(tick)]
    kept = {pod.metadata.uid for target in targets for pod in cluster.members.pods(target.namespace, target.uid)}
    strays: dict[str, list[WirePod]] = defaultdict(list)
    for pod in cluster.members.bridged.values():
        namespace = pod.metadata.namespace
        if pod.metadata.uid not in kept and namespace not in doubtful and cluster.enabled(namespace):
            strays[namespace].append(pod)
    await asyncio.gather(*(_take_back(writer, namespace, pods, within_s) for namespace, pods in strays.items()))


async def _take_back(writer: Kube, namespace: str, pods: Sequence[WirePod], within_s: float) -> None:
    log.info("%s: %d pods back to their written cpu: their object is gone", namespace, len(pods))
    try:
        async with asyncio.timeout(within_s):
            await set_bridge(writer, pods, 1.0)
    except (TrimtabError, TimeoutError) as trouble:
        log.warning("%s: a bridge could not be taken back: %s", namespace, str(trouble) or "no answer in time")


def _keeps_bridge(tick: ObjectTick) -> bool:
    """Whether the object asks for a bridge, or is told to leave everything as it is."""
    policy = tick.subject.policy
    return policy.bridge is not None or not writes(policy.admit, tick.seen.at)
