"""revert: somebody undid our change (GitOps self-heal, a hand): that axis rests an hour, then until an edit.

Undone is what stands again as it did before our last word, within an hour of it. Anything else is somebody's own word:
we go on from there. Who it was is read from the workload's managedFields, and only then.
"""

from __future__ import annotations

from msgspec.structs import replace

from trimtab.core.model import ContainerSize, Veto
from trimtab.live.look.cluster import ScaleTarget, WatchedCluster
from trimtab.live.look.memory import REST_S, ObjectMemory, UndoneChange
from trimtab.policy import Axis
from trimtab.wire.facts import same_size, template_sizes
from trimtab.wire.managed_fields import ANY, ManagedWorkload
from trimtab.wire.objects import WireWorkload

REPLICAS, SIZES = "replicas", "sizes"
CONTAINER_RESOURCES = ("spec", "template", "spec", "containers", ANY, "resources")
AXES = {REPLICAS: (Axis.REPLICAS,), SIZES: (Axis.CPU, Axis.MEMORY)}
WORDS = {REPLICAS: "the replicas", SIZES: "the requests"}


async def noticed(
    cluster: WatchedCluster, target: ScaleTarget, memory: ObjectMemory, generation: int, at: float
) -> ObjectMemory:
    """The memory with a revert noted, ended or unchanged. The workload is asked for only where it differs."""
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
    if now.spec.replicas != wrote.was or at - wrote.at > REST_S:
        return memory
    return _undone(memory, REPLICAS, _last_writer(now, "spec", "replicas"), generation, at)


def _of_sizes(now: ManagedWorkload, memory: ObjectMemory, generation: int, at: float) -> ObjectMemory:
    patched, sizes = memory.patched, _template(now)
    assert patched is not None
    if alike(sizes, patched.sizes):
        return memory
    memory = replace(memory, patched=None)
    if not alike(sizes, patched.was) or at - patched.at > REST_S:
        return memory
    return _undone(memory, SIZES, _last_writer(now, *CONTAINER_RESOURCES), generation, at)


def _undone(memory: ObjectMemory, what: str, by: str, generation: int, at: float) -> ObjectMemory:
    before = memory.undone.get(what)
    until = at + REST_S if before is None else None
    return replace(memory, undone=memory.undone | {what: UndoneChange(by=by, until=until, generation=generation)})


def _template(workload: WireWorkload | ManagedWorkload | None) -> dict[str, ContainerSize]:
    return template_sizes(WireWorkload(spec=workload.spec)) if workload else {}


def alike(now: dict[str, ContainerSize], then: dict[str, ContainerSize]) -> bool:
    """The same sizes of the containers that both know."""
    return all(name not in now or same_size(now[name], size) for name, size in then.items())


def resting(memory: ObjectMemory, at: float) -> dict[str, UndoneChange]:
    return {what: undone for what, undone in memory.undone.items() if undone.until is None or at < undone.until}


def veto(memory: ObjectMemory, at: float) -> tuple[Veto, ...]:
    return tuple(
        Veto(axis=axis, direction=None, reason="Reverted", detail=text(what, undone), until=undone.until)
        for what, undone in resting(memory, at).items()
        for axis in AXES[what]
    )


def text(what: str, undone: UndoneChange) -> str:
    ends = "for an hour" if undone.until is not None else "until this object is edited"
    return f"{undone.by} undid our last change of {WORDS[what]}: they rest {ends}"


def _edited(memory: ObjectMemory, generation: int) -> ObjectMemory:
    """An edit of the object ends every rest and begins the count anew."""
    left = {what: undone for what, undone in memory.undone.items() if undone.generation == generation}
    return memory if len(left) == len(memory.undone) else replace(memory, undone=left)


async def _asked(cluster: WatchedCluster, target: ScaleTarget) -> ManagedWorkload:
    return await cluster.kube.get(ManagedWorkload, target.resource, target.namespace, target.name)


def _last_writer(now: ManagedWorkload, *path: str) -> str:
    return now.metadata.last_other_owner(*path) or "somebody"
