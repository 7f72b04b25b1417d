"""apply: a Change becomes patches, each guarded so that nobody's newer word is overwritten.

Replicas: merge patch of /scale with the resourceVersion the decision was made on.
"""

from __future__ import annotations

from trimtab.core.model import Change
from trimtab.errors import Refused
from trimtab.live.pen import Pen
from trimtab.live.world import Target
from trimtab.wire.kube import Patch
from trimtab.wire.objects import Scale

ATTEMPTS = 3
CONFLICT = 409


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
            if refusal.status != CONFLICT:
                raise
        now = await pen.kube.get(Scale, target.resource, target.namespace, target.name, "scale")
        if now.spec.replicas != change.was:
            raise Refused(f"{target.text} was scaled to {now.spec.replicas} meanwhile: decided again", CONFLICT)
        version = now.metadata.resource_version
    raise Refused(f"{target.text} changes all the time: tried again in the next tick", CONFLICT)
