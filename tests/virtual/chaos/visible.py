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

BLIND = (FaultKind.MISSING, FaultKind.NAN, FaultKind.NEGATIVE, FaultKind.STALE)
MOMENTARY = (
    CutWatches,
    Compacted,
    ClockStepped,
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
    OomKilled,
    Unread,
)  # for what is seen
SCALERS = ("scaledobjects", "watermarkpodautoscalers", "predictivehorizontalpodautoscalers")
ALL_PODS = "/api/v1/pods"
BEFORE_S, AFTER_S = 60.0, 180.0


def over_s(fault: Fault) -> float:
    """When it is over, with the return of who was killed."""
    if isinstance(fault, MOMENTARY):
        return fault.start_s
    return fault.end_s + (fault.back_after_s or 0.0 if isinstance(fault, Killed) else 0.0)


def holds_up_nobody(fault: Fault) -> bool:
    """Something that a tenant can do, or a kind of others: nobody else's trouble."""
    return isinstance(fault, Flood | ForeignPods | OomKilled | Unread)


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
    if _clock_off_s(faults, at_s):
        return True
    return any(fault.start_s - BEFORE_S <= at_s < over_s(fault) + AFTER_S and _hides(fault, name) for fault in faults)


def _clock_off_s(faults: tuple[Fault, ...], at_s: float) -> float:
    """Samples bear the servers' time: to an operator whose own is another they are old, or of the future."""
    return sum(fault.by_s for fault in faults if isinstance(fault, ClockStepped) and fault.start_s <= at_s)


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
