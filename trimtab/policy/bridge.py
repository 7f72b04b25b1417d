"""The bridge: ready pods may carry more for a while, because a resize in place is faster than a new pod."""

from __future__ import annotations

from trimtab.policy.record import Record, require


class Bridge(Record, frozen=True):
    """How far ready pods may grow, and which share of their written CPU they carry before they do.

    The ceiling lies a little below the service level: the bridge guards the service, the target steers.
    """

    max_factor: float = 1.5
    ceiling: float = 0.75
    resizes_per_hour: int | None = None  # of one pod; None: as many as it takes

    def __post_init__(self) -> None:
        require(1.0 < self.max_factor <= 2.0, "bridge.maxFactor", self.max_factor, "give a factor above 1, at most 2")
        require(0.0 < self.ceiling < 1.0, "bridge.ceiling", self.ceiling, "give a share of a pod between 0 and 1")
        most = self.resizes_per_hour
        require(most is None or most >= 2, "bridge.resizesPerHour", most, "give 2 or more: one up, one down")
