"""restore: put back what the operator left in force: raised floors of predictive HPAs, sizes of pods, bridges.

A person runs this, after the operator or while it is frozen. Replicas stay as they are.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import NamedTuple

from trimtab.errors import Refused, TrimtabError
from trimtab.kinds import Scaler, read
from trimtab.live.act import floor as act_floor
from trimtab.live.act.bridge import set_bridge
from trimtab.live.act.sizes import resize_all_now
from trimtab.live.look import floor, memory
from trimtab.live.look.cluster import OURS, ScaleTarget, WatchedCluster
from trimtab.live.look.subject import manifest
from trimtab.wire.from_kubernetes import factor_on, has_sizes, template_sizes
from trimtab.wire.kube import Kube
from trimtab.wire.objects import Custom, WirePod
from trimtab.wire.resources import HPAS, PODS, REPLICA_SETS, Resource


class Restored(NamedTuple):
    """One thing that was in force, and why it could not be put back, where it could not."""

    text: str
    trouble: str = ""


async def restore_all(kube: Kube, namespace: str, dry_run: bool) -> AsyncIterator[Restored]:
    """Everything that is put back, or would be; what one of them refuses is no other's business."""
    async for text, put_back in _in_force(kube, namespace):
        yield Restored(text, "" if dry_run else await _trouble_of(put_back))


async def _trouble_of(put_back: Callable[[], Awaitable[object]]) -> str:
    try:
        await put_back()
    except TrimtabError as error:
        return str(error)
    return ""


async def _in_force(kube: Kube, namespace: str) -> AsyncIterator[tuple[str, Callable[[], Awaitable[object]]]]:
    """What is in force, in words, and how it is put back."""
    for hpa in (await kube.list(Custom, HPAS, namespace)).items:
        if floor.is_ours(hpa):
            known, before = floor.read(hpa), hpa.spec.get("minReplicas", 1)
            what = f"minReplicas {before} -> {known.original}" if known.ours is not None else "without our note"
            text = f"hpa {hpa.metadata.namespace}/{hpa.metadata.name}: {what}"
            yield text, partial(act_floor.restore, kube, hpa)
    async for target, pods in _resized(kube, namespace):
        assert target.workload is not None
        text = f"{target.text}: {len(pods)} pods back to the size of their template"
        yield text, partial(resize_all_now, kube, pods, template_sizes(target.workload))
    listed = (await kube.list(WirePod, PODS, namespace)).items  # after the sizes: each pod is guarded by its version
    for pod in listed:
        if factor_on(pod) > 1.0:
            text = f"pod {pod.metadata.namespace}/{pod.metadata.name}: back from {factor_on(pod):g} times its cpu"
            yield text, partial(set_bridge, kube, [pod], 1.0)


async def _resized(kube: Kube, namespace: str) -> AsyncIterator[tuple[ScaleTarget, list[WirePod]]]:
    """Targets of ours with pods that have another size than their template."""
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
            yield target, pods


async def _sized(kube: Kube, namespace: str) -> AsyncIterator[tuple[Resource, Custom]]:
    """Objects that remember sizes in force."""
    for api_version, kind in OURS:
        try:
            resource = await kube.resource(api_version, kind)
        except Refused:  # this definition is not installed
            continue
        for found in (await kube.list(Custom, resource, namespace)).items:
            if memory.read(found.status, 0.0, 0).sizes:
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
