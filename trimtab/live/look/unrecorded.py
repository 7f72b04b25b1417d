"""unrecorded: a scaling of ours that no status tells of, because we were killed or cut off between the two writes.

The workload's managedFields still say that it was us, though not when (the API server does not date writes of a
scale): it counts as done now, so that no cooldown and no rate is cut short.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from trimtab.core.model import Change
from trimtab.core.remember import remember
from trimtab.live.look.cluster import ScaleTarget, WatchedCluster
from trimtab.live.look.memory import ObjectMemory, ReplicasWritten
from trimtab.policy import Policy
from trimtab.wire.objects import ManagedWorkload


async def with_unrecorded_scaling(
    cluster: WatchedCluster,
    target: ScaleTarget,
    memory: ObjectMemory,
    policy: Policy,
    status: dict[str, Any],
    at: float,
) -> ObjectMemory:
    """The memory of an object at first sight, with the scaling that its status does not know."""
    known = memory.wrote.replicas if memory.wrote else status.get("currentReplicas", status.get("replicas"))
    if not isinstance(known, int) or known == target.replicas:
        return memory
    workload = await cluster.kube.get(ManagedWorkload, target.resource, target.namespace, target.name)
    if not workload.metadata.is_ours("spec", "replicas"):
        return memory
    core = remember(policy, memory.core, Change(was=known, replicas=target.replicas), at)
    return replace(memory, core=core, wrote=ReplicasWritten(was=known, replicas=target.replicas, at=at))
