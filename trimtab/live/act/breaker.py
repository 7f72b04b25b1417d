"""breaker: when more than a fifth of all objects (and at least 10) want to shrink by a third or more in one tick,
nobody shrinks for one window: the metrics are lying more often than the world ends."""

from __future__ import annotations

from collections.abc import Sequence

from trimtab.core.model import Decision, Veto
from trimtab.policy import Axis, Direction

SHARE, LEAST, FALL = 1 / 5, 10, 1 / 3
WINDOW_S = 300.0


class Breaker:
    """Trips on a tick's decisions; `veto` holds everybody's decrease until the window is over."""

    def __init__(self, window_s: float = WINDOW_S) -> None:
        self.window_s = window_s
        self.until = float("-inf")
        self.trips = 0
        self._armed = True

    def trip(self, decisions: Sequence[Decision], at: float) -> bool:
        """Whether these decisions are too many at once. What lasts longer than a window is believed."""
        if at < self.until:
            return False
        falls = sum(1 for one in decisions if falls_steeply(one))
        crowd = falls >= LEAST and falls > SHARE * len(decisions)
        trips, self._armed = crowd and self._armed, not crowd
        if trips:
            self.until, self.trips = at + self.window_s, self.trips + 1
        return trips

    def vetoes(self, at: float) -> tuple[Veto, ...]:
        if at >= self.until:
            return ()
        detail = "too many objects want to shrink at once: the metrics are doubted for one window"
        return (
            Veto(
                axis=Axis.REPLICAS,
                direction=Direction.DOWN,
                reason="FleetBreaker",
                detail=detail,
                until=self.until,
            ),
        )


def falls_steeply(decision: Decision) -> bool:
    change = decision.change
    return change is not None and change.replicas is not None and change.replicas <= change.was * (1 - FALL) + 1e-9
