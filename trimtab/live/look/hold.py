"""hold: for a while no pod goes, whatever the policy says."""

from __future__ import annotations

from trimtab.core.bounds_in_force import bounds_at
from trimtab.core.model import Observation, Veto
from trimtab.policy import Axis, Direction, Policy


def hold_decreases(policy: Policy, seen: Observation, until: float, reason: str, detail: str) -> tuple[Veto, ...]:
    """Return the veto that keeps the pods there are until then, as far as maxReplicas allows them."""
    if seen.at >= until or seen.spec_replicas > bounds_at(policy.bounds, seen.at).most:
        return ()
    return (Veto(axis=Axis.REPLICAS, direction=Direction.DOWN, reason=reason, detail=detail, until=until),)
