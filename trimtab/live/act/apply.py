"""apply: turn a Change into patches, each guarded so that no newer write of somebody else is overwritten.

Replicas: a merge patch of /scale with the newest known version that has the replicas the decision was made on. Sizes:
see `sizes`. What was written is remembered even if a later write fails.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Literal

from msgspec.structs import replace

from trimtab.acts import AxisOutcome, Fate, Outcome, changed_axes
from trimtab.core.model import Change
from trimtab.core.remember import remember
from trimtab.errors import Refused
from trimtab.live.act.bridge import write_bridge
from trimtab.live.act.sizes import keep_sizes, write_sizes
from trimtab.live.look.cluster import ScaleTarget, WatchedCluster
from trimtab.live.look.memory import ObjectMemory, ReplicasWritten
from trimtab.live.look.subject import Subject
from trimtab.wire.kube import Kube, Patch
from trimtab.wire.objects import Scale

ATTEMPTS = 3


async def apply(
    writer: Kube,
    cluster: WatchedCluster,
    subject: Subject,
    target: ScaleTarget,
    change: Change | None,
    memory: ObjectMemory,
    at: float,
) -> tuple[ObjectMemory, Outcome]:
    """Each axis for itself, more pods before larger ones; the memory of what was written, and what became of each."""
    if change is None and subject.policy.vertical is None and subject.policy.bridge is None:
        return memory, ()
    wanted = change or Change(was=target.replicas)
    done, outcome = Change(was=wanted.was), list[AxisOutcome]()
    for axis in _order(wanted):
        try:
            if axis == "replicas" and wanted.replicas is not None:
                await scale(writer, cluster.known_now(target), wanted)
                done = replace(done, replicas=wanted.replicas)
                memory = replace(memory, wrote=ReplicasWritten(was=wanted.was, replicas=wanted.replicas, at=at))
            elif axis == "sizes" and wanted.sizes:
                memory = await write_sizes(writer, cluster, subject, target, memory, wanted.sizes, at)
                done = replace(done, sizes=wanted.sizes)
            elif axis == "sizes":
                memory = await keep_sizes(writer, cluster, subject, target, memory, at)
        except Refused as refusal:
            outcome.append(AxisOutcome(axis=axis, fate=Fate.REFUSED, reason=str(refusal)))
            if wanted.sizes:  # one may need the other; pods that only keep their size hold up nobody
                break
    try:
        memory = await write_bridge(writer, cluster, subject, target, wanted, memory, at)
        done = replace(done, bridge=wanted.bridge)
    except Refused as refusal:
        outcome.append(AxisOutcome(axis="bridge", fate=Fate.REFUSED, reason=str(refusal)))
    outcome += [AxisOutcome(axis=axis, fate=Fate.WRITTEN) for axis in changed_axes(done)]
    if changed_axes(done):
        memory = replace(memory, core=remember(subject.policy, memory.core, done, at))
    return memory, (*outcome, *_held(wanted, outcome))


def _held(wanted: Change, outcome: list[AxisOutcome]) -> Outcome:
    """What was not tried because the other axis was refused."""
    tried = {part.axis for part in outcome}
    left = [axis for axis in changed_axes(wanted) if axis not in tried]
    return tuple(
        AxisOutcome(axis=axis, fate=Fate.REFUSED, reason="it waits for the rest of the change") for axis in left
    )


def unwritten(change: Change | None, fate: Fate, reason: str = "") -> Outcome:
    """Of a change that is not to be written."""
    return tuple(AxisOutcome(axis=axis, fate=fate, reason=reason) for axis in changed_axes(change))


def _order(change: Change) -> tuple[Literal["replicas", "sizes"], Literal["replicas", "sizes"]]:
    """Fewer pods may need their new size to carry the load; more pods help at once."""
    grows = change.replicas is not None and change.replicas > change.was
    return ("replicas", "sizes") if grows else ("sizes", "replicas")


async def scale(writer: Kube, target: ScaleTarget, change: Change) -> None:
    """Write the replicas. A 409 because of somebody's status is tried again; another's replicas, or pods, end it."""
    assert change.replicas is not None
    version = target.version
    for _ in range(ATTEMPTS):
        body = {"metadata": {"resourceVersion": version}, "spec": {"replicas": change.replicas}}
        try:
            await writer.patch(Scale, target.resource, target.namespace, target.name, body, Patch.MERGE, "scale")
            return
        except Refused as refusal:
            if refusal.status != HTTPStatus.CONFLICT:
                raise
        now = await writer.get(Scale, target.resource, target.namespace, target.name, "scale")
        if now.metadata.uid != target.uid:
            raise Refused(f"{target.text} was made anew meanwhile: decided again", HTTPStatus.CONFLICT)
        if now.spec.replicas != change.was:
            raise Refused(
                f"{target.text} was scaled to {now.spec.replicas} meanwhile: decided again", HTTPStatus.CONFLICT
            )
        version = now.metadata.resource_version
    raise Refused(f"{target.text} changes all the time: tried again in the next tick", HTTPStatus.CONFLICT)
