"""headroom: what stands in the way of new sizes; a veto for each, with the object, what it has, the need, the fix.

Before growing: quotas, LimitRanges, the largest node. Before a new template also its rollout and the budgets for
disruption. One module per blocker. Vetoes go into the observation, so that explain and replay know them.
"""

from __future__ import annotations

from functools import cached_property

from msgspec.structs import replace

from trimtab.core.model import Change, ContainerSize, Veto
from trimtab.live.headroom import limit_range, quota, rollout
from trimtab.live.headroom.limit_range import EXCEEDS_LIMIT_RANGE
from trimtab.live.headroom.nodes import EXCEEDS_NODE, Nodes
from trimtab.live.headroom.pods import Sized, growth, sized, sized_pod
from trimtab.live.headroom.quota import EXCEEDS_QUOTA
from trimtab.live.look.bridge import cpu_with, is_ready
from trimtab.live.look.cluster import ScaleTarget, WatchedCluster
from trimtab.live.look.subject import Subject
from trimtab.policy import RESOURCES, Apply, Axis

REASONS = (
    EXCEEDS_QUOTA,
    EXCEEDS_LIMIT_RANGE,
    EXCEEDS_NODE,
    "RolloutUnderWay",
    "RolloutFailed",
    "DisruptionForbidden",
)


class Headroom:
    """One tick's look at what may be in the way; nodes are added up only when somebody wants to grow."""

    def __init__(self, cluster: WatchedCluster) -> None:
        self.cluster = cluster

    @cached_property
    def nodes(self) -> Nodes:
        return Nodes(self.cluster.nodes.store, self.cluster.pods.store)

    def vetoes(
        self, subject: Subject, target: ScaleTarget, sizes: dict[str, ContainerSize], change: Change | None
    ) -> tuple[Veto, ...]:
        """Against the sizes of a change, where they would be written; `sizes` are those in force."""
        vertical = subject.policy.vertical
        if change is None or not change.sizes or vertical is None or vertical.apply is Apply.NEVER:
            return ()
        if target.workload is None:
            return ()
        recreates = vertical.apply is Apply.RECREATE
        blocker = rollout.blocker(self.cluster, target) if recreates else None
        if blocker is not None:
            return tuple(Veto(axis=axis, direction=None, **blocker._asdict()) for axis in RESOURCES)
        pods = sized(self.cluster, target, sizes | change.sizes)
        return self._against(target, pods, beside=recreates and rollout.surges(target))

    def bridge_vetoes(self, target: ScaleTarget, change: Change | None, now: float) -> tuple[Veto, ...]:
        """Against a larger factor for ready pods; `now` is the one in force."""
        if change is None or change.bridge is None or change.bridge <= now or target.workload is None:
            return ()
        ready = [pod for pod in self.cluster.members.pods(target.namespace, target.uid) if is_ready(pod)]
        pods = [sized_pod(pod.spec, cpu_with(pod, change.bridge)) for pod in ready]
        found = self._against(target, pods, beside=False) if pods else ()
        return tuple(replace(veto, axis=Axis.BRIDGE) for veto in found if veto.axis is Axis.CPU)

    def _against(self, target: ScaleTarget, pods: list[Sized], beside: bool) -> tuple[Veto, ...]:
        assert target.workload is not None
        quotas = [found for found in self.cluster.quotas.store if found.metadata.namespace == target.namespace]
        ranges = [found for found in self.cluster.limit_ranges.store if found.metadata.namespace == target.namespace]
        needs = {limits: growth(pods, limits, beside) for limits in (quota.REQUESTS, quota.LIMITS)}
        return (
            *quota.vetoes(quotas, needs),
            *limit_range.vetoes(ranges, pods),
            *self.nodes.vetoes(target.workload.spec.template.spec, pods),
        )
