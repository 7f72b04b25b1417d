"""overload: which deaths of pods mean that a workload is too small, so that nothing which helps should wait."""

from __future__ import annotations


def still_matters(died_at: float, scaled_at: float | None, on_a_node: bool, current_size: bool) -> bool:
    """Not what the last scaling may have answered already, and not the death of a pod that had another size."""
    return on_a_node and current_size and (scaled_at is None or died_at > scaled_at)
