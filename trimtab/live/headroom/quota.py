"""quota: hard less used of every ResourceQuota must hold the growth of all pods together.

Scopes: workloads' pods are neither Terminating nor, having requests, BestEffort; of other scopes (priority classes)
only the API server knows, and its refusal says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from trimtab.core.model import Veto
from trimtab.live.headroom.pods import text
from trimtab.policy import Axis, Direction
from trimtab.quantity import parse_quantity
from trimtab.wire.objects import Custom

EXCEEDS_QUOTA = "ExceedsQuota"
REQUESTS, LIMITS = False, True
KEYS = {
    "cpu": (REQUESTS, Axis.CPU),
    "memory": (REQUESTS, Axis.MEMORY),
    "requests.cpu": (REQUESTS, Axis.CPU),
    "requests.memory": (REQUESTS, Axis.MEMORY),
    "limits.cpu": (LIMITS, Axis.CPU),
    "limits.memory": (LIMITS, Axis.MEMORY),
}
OURS = {"NotTerminating", "NotBestEffort"}
Growth = Mapping[bool, Mapping[Axis, float]]  # of requests (False) and of limits (True)
NOISE = 1e-6


def vetoes(quotas: Iterable[Custom], growth: Growth) -> Iterator[Veto]:
    for quota in quotas:
        if quota.spec.get("scopeSelector") or set(quota.spec.get("scopes") or ()) - OURS:
            continue
        used = quota.status.get("used") or {}
        for key, hard in (quota.status.get("hard") or {}).items():
            if key in KEYS and key in used:
                limits, axis = KEYS[key]
                most, need = parse_quantity(hard), growth[limits][axis]
                left = max(0.0, most - parse_quantity(used[key]))
                if need > left + NOISE:
                    yield _veto(quota, key, axis, left, most, need)


def _veto(quota: Custom, key: str, axis: Axis, left: float, most: float, need: float) -> Veto:
    meta = quota.metadata
    detail = (
        f"ResourceQuota {meta.namespace}/{meta.name} has {text(axis, left)} of {key} left of {text(axis, most)}, and "
        f"the pods would need {text(axis, need)} more: raise the quota, or set a smaller maxAllowed"
    )
    return Veto(axis=axis, direction=Direction.UP, reason=EXCEEDS_QUOTA, detail=detail)
