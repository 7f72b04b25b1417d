"""The objective: what load that meets too few pods is worth, and how much a pod may carry."""

from __future__ import annotations

from trimtab.policy.record import Record, require
from trimtab.policy.settle import Rule

START_SHARE, BRIDGED_START_SHARE = 0.25, 0.125


class Objective(Record, frozen=True):
    """A price in pod-minutes for one violated pod-minute of load; a pod violates above its service level.

    A pod is started at a share of the price, because it may turn out that it is not needed; with a bridge at half of
    that, because ready pods can carry more meanwhile. `settle` holds the rules that were written: those that Kubernetes
    would fill in are for a target, not for a price.
    """

    price: float = 32.0
    service_level: float = 0.8
    start_share: float = START_SHARE
    keep_share: float = 1.0
    settle: tuple[Rule, ...] = ()

    def __post_init__(self) -> None:
        require(0.0 < self.price < 1e6, "objective.price", self.price, "give a number of pod-minutes above zero")
        for share in (self.start_share, self.keep_share):
            require(0.0 < share < 1e6, "objective.shares", share, "give a share of the price above zero")
        level = self.service_level
        require(0.0 < level <= 1.0, "objective.serviceLevel", level, "give a share of a pod above 0, at most 1")
