"""Tuned settings: what tuning may move of a policy; everything else stays as its owner wrote it."""

from __future__ import annotations

from trimtab.policy.record import Record, require


class PricedBand(Record, frozen=True):
    """What one violated pod-minute counts in pod-minutes, where it is asked whether a pod is started, and kept."""

    start: float
    keep: float

    def __post_init__(self) -> None:
        for price in (self.start, self.keep):
            require(0.0 < price < 1e9, "tuned.band", price, "give a number of pod-minutes above zero")


class TunedSettings(Record, frozen=True):
    """The target in the unit of its metric (percent of the request, or an average value), tolerance and window.

    `ceiling` is the bridge's, where one is written; None: the bridge rests. `priced`: the objective steers, where one
    is written, in a `band` other than its own; else the target does.
    """

    target: float
    tolerance: float
    window_s: float  # how long a lower wish must have lasted
    ceiling: float | None = None
    priced: bool = False
    band: PricedBand | None = None

    def __post_init__(self) -> None:
        require(self.target > 0.0, "tuned.target", self.target, "give a number above zero")
        require(0.0 <= self.tolerance < 1.0, "tuned.tolerance", self.tolerance, "give a share from 0 on, below 1")
        require(self.window_s >= 0.0, "tuned.window", self.window_s, "give seconds, from 0 on")
