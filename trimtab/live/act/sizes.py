"""sizes: write new container sizes, to pods in place or to the pod template.

In place: a strategic merge patch of pods/resize, growing pods at once, shrinking pods one at a time. The template stays
as it is: later pods are resized when they are first seen, and an edit of the template's requests replaces our sizes. A
template patch is a rollout and waits for the same blockers as any other. Deferred and Infeasible come back as a pod
condition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from msgspec.structs import replace

from trimtab.core.admit import pinned
from trimtab.core.model import Change, ContainerSize
from trimtab.errors import Refused
from trimtab.live.headroom import rollout_blocker
from trimtab.live.look.cluster import ScaleTarget, WatchedCluster
from trimtab.live.look.memory import ObjectMemory, SizesWritten
from trimtab.live.look.sizes import StuckResize, current_sizes, resizes_in_place, stuck_resizes, written_before
from trimtab.live.look.subject import Subject
from trimtab.policy import Apply
from trimtab.wire.from_kubernetes import (
    FINISHED,
    amounts,
    carries,
    condition,
    factor_on,
    grown,
    manager_of,
    same_size,
    template_sizes,
    written_sizes,
)
from trimtab.wire.kube import Kube, Patch
from trimtab.wire.objects import WirePod, WireWorkload
from trimtab.wire.resources import PODS

Sizes = Mapping[str, ContainerSize]
DEFERRED_S = 300.0


def writable(subject: Subject, change: Change | None) -> Change | None:
    """Drop sizes that are only advice; return None when nothing else is left."""
    vertical = subject.policy.vertical
    if change is None or vertical is None or vertical.apply is not Apply.NEVER:
        return change
    return None if change.replicas is None and change.bridge is None else replace(change, sizes=None)


async def write_sizes(
    writer: Kube,
    cluster: WatchedCluster,
    subject: Subject,
    target: ScaleTarget,
    memory: ObjectMemory,
    changed: dict[str, ContainerSize],
    at: float,
) -> ObjectMemory:
    """Write new sizes in place or to the template, as the policy says."""
    vertical = subject.policy.vertical
    assert vertical is not None and target.workload is not None
    wanted = current_sizes(subject, target, memory) | changed
    if vertical.apply is Apply.RECREATE:
        return await _roll_out(writer, target, memory, wanted, at)
    await resize_pods(writer, cluster.members.pods(target.namespace, target.uid), wanted)
    return replace(memory, sizes=wanted, template=template_sizes(target.workload))


async def keep_sizes(
    writer: Kube, cluster: WatchedCluster, subject: Subject, target: ScaleTarget, memory: ObjectMemory, at: float
) -> ObjectMemory:
    """Resize pods that came since; roll out what stays stuck in place, where the policy allows it."""
    vertical = subject.policy.vertical
    if vertical is None or not resizes_in_place(subject.policy) or target.workload is None:
        return memory
    if pinned(subject.policy.admit, at):  # only the pin is written
        return memory
    wanted = current_sizes(subject, target, memory)
    if not memory.sizes or wanted is not memory.sizes:
        return memory
    pods = cluster.members.pods(target.namespace, target.uid)
    unbridged = [pod for pod in pods if factor_on(pod) == 1.0]  # no rollout for a bridge, which is temporary
    gives_up = gives_up_in_place(vertical.apply, stuck_resizes(unbridged), at)
    blocker = rollout_blocker(cluster, target) if gives_up else None
    if gives_up and blocker is None:
        return await _roll_out(writer, target, memory, wanted, at)
    await resize_pods(writer, pods, wanted)
    if blocker is not None:
        raise Refused(f"what cannot be done in place waits for a rollout: {blocker.detail}", HTTPStatus.CONFLICT)
    return memory


async def _roll_out(
    writer: Kube, target: ScaleTarget, memory: ObjectMemory, wanted: dict[str, ContainerSize], at: float
) -> ObjectMemory:
    """Patch the template's containers: their sizes are in force from now on, unless somebody reverts them.

    Injected sidecars are not in the template, so they are never touched.
    """
    assert target.workload is not None
    was = template_sizes(target.workload)
    containers = [_container_patch(name, size) for name, size in wanted.items() if name in was]
    template = {"spec": {"containers": containers}}
    body = {"metadata": {"resourceVersion": target.version}, "spec": {"template": template}}
    await writer.patch(WireWorkload, target.resource, target.namespace, target.name, body, Patch.STRATEGIC)
    patched = SizesWritten(was=was, sizes=wanted, at=at, written=written_before(was, memory))
    return replace(memory, sizes={}, template={}, patched=patched)


async def resize_pods(writer: Kube, pods: Sequence[WirePod], sizes: Sizes) -> int:
    """Resize pods in place and return how many were written.

    Raise Refused only when nothing else could be written. A pod that changed meanwhile waits for the next tick.
    """
    written, refused, shrunk = 0, None, any(resize_in_progress(pod) for pod in pods)
    for pod in pods:
        wanted = _differing(pod, sizes)
        if not wanted or pod.metadata.deletion_timestamp is not None or pod.status.phase in FINISHED:
            continue
        shrinks = _shrinks(pod, wanted)
        if shrinks and shrunk:
            continue
        try:
            if await _resize_under_bridge(writer, pod, wanted):
                written, shrunk = written + 1, shrunk or shrinks
        except Refused as refusal:
            refused = refusal
    if refused is not None and not written:
        raise refused
    return written


async def resize_all_now(writer: Kube, pods: Sequence[WirePod], sizes: Sizes) -> None:
    """Resize these pods, growing or shrinking, without waiting for a tick between them.

    Nobody looks again, so the last refusal is raised after the others are done.
    """
    refused = None
    for pod in pods:
        try:
            if wanted := _differing(pod, sizes):
                await _resize_under_bridge(writer, pod, wanted)
        except Refused as refusal:
            refused = refusal
    if refused is not None:
        raise refused


def gives_up_in_place(apply: Apply, waiting: Sequence[StuckResize], at: float) -> bool:
    """InPlaceOrRecreate falls back after Infeasible, or after five minutes of Deferred."""
    return apply is Apply.IN_PLACE_OR_RECREATE and any(
        pod.reason == "Infeasible" or at - pod.since >= DEFERRED_S for pod in waiting
    )


async def _resize_under_bridge(writer: Kube, pod: WirePod, wanted: Sizes) -> bool:
    """Write new sizes and keep the pod's bridge on top of them."""
    factor, bridged = factor_on(pod), {container.name for container in carries(pod)}
    sizes = {name: grown(size, factor) if name in bridged else size for name, size in wanted.items()}
    return await patch_pod(writer, pod, sizes, factor)


async def patch_pod(writer: Kube, pod: WirePod, sizes: Sizes, factor: float) -> bool:
    """Write the sizes of one pod, which include a bridge of this factor; False when somebody changed it first."""
    meta = pod.metadata
    containers = [_container_patch(name, size) for name, size in sizes.items()]
    body = {"metadata": {"resourceVersion": meta.resource_version}, "spec": {"containers": containers}}
    try:
        place = (PODS, meta.namespace, meta.name)
        await writer.patch(WirePod, *place, body, Patch.STRATEGIC, "resize", manager_of(factor))
    except Refused as refusal:
        if refusal.status not in (HTTPStatus.CONFLICT, HTTPStatus.NOT_FOUND):
            raise
        return False
    return True


def _differing(pod: WirePod, sizes: Sizes) -> dict[str, ContainerSize]:
    now = written_sizes(pod)
    return {name: size for name, size in sizes.items() if name in now and not same_size(now[name], size)}


def _shrinks(pod: WirePod, wanted: Sizes) -> bool:
    now = {name: size.requests for name, size in written_sizes(pod).items()}
    return any(
        (size.requests.cpu_cores or 0) < (now[name].cpu_cores or 0) - 5e-4
        or (size.requests.memory_bytes or 0) < (now[name].memory_bytes or 0) - 1
        for name, size in wanted.items()
    )


def resize_in_progress(pod: WirePod) -> bool:
    """Whether the kubelet is resizing. A deferred or infeasible resize may wait for ever and holds up no other pod."""
    found = condition(pod.status.conditions, "PodResizeInProgress")
    return found is not None and found.status == "True"


def _container_patch(name: str, size: ContainerSize) -> dict[str, Any]:
    resources = {"requests": amounts(size.requests), "limits": amounts(size.limits)}
    return {"name": name, "resources": {key: value for key, value in resources.items() if value}}
