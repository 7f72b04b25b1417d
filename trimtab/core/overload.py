"""overload: which deaths of pods mean that a workload is too small, so that nothing which helps should wait.

A container's OOM kill that its restart count shows for the first time, or a pod's eviction from a node short of memory;
not while the pod was still of another size, and not from before the last scaling, which may have answered it already.
"""

from __future__ import annotations

OOM_KILLED, EVICTED, SHORT_OF_MEMORY = "OOMKilled", "Evicted", "KubeletHasInsufficientMemory"


def oom_killed(restarts_before: int | None, restarts: int, reason: str) -> bool:
    """A new restart whose last termination was an OOM kill; None: the container was not there before."""
    return restarts > (restarts_before or 0) and reason == OOM_KILLED


def evicted(evicted_before: bool, reason: str, node_reason: str, node_status: str) -> bool:
    """An eviction seen for the first time, from a node whose MemoryPressure condition says why."""
    return reason == EVICTED and not evicted_before and node_reason == SHORT_OF_MEMORY and node_status == "True"


def still_matters(died_at: float, scaled_at: float | None, on_a_node: bool, current_size: bool) -> bool:
    """Only what happened after the last scaling, to a pod that ran with the size in force."""
    return on_a_node and current_size and (scaled_at is None or died_at > scaled_at)
