"""take_back: floors and bridges of ours that no object asks for any more."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from trimtab.core.admit import writes
from trimtab.errors import TrimtabError
from trimtab.live.act.bridge import bring, strays
from trimtab.live.look import floor
from trimtab.live.look.cluster import WatchedCluster
from trimtab.live.object_tick import ObjectTick
from trimtab.wire.kube import Kube
from trimtab.wire.objects import Custom, WirePod
from trimtab.wire.resources import HPAS, Resource

log = logging.getLogger(__name__)


def needed(cluster: WatchedCluster) -> bool:
    """Anything of ours is there that somebody may not ask for any more."""
    return bool(cluster.members.bridged or floors(cluster))


def floors(cluster: WatchedCluster) -> list[tuple[Resource, Custom]]:
    """HPAs with a floor of ours that do not ask for one any more."""
    return [
        (HPAS, hpa)
        for hpa in cluster.hpas.store
        if floor.is_ours(hpa) and not floor.is_predictive(hpa) and cluster.enabled(hpa.metadata.namespace)
    ]


async def bridges(
    writer: Kube, cluster: WatchedCluster, objects: Sequence[Custom], looked: Sequence[ObjectTick], within_s: float
) -> None:
    """Of workloads whose object is gone; what somebody refuses, or is slow, is tried again in the next tick."""
    if cluster.frozen or any(not feed.settled or feed.trouble for feed in cluster.ours.values()):
        return
    served = {tick.subject.uid for tick in looked}
    doubtful = {found.metadata.namespace for found in objects if found.metadata.uid not in served}
    stray = strays(cluster, [tick.target for tick in looked if _speaks_for_bridge(tick)], doubtful)
    by_namespace: dict[str, list[WirePod]] = {}
    for pod in stray:
        by_namespace.setdefault(pod.metadata.namespace, []).append(pod)
    await asyncio.gather(*(_take_back(writer, *each, within_s) for each in by_namespace.items()))


async def _take_back(writer: Kube, namespace: str, pods: Sequence[WirePod], within_s: float) -> None:
    log.info("%s: %d pods back to their written cpu: their object is gone", namespace, len(pods))
    try:
        async with asyncio.timeout(within_s):
            await bring(writer, pods, 1.0)
    except (TrimtabError, TimeoutError) as trouble:
        log.warning("%s: a bridge could not be taken back: %s", namespace, str(trouble) or "no answer in time")


def _speaks_for_bridge(tick: ObjectTick) -> bool:
    """It asks for one; or it is told to leave everything as it is."""
    policy = tick.subject.policy
    return policy.bridge is not None or not writes(policy.admit, tick.seen.at)
