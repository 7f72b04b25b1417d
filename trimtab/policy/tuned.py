"""Tuned settings: what tuning may move of a policy; everything else stays as its owner wrote it."""

from __future__ import annotations

from trimtab.policy.record import Record, require


class TunedSettings(Record, frozen=True):
    """The target in the unit of its metric (percent of the request, or an average value), tolerance and window.

    `ceiling` is the bridge's, where one is written; None: the bridge rests. `priced`: the objective steers, where one
    is written; else the target does.
    """

    target: float
    tolerance: float
    window_s: float  # how long a lower wish must have lasted
    ceiling: float | None = None
    priced: bool = False

    def __post_init__(self) -> None:
        require(self.target > 0.0, "tuned.target", self.target, "give a number above zero")
        require(0.0 <= self.tolerance < 1.0, "tuned.tolerance", self.tolerance, "give a share from 0 on, below 1")
        require(self.window_s >= 0.0, "tuned.window", self.window_s, "give seconds, from 0 on")
