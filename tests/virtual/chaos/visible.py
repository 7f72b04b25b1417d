"""What a fault hides of a workload, and for how long: a decision on what nobody could see is not wrong."""

from __future__ import annotations

from tests.virtual.faults import (
    Away,
    BadMetrics,
    ClockStepped,
    Compacted,
    CutWatches,
    DefinitionAway,
    DiskFull,
    Fault,
    Flood,
    ForeignPods,
    ForgedLabels,
    Killed,
    NamespaceAway,
    ObjectAway,
    OnRequests,
    OomKilled,
    Refusing,
    RepeatedEvents,
    SpoiledMetrics,
    Spoiling,
    Unread,
)
from trimtab.sim.cluster_spec import FaultKind
from trimtab.wire.clock import LARGE_S

BLIND = (FaultKind.MISSING, FaultKind.NAN, FaultKind.NEGATIVE, FaultKind.STALE)
MOMENTARY = (
    CutWatches,
    Compacted,
    Flood,
    ForeignPods,
    OomKilled,
)  # they begin, and that is all the trouble
HARMLESS = (
    ClockStepped,
    Compacted,
    CutWatches,
    DiskFull,
    RepeatedEvents,
    Flood,
    ForeignPods,
    ForgedLabels,
    OomKilled,
    Unread,
)  # for what is seen
SCALERS = ("scaledobjects", "watermarkpodautoscalers", "predictivehorizontalpodautoscalers")
ALL_PODS = "/api/v1/pods"
HANDED_OVER_S = 330.0  # a lone operator with a quiet Lease notices it and waits for others in vain
BEFORE_S, AFTER_S = 60.0, 180.0


def over_s(fault: Fault) -> float:
    """When it is over, with the return of who was killed."""
    if isinstance(fault, MOMENTARY):
        return fault.start_s
    if isinstance(fault, ClockStepped):
        return fault.start_s + (HANDED_OVER_S if abs(fault.by_s) > LARGE_S else 0.0)
    return fault.end_s + (fault.back_after_s or 0.0 if isinstance(fault, Killed) else 0.0)


def holds_up_nobody(fault: Fault) -> bool:
    """Something that a tenant can do, or a kind of others: nobody else's trouble."""
    return isinstance(fault, Flood | ForeignPods | ForgedLabels | OomKilled | Unread)


def blinds(fault: Fault, name: str) -> bool:
    """Nothing may be lowered while it lasts: what is known is missing, stale or a part."""
    if isinstance(fault, Unread):  # who has seen them once goes on with what was there
        return fault.start_s == 0 and fault.plural in SCALERS
    if isinstance(fault, Refusing) and fault.path == ALL_PODS:
        return True
    if isinstance(fault, BadMetrics):
        return fault.kind in BLIND and fault.workload in ("", name)
    return isinstance(fault, SpoiledMetrics) and fault.kind is Spoiling.FUTURE and fault.workload in ("", name)


def hidden(faults: tuple[Fault, ...], name: str, at_s: float) -> bool:
    """Whether the load of that moment may not have been seen."""
    return any(fault.start_s - BEFORE_S <= at_s < over_s(fault) + AFTER_S and _hides(fault, name) for fault in faults)


def _hides(fault: Fault, name: str) -> bool:
    if isinstance(fault, BadMetrics | SpoiledMetrics):
        return fault.workload in ("", name)
    if isinstance(fault, OnRequests) and fault.plural == "prometheus":
        return False
    return not isinstance(fault, HARMLESS)


def births(faults: tuple[Fault, ...], name: str, at_s: float) -> float:
    """When its object or its workload was made anew for the last time: what was before is of another."""
    moments = [moment for fault in faults if _concerns(fault, name) for moment in (fault.start_s, fault.end_s)]
    return max((moment for moment in moments if moment <= at_s), default=0.0)


def _concerns(fault: Fault, name: str) -> bool:
    if isinstance(fault, ObjectAway):
        return fault.name == name
    return isinstance(fault, DefinitionAway) or (isinstance(fault, NamespaceAway) and name.startswith(f"{fault.name}/"))


__all__ = ["Away", "births", "blinds", "hidden", "holds_up_nobody", "over_s"]
