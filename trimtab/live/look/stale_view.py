"""stale_view: veto decreases while what we know of a target may be old or incomplete.

The same holds for the objects and namespaces that tell us what to do: without a current view we would miss a raised
minReplicas or a freeze. While a kind by which others scale has not been readable at all, its objects may be scaling the
target: replicas only go up and sizes stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from trimtab.core.model import Pod, Veto
from trimtab.live.look.cluster import Feed, ScaleTarget, WatchedCluster
from trimtab.live.look.subject import Subject
from trimtab.policy import RESOURCES, Axis, Direction, MetricKind, Policy
from trimtab.wire.resources import STATEFUL_SETS

STALE_VIEW = "StaleView"
BY_POD = (MetricKind.RESOURCE, MetricKind.CONTAINER, MetricKind.PODS)


def stale_view_vetoes(
    cluster: WatchedCluster, subject: Subject, target: ScaleTarget, pods: tuple[Pod, ...]
) -> tuple[Veto, ...]:
    asked_by = cluster.ours.get(subject.resource.kind, cluster.hpas)
    measured: list[Feed[Any] | None] = [cluster.workloads.get(target.resource.kind), cluster.pods]
    why = _not_followed([asked_by, cluster.namespaces, *measured]) or _missing_pods(
        cluster, target, pods, subject.policy
    )
    stale = [Veto(axis=axis, direction=Direction.DOWN, reason=STALE_VIEW, detail=why) for axis in Axis if why]
    return *stale, *_others_unseen(cluster)


def _others_unseen(cluster: WatchedCluster) -> Iterator[Veto]:
    scale, resize = (cluster.scaled_objects, cluster.wpas, cluster.phpas), (cluster.vpas,)
    if not any(feed.unseen for feed in scale + resize):  # nearly always
        return
    for axes, direction, others in (((Axis.REPLICAS,), Direction.DOWN, scale), (RESOURCES, None, resize)):
        if why := _not_followed([feed for feed in others if feed.unseen]):
            yield from (Veto(axis=axis, direction=direction, reason=STALE_VIEW, detail=why) for axis in axes)


def _not_followed(feeds: Sequence[Feed[Any] | None]) -> str:
    """Say which of these feeds cannot be followed right now, and why; "" while all can."""
    troubled = [feed for feed in feeds if feed is not None and feed.trouble]
    return "; ".join(f"{feed.name} are not up to date: {feed.trouble}" for feed in troubled)


def _missing_pods(cluster: WatchedCluster, target: ScaleTarget, pods: tuple[Pod, ...], policy: Policy) -> str:
    """The unknown pods may be the busy ones. Metrics that are not per pod do not need them.

    A StatefulSet counts its pods until they are gone, the other controllers until they are on their way out.
    """
    if not any(signal.metric.kind in BY_POD for signal in policy.signals):
        return ""
    known = sum(1 for pod in pods if not pod.deleting)
    if target.resource is STATEFUL_SETS and known < target.status_replicas:
        known = len(cluster.members.pods(target.namespace, target.uid))
    if known >= target.status_replicas:
        return ""
    return f"{known} of the {target.status_replicas} pods of {target.text} are known"
