"""revert: somebody undid our change (GitOps self-heal, a hand): that axis rests an hour, then until an edit.

Undone is what stands again as it did before our last word, within an hour of it. Anything else is somebody's own word:
we go on from there. Who it was is read from the workload's managedFields, and only then.
"""

from __future__ import annotations

from msgspec.structs import replace

from trimtab.core.model import ContainerSize, Veto
from trimtab.live.act.resize import same
from trimtab.live.look.facts import template_sizes
from trimtab.live.look.kept import REST_S, Kept, Undone
from trimtab.live.look.world import Target, World
from trimtab.policy import Axis
from trimtab.wire.managed_fields import ANY, ManagedWorkload
from trimtab.wire.objects import WireWorkload

CONTAINER_RESOURCES = ("spec", "template", "spec", "containers", ANY, "resources")
REPLICAS, SIZES = "replicas", "sizes"
AXES = {REPLICAS: (Axis.REPLICAS,), SIZES: (Axis.CPU, Axis.MEMORY)}
WORDS = {REPLICAS: "the replicas", SIZES: "the requests"}


async def noticed(world: World, target: Target, kept: Kept, generation: int, at: float) -> Kept:
    """The memory with a revert noted, ended or unchanged. The workload is asked for only where it differs."""
    kept = _edited(kept, generation)
    if kept.wrote is not None and target.replicas != kept.wrote.replicas:
        kept = _of_replicas(await _asked(world, target), kept, generation, at)
    if kept.patched is not None and not alike(_template(target.workload), kept.patched.sizes):
        kept = _of_sizes(await _asked(world, target), kept, generation, at)
    return kept


def _of_replicas(now: ManagedWorkload, kept: Kept, generation: int, at: float) -> Kept:
    wrote = kept.wrote
    assert wrote is not None
    if now.spec.replicas == wrote.replicas:  # our write has not come back to us yet
        return kept
    kept = replace(kept, wrote=None, core=replace(kept.core, zeroed=False))  # zero after this is somebody's zero
    if now.spec.replicas != wrote.was or at - wrote.at > REST_S:
        return kept
    return _undone(kept, REPLICAS, _last_writer(now, "spec", "replicas"), generation, at)


def _of_sizes(now: ManagedWorkload, kept: Kept, generation: int, at: float) -> Kept:
    patched, sizes = kept.patched, _template(now)
    assert patched is not None
    if alike(sizes, patched.sizes):
        return kept
    kept = replace(kept, patched=None)
    if not alike(sizes, patched.was) or at - patched.at > REST_S:
        return kept
    return _undone(kept, SIZES, _last_writer(now, *CONTAINER_RESOURCES), generation, at)


def _undone(kept: Kept, what: str, by: str, generation: int, at: float) -> Kept:
    before = kept.undone.get(what)
    until = at + REST_S if before is None else None
    return replace(kept, undone=kept.undone | {what: Undone(by=by, until=until, generation=generation)})


def _template(workload: WireWorkload | ManagedWorkload | None) -> dict[str, ContainerSize]:
    return template_sizes(WireWorkload(spec=workload.spec)) if workload else {}


def alike(now: dict[str, ContainerSize], then: dict[str, ContainerSize]) -> bool:
    """The same sizes of the containers that both know."""
    return all(name not in now or same(now[name], size) for name, size in then.items())


def resting(kept: Kept, at: float) -> dict[str, Undone]:
    return {what: one for what, one in kept.undone.items() if one.until is None or at < one.until}


def veto(kept: Kept, at: float) -> tuple[Veto, ...]:
    return tuple(
        Veto(axis=axis, direction=None, reason="Reverted", detail=text(what, one), until=one.until)
        for what, one in resting(kept, at).items()
        for axis in AXES[what]
    )


def text(what: str, one: Undone) -> str:
    ends = "for an hour" if one.until is not None else "until this object is edited"
    return f"{one.by} undid our last change of {WORDS[what]}: they rest {ends}"


def _edited(kept: Kept, generation: int) -> Kept:
    """An edit of the object ends every rest and begins the count anew."""
    left = {what: one for what, one in kept.undone.items() if one.generation == generation}
    return kept if len(left) == len(kept.undone) else replace(kept, undone=left)


async def _asked(world: World, target: Target) -> ManagedWorkload:
    return await world.kube.get(ManagedWorkload, target.resource, target.namespace, target.name)


def _last_writer(now: ManagedWorkload, *path: str) -> str:
    return now.metadata.last_other_owner(*path) or "somebody"
