"""sizes: how new sizes are written, by the way the policy names, and that they stay.

In place the template stays as it is: pods that come later are resized when first seen, and an edit of the template's
own requests is the user's new word.
"""

from __future__ import annotations

from http import HTTPStatus

from msgspec.structs import replace

from trimtab.core.admit import pinned
from trimtab.core.model import Change, ContainerSize
from trimtab.errors import Refused
from trimtab.live.act import resize
from trimtab.live.headroom.rollout import blocker as blocker_of
from trimtab.live.look.cluster import ScaleTarget, WatchedCluster
from trimtab.live.look.memory import ObjectMemory, SizesWritten
from trimtab.live.look.sizes import in_place, now
from trimtab.live.look.subject import Subject
from trimtab.policy import Apply
from trimtab.wire.from_kubernetes import factor_on, template_sizes
from trimtab.wire.kube import Kube


def writable(subject: Subject, change: Change | None) -> Change | None:
    """Without the sizes that are only advice; None when nothing else is left."""
    vertical = subject.policy.vertical
    if change is None or vertical is None or vertical.apply is not Apply.NEVER:
        return change
    return None if change.replicas is None and change.bridge is None else replace(change, sizes=None)


async def write(
    writer: Kube,
    cluster: WatchedCluster,
    subject: Subject,
    target: ScaleTarget,
    memory: ObjectMemory,
    changed: dict[str, ContainerSize],
    at: float,
) -> ObjectMemory:
    """New sizes, by the way the policy names."""
    vertical = subject.policy.vertical
    assert vertical is not None and target.workload is not None
    wanted = now(subject, target, memory) | changed
    if vertical.apply is Apply.RECREATE:
        return await _roll_out(writer, target, memory, wanted, at)
    await resize.in_place(writer, cluster.members.pods(target.namespace, target.uid), wanted)
    return replace(memory, sizes=wanted, template=template_sizes(target.workload))


async def keep(
    writer: Kube, cluster: WatchedCluster, subject: Subject, target: ScaleTarget, memory: ObjectMemory, at: float
) -> ObjectMemory:
    """Pods that came since get the size too; what cannot be done in place becomes a rollout where that is allowed."""
    vertical = subject.policy.vertical
    if vertical is None or not in_place(subject.policy) or target.workload is None:
        return memory
    if pinned(subject.policy.admit, at):  # only the pin is written
        return memory
    wanted = now(subject, target, memory)
    if not memory.sizes or wanted is not memory.sizes:
        return memory
    pods = cluster.members.pods(target.namespace, target.uid)
    unbridged = [pod for pod in pods if factor_on(pod) == 1.0]  # no rollout for what is only there for a while
    gives_up = resize.gives_up(vertical.apply, resize.stuck(unbridged), at)
    blocker = blocker_of(cluster, target) if gives_up else None
    if gives_up and blocker is None:
        return await _roll_out(writer, target, memory, wanted, at)
    await resize.in_place(writer, pods, wanted)
    if blocker is not None:
        raise Refused(f"what cannot be done in place waits for a rollout: {blocker.detail}", HTTPStatus.CONFLICT)
    return memory


async def _roll_out(
    writer: Kube, target: ScaleTarget, memory: ObjectMemory, wanted: dict[str, ContainerSize], at: float
) -> ObjectMemory:
    """Into the template: from now on its sizes are those in force, unless somebody puts the old ones back."""
    assert target.workload is not None
    await resize.template(writer, target, wanted)
    patched = SizesWritten(was=template_sizes(target.workload), sizes=wanted, at=at)
    return replace(memory, sizes={}, template={}, patched=patched)
