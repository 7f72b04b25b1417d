"""revert: notice who wrote the replicas and template sizes last, and stop when somebody keeps undoing our writes.

A number that somebody else wrote is a new starting point. It is a dispute when the same field manager resets replicas
within a minute of our write, three times in ten minutes: scale-downs stop for an hour, scale-ups continue. For template
sizes, where each change costs a rollout, it is twice in an hour, and sizes rest for a day. An edit of the object ends
either. Field managers are read from the workload's managedFields, and only where the workload differs from our write.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec.structs import replace

from trimtab.core.model import Change, ContainerSize, Veto
from trimtab.core.remember import remember
from trimtab.live.look.cluster import ScaleTarget, WatchedCluster
from trimtab.live.look.memory import ObjectMemory, Quarrel, ReplicasWritten
from trimtab.policy import Axis, Direction, Policy
from trimtab.quantity import format_duration
from trimtab.wire.from_kubernetes import same_size, template_sizes
from trimtab.wire.objects import ANY, ManagedWorkload, WireWorkload


class QuarrelRule(NamedTuple):
    """What makes a quarrel, and what rests because of it."""

    words: str
    remedy: str
    answer_s: float  # put back this soon after our write
    times: int  # so often ...
    within_s: float  # ... in this time
    rest_s: float
    axes: tuple[Axis, ...]
    direction: Direction | None  # None: both


REPLICAS, SIZES = "replicas", "sizes"
RULES = {
    REPLICAS: QuarrelRule(
        "the replicas",
        "leave `replicas` out of its manifest, or let it ignore that field (Argo CD: ignoreDifferences)",
        60.0,
        3,
        600.0,
        3600.0,
        (Axis.REPLICAS,),
        Direction.DOWN,
    ),
    SIZES: QuarrelRule(
        "the requests",
        "leave `resources` out of its manifest, or use `apply: InPlace`, which leaves the template alone",
        3600.0,
        2,
        3600.0,
        86400.0,
        (Axis.CPU, Axis.MEMORY),
        None,
    ),
}
CONTAINER_RESOURCES = ("spec", "template", "spec", "containers", ANY, "resources")


async def noticed(
    cluster: WatchedCluster, target: ScaleTarget, memory: ObjectMemory, generation: int, at: float
) -> ObjectMemory:
    """The memory with what was put back noted. The workload is asked for only where it differs from our word."""
    memory = _edited(memory, generation)
    if memory.wrote is not None and target.replicas != memory.wrote.replicas:
        memory = _of_replicas(await _asked(cluster, target), memory, generation, at)
    if memory.patched is not None and not alike(_template(target.workload), memory.patched.sizes):
        memory = _of_sizes(await _asked(cluster, target), memory, generation, at)
    return memory


def _of_replicas(now: ManagedWorkload, memory: ObjectMemory, generation: int, at: float) -> ObjectMemory:
    wrote = memory.wrote
    assert wrote is not None
    if now.spec.replicas == wrote.replicas:  # our write has not come back to us yet
        return memory
    memory = replace(memory, wrote=None, core=replace(memory.core, zeroed=False))  # zero after this is somebody's zero
    return _put_back(memory, REPLICAS, _last_writer(now, "spec", "replicas"), wrote.at, generation, at)


def _of_sizes(now: ManagedWorkload, memory: ObjectMemory, generation: int, at: float) -> ObjectMemory:
    patched, sizes = memory.patched, _template(now)
    assert patched is not None
    if alike(sizes, patched.sizes):
        return memory
    memory = replace(memory, patched=None)
    if not alike(sizes, patched.was):  # another size is somebody's own word
        return memory
    return _put_back(memory, SIZES, _last_writer(now, *CONTAINER_RESOURCES), patched.at, generation, at)


def _put_back(memory: ObjectMemory, what: str, by: str, written_at: float, generation: int, at: float) -> ObjectMemory:
    rule, before = RULES[what], memory.quarrels.get(what)
    if at - written_at > rule.answer_s:
        return memory
    known = before.moments if before is not None and before.by == by else ()
    moments = (*(moment for moment in known if at - moment < rule.within_s), at)[-rule.times :]
    until = at + rule.rest_s if len(moments) == rule.times else None
    quarrel = Quarrel(by=by, generation=generation, moments=moments, until=until)
    return replace(memory, quarrels=memory.quarrels | {what: quarrel})


def _template(workload: WireWorkload | ManagedWorkload | None) -> dict[str, ContainerSize]:
    return template_sizes(WireWorkload(spec=workload.spec)) if workload else {}


def alike(now: dict[str, ContainerSize], then: dict[str, ContainerSize]) -> bool:
    """The same sizes of the containers that both know."""
    return all(name not in now or same_size(now[name], size) for name, size in then.items())


def resting(memory: ObjectMemory, at: float) -> dict[str, Quarrel]:
    return {
        what: quarrel for what, quarrel in memory.quarrels.items() if quarrel.until is not None and at < quarrel.until
    }


def veto(memory: ObjectMemory, at: float) -> tuple[Veto, ...]:
    if not memory.quarrels:
        return ()
    return tuple(
        Veto(
            axis=axis,
            direction=RULES[what].direction,
            reason="Reverted",
            detail=text(what, quarrel),
            until=quarrel.until,
        )
        for what, quarrel in resting(memory, at).items()
        for axis in RULES[what].axes
    )


def text(what: str, quarrel: Quarrel) -> str:
    rule = RULES[what]
    rests = "they change no more" if rule.direction is None else "they are not lowered"
    ends = f"for {format_duration(rule.rest_s)}, or until this object is edited"
    return f"{quarrel.by} puts {rule.words} back again and again: {rests} {ends}; to end it, {rule.remedy}"


def _edited(memory: ObjectMemory, generation: int) -> ObjectMemory:
    """An edit of the object ends every quarrel."""
    left = {what: quarrel for what, quarrel in memory.quarrels.items() if quarrel.generation == generation}
    return memory if len(left) == len(memory.quarrels) else replace(memory, quarrels=left)


async def _asked(cluster: WatchedCluster, target: ScaleTarget) -> ManagedWorkload:
    return await cluster.kube.get(ManagedWorkload, target.resource, target.namespace, target.name)


def _last_writer(now: ManagedWorkload, *path: str) -> str:
    return now.metadata.last_other_owner(*path) or "somebody"


async def with_missed_write(
    cluster: WatchedCluster,
    target: ScaleTarget,
    memory: ObjectMemory,
    policy: Policy,
    status: dict[str, Any],
    at: float,
) -> ObjectMemory:
    """Add a scaling of ours that the status misses, because we were killed or cut off between the two writes.

    The workload's managedFields still name us, but do not date the write of a scale. The scaling counts as done now, so
    that no cooldown and no rate limit is cut short.
    """
    known = memory.wrote.replicas if memory.wrote else status.get("currentReplicas", status.get("replicas"))
    if not isinstance(known, int) or known == target.replicas:
        return memory
    workload = await _asked(cluster, target)
    if not workload.metadata.is_ours("spec", "replicas"):
        return memory
    core = remember(policy, memory.core, Change(was=known, replicas=target.replicas), at)
    return replace(memory, core=core, wrote=ReplicasWritten(was=known, replicas=target.replicas, at=at))
