"""recall: a scaling of ours that no status tells of, because we were killed or cut off between the two writes.

The workload's managedFields still say that it was us, though not when (the API server does not date writes of a
scale): it counts as done now, so that no cooldown and no rate is cut short.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from trimtab.core.model import Change
from trimtab.core.remember import remember
from trimtab.live.look.kept import Kept, Wrote
from trimtab.live.look.world import Target, World
from trimtab.policy import Policy
from trimtab.wire.managed_fields import ManagedWorkload


async def recalled(world: World, target: Target, kept: Kept, policy: Policy, status: dict[str, Any], at: float) -> Kept:
    """The memory of an object at first sight, with the scaling that its status does not know."""
    known = kept.wrote.replicas if kept.wrote else status.get("currentReplicas", status.get("replicas"))
    if known is None or known == target.replicas:
        return kept
    found = await world.kube.get(ManagedWorkload, target.resource, target.namespace, target.name)
    if not found.metadata.is_ours("spec", "replicas"):  # whoever writes a number takes the field from the others
        return kept
    core = remember(policy, kept.core, Change(was=known, replicas=target.replicas), at)
    return replace(kept, core=core, wrote=Wrote(was=known, replicas=target.replicas, at=at))
