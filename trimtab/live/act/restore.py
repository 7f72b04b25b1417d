"""restore: put back what the operator left in force: raised floors of predictive HPAs, sizes of pods, bridges.

A person runs this, after the operator or while it is frozen. Replicas stay as they are.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from trimtab.core.model import ContainerSize
from trimtab.errors import Refused, TrimtabError
from trimtab.kinds import Scaler, read
from trimtab.live.act import floor as act_floor
from trimtab.live.act.bridge import set_bridge
from trimtab.live.act.safe_sizes import safe_sizes
from trimtab.live.act.sizes import resize_all_now, resize_in_progress
from trimtab.live.look import floor, memory
from trimtab.live.look.cluster import OURS, ScaleTarget, WatchedCluster
from trimtab.live.look.memory import ObjectMemory
from trimtab.live.look.subject import manifest
from trimtab.policy import Size
from trimtab.quantity import describe_memory, format_cpu
from trimtab.wire.from_kubernetes import factor_on, has_sizes, template_sizes
from trimtab.wire.kube import Kube
from trimtab.wire.objects import Custom, PodMetrics, WirePod
from trimtab.wire.resources import HPAS, POD_METRICS, PODS, REPLICA_SETS, Resource

RESIZE_LOOKS = 10  # a second apart: a kubelet takes a few


class Restored(NamedTuple):
    """One thing that was in force, and why it could not be put back, where it could not.

    `stays`: it is left as it is, because the pods need it.
    """

    text: str
    trouble: str = ""
    stays: bool = False


async def restore_all(kube: Kube, namespace: str, dry_run: bool) -> AsyncIterator[Restored]:
    """Everything that is put back, or would be; what one of them refuses is no other's business."""
    async for text, put_back in _in_force(kube, namespace):
        if put_back is None:
            yield Restored(text, stays=True)
        else:
            yield Restored(text, "" if dry_run else await _trouble_of(put_back))


async def _trouble_of(put_back: Callable[[], Awaitable[object]]) -> str:
    try:
        await put_back()
    except TrimtabError as error:
        return str(error)
    return ""


async def _in_force(kube: Kube, namespace: str) -> AsyncIterator[tuple[str, Callable[[], Awaitable[object]] | None]]:
    """What is in force, in words, and how it is put back; None: it stays."""
    for hpa in (await kube.list(Custom, HPAS, namespace)).items:
        if floor.is_ours(hpa):
            known, before = floor.read(hpa), hpa.spec.get("minReplicas", 1)
            what = f"minReplicas {before} -> {known.original}" if known.ours is not None else "without our note"
            text = f"hpa {hpa.metadata.namespace}/{hpa.metadata.name}: {what}"
            yield text, partial(act_floor.restore, kube, hpa)
    async for target, pods, past in _resized(kube, namespace):
        assert target.workload is not None
        usage = await _usage(kube, target.namespace)
        sizes, kept = safe_sizes(pods, template_sizes(target.workload), past.oom_kills, usage)
        changed = [pod for pod in pods if not has_sizes(pod, sizes[pod.metadata.name])]
        if changed:
            text = f"{target.text}: {len(changed)} pods back to the size of their template"
            yield text, partial(_one_by_one, kube, changed, sizes)
        for each in kept:
            yield f"{target.text}: {each.text}", None
    async for resource, found in _sized(kube, namespace):
        if (patched := memory.read(found.status, 0.0, 0).patched) is not None and patched.written:
            was = ", ".join(f"{name} {size_text(size)}" for name, size in sorted(patched.written.items()))
            named = f"{resource.kind} {found.metadata.namespace}/{found.metadata.name}"
            yield f"{named}: its target's template has our sizes; apply your own manifest ({was})", None
    listed = (await kube.list(WirePod, PODS, namespace)).items  # after the sizes: each pod is guarded by its version
    for pod in listed:
        if factor_on(pod) > 1.0:
            text = f"pod {pod.metadata.namespace}/{pod.metadata.name}: back from {factor_on(pod):g} times its cpu"
            yield text, partial(set_bridge, kube, [pod], 1.0)


def size_text(size: Size) -> str:
    """ "cpu 500m, memory 256Mi"."""
    cpu = [] if size.cpu_cores is None else [f"cpu {format_cpu(size.cpu_cores)}"]
    return ", ".join(cpu + ([] if size.memory_bytes is None else [f"memory {describe_memory(size.memory_bytes)}"]))


async def _usage(kube: Kube, namespace: str) -> dict[str, PodMetrics]:
    """What pods use now, by name; nothing where nobody measures it."""
    try:
        return {found.metadata.name: found for found in (await kube.list(PodMetrics, POD_METRICS, namespace)).items}
    except TrimtabError:
        return {}


async def _one_by_one(kube: Kube, pods: Sequence[WirePod], sizes: Mapping[str, Mapping[str, ContainerSize]]) -> None:
    """At the pace of the operator: the next pod when the kubelet is done with this one, or keeps it waiting."""
    refused: Refused | None = None
    for pod in pods:
        try:
            await resize_all_now(kube, [pod], sizes[pod.metadata.name])
            await _until_resized(kube, pod)
        except Refused as refusal:
            refused = refusal
    if refused is not None:
        raise refused


async def _until_resized(kube: Kube, pod: WirePod) -> None:
    for _ in range(RESIZE_LOOKS):
        now = await kube.get(WirePod, PODS, pod.metadata.namespace, pod.metadata.name)
        if not resize_in_progress(now):
            return
        await asyncio.sleep(1.0)


async def _resized(kube: Kube, namespace: str) -> AsyncIterator[tuple[ScaleTarget, list[WirePod], ObjectMemory]]:
    """Targets of ours with pods that have another size than their template, and what is remembered of them."""
    sized = [found async for found in _sized(kube, namespace)]
    if not sized:
        return
    cluster = await _listed(kube, namespace)
    for resource, found in sized:
        try:
            target = await _target(cluster, resource, found)
        except TrimtabError:  # it cannot be read, or its target is gone: nothing is in force
            continue
        sizes = template_sizes(target.workload) if target.workload else {}
        pods = [pod for pod in cluster.members.pods(target.namespace, target.uid) if not has_sizes(pod, sizes)]
        if pods:
            yield target, pods, memory.read(found.status, 0.0, 0)


async def _sized(kube: Kube, namespace: str) -> AsyncIterator[tuple[Resource, Custom]]:
    """Objects that remember sizes in force, on pods or in a template."""
    for api_version, kind in OURS:
        try:
            resource = await kube.resource(api_version, kind)
        except Refused:  # this definition is not installed
            continue
        for found in (await kube.list(Custom, resource, namespace)).items:
            past = memory.read(found.status, 0.0, 0)
            if past.sizes or past.patched:
                yield resource, found


async def _listed(kube: Kube, namespace: str) -> WatchedCluster:
    """Pods and who owns them, as they are now."""
    cluster = WatchedCluster(kube, namespace)
    for workload in (await kube.list(cluster.workloads["ReplicaSet"].kind, REPLICA_SETS, namespace)).items:
        cluster.workloads["ReplicaSet"].store.put(workload)
    for pod in (await kube.list(WirePod, PODS, namespace)).items:
        cluster.pods.store.put(pod)
    return cluster


async def _target(cluster: WatchedCluster, resource: Resource, found: Custom) -> ScaleTarget:
    kind = read(manifest(resource, found))
    assert isinstance(kind, Scaler)
    ref, namespace = kind.target, found.metadata.namespace
    feed = cluster.workloads.get(ref.kind)
    if feed is not None and feed.resource is not None:
        feed.store.put(await cluster.kube.get(feed.kind, feed.resource, namespace, ref.name))
    return await cluster.target(namespace, ref.api_version, ref.kind, ref.name)
