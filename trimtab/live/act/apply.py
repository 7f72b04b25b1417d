"""apply: a Change becomes patches, each guarded so that nobody's newer word is overwritten.

Replicas: merge patch of /scale with the resourceVersion the decision was made on. Sizes: see `sizes`. What was written
is remembered, whatever becomes of the rest.
"""

from __future__ import annotations

from http import HTTPStatus

from msgspec.structs import replace

from trimtab.core.model import Change
from trimtab.core.remember import remember
from trimtab.errors import Refused
from trimtab.live.act import sizes
from trimtab.live.act.pen import Pen
from trimtab.live.look.kept import Kept, Wrote
from trimtab.live.look.subject import Subject
from trimtab.live.look.world import Target, World
from trimtab.policy import Axis
from trimtab.wire.kube import Patch
from trimtab.wire.objects import Scale

ATTEMPTS = 3


async def apply(
    pen: Pen, world: World, subject: Subject, target: Target, change: Change | None, kept: Kept, at: float
) -> tuple[Kept, Refused | None]:
    """Each axis for itself, more pods before larger ones; the memory of what was written, and the refusal if any."""
    wanted = change or Change(was=target.replicas)
    done, trouble = Change(was=wanted.was), None
    for axis in _order(wanted):
        try:
            if axis is Axis.REPLICAS and wanted.replicas is not None:
                await scale(pen, target, wanted)
                done = replace(done, replicas=wanted.replicas)
                kept = replace(kept, wrote=Wrote(was=wanted.was, replicas=wanted.replicas, at=at))
            elif axis is not Axis.REPLICAS and wanted.sizes:
                kept = await sizes.write(pen, world, subject, target, kept, wanted.sizes, at)
                done = replace(done, sizes=wanted.sizes)
            elif axis is not Axis.REPLICAS:
                kept = await sizes.keep(pen, world, subject, target, kept, at)
        except Refused as refusal:
            trouble = refusal
            if wanted.sizes:  # one may need the other; pods that only keep their size hold up nobody
                break
    if done.replicas is None and not done.sizes:
        return kept, trouble
    return replace(kept, core=remember(subject.policy, kept.core, done, at)), trouble


def _order(change: Change) -> tuple[Axis, Axis]:
    """Fewer pods may need their new size to carry the load; more pods help at once."""
    grows = change.replicas is not None and change.replicas > change.was
    return (Axis.REPLICAS, Axis.CPU) if grows else (Axis.CPU, Axis.REPLICAS)


async def scale(pen: Pen, target: Target, change: Change) -> None:
    """Write the replicas. A 409 because of somebody's status is tried again; another's replicas end it."""
    assert change.replicas is not None
    version = target.version
    for _ in range(ATTEMPTS):
        body = {"metadata": {"resourceVersion": version}, "spec": {"replicas": change.replicas}}
        try:
            await pen.patch(Scale, target.resource, target.namespace, target.name, body, Patch.MERGE, "scale")
            return
        except Refused as refusal:
            if refusal.status != HTTPStatus.CONFLICT:
                raise
        now = await pen.kube.get(Scale, target.resource, target.namespace, target.name, "scale")
        if now.spec.replicas != change.was:
            raise Refused(
                f"{target.text} was scaled to {now.spec.replicas} meanwhile: decided again", HTTPStatus.CONFLICT
            )
        version = now.metadata.resource_version
    raise Refused(f"{target.text} changes all the time: tried again in the next tick", HTTPStatus.CONFLICT)
