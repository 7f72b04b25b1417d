"""The numbers of the VPA recommender, all of them settings, so that a test can compress a week into a minute."""

from __future__ import annotations

from trimtab.policy import Record, Size
from trimtab.quantity import MIB

DAY_S = 86400.0
VPA_FLOOR = Size(cpu_cores=0.025, memory_bytes=250.0 * MIB)  # upstream's Vertical.floor; ours is lower


class HistogramSettings(Record, frozen=True):
    """Half-lives and windows of the histograms, and the percentiles (lower, target, upper) asked of them."""

    half_life_s: float = DAY_S
    memory_window_s: float = DAY_S  # one memory peak is kept for each container and window
    memory_windows: int = 8  # a container unseen for this many windows is forgotten
    cpu_weight: float = 0.1
    oom_ratio: float = 1.2
    oom_least_bytes: float = 100.0 * MIB
    cpu_percentiles: tuple[float, float, float] = (0.5, 0.9, 0.95)
    memory_percentiles: tuple[float, float, float] = (0.5, 0.9, 0.95)
    margin: float = 0.15
    confidence_s: float = DAY_S  # this much history, at a sample per minute, is a confidence of 1
    fresh_s: float = 3600.0  # an estimate expires this long after the last sample; a longer hole restarts a watch

    @property
    def history_s(self) -> float:
        """How long a container, and what an OOM kill of it taught, is remembered."""
        return self.memory_windows * self.memory_window_s
