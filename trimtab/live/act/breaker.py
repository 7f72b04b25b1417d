"""breaker: when more than a fifth of those that write (and at least 10) want to shrink by a third or more in one tick,
nobody of them shrinks for one window: the metrics are lying more often than the world ends.

Counted over everybody and in each namespace by itself. Who still falls after its window is believed, and is not counted
again before it has stopped falling; everybody else is watched as before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from trimtab.core.admit import writes
from trimtab.core.model import Decision, Veto
from trimtab.live.object_tick import ObjectTick
from trimtab.policy import Axis, Direction
from trimtab.wire.resources import HPAS

SHARE, LEAST, FALL = 1 / 5, 10, 1 / 3
WINDOW_S = 300.0
EVERYBODY = ""  # as a namespace


class FleetWish(NamedTuple):
    """What one object that writes wants in this tick."""

    uid: str
    namespace: str
    falls: bool


class Breaker:
    """Trips on a tick's wishes; `vetoes` holds decreases until the window is over."""

    def __init__(self, window_s: float = WINDOW_S) -> None:
        self.window_s = window_s
        self.trips = 0
        self._until: dict[str, float] = {}  # by namespace
        self._held: dict[str, str] = {}  # uid of who fell when it tripped -> the namespace that was held

    def trip(self, wishes: Iterable[FleetWish], at: float) -> list[str]:
        """The namespaces (or everybody) whose decreases are held from now on, because too many fall at once."""
        known = list(wishes)
        self._forget_who_stopped({wish.uid for wish in known if wish.falls}, at)
        new = [wish for wish in known if wish.falls and wish.uid not in self._held]
        if not new:
            return []
        writers = Counter(place for wish in known for place in (wish.namespace, EVERYBODY))
        falls = Counter(place for wish in new for place in (wish.namespace, EVERYBODY))
        tripped = [place for place, count in falls.items() if count >= LEAST and count > SHARE * writers[place]]
        for place in tripped:
            self._until[place] = at + self.window_s
            self._held |= {wish.uid: place for wish in new if place in (wish.namespace, EVERYBODY)}
        self.trips += bool(tripped)
        return tripped

    def clock_set(self, by_s: float) -> None:
        self._until = {place: until + by_s for place, until in self._until.items()}

    def open(self, at: float) -> bool:
        return bool(self.held_until(at))

    def held_until(self, at: float) -> dict[str, float]:
        """The namespaces (or everybody) whose decreases are held, and when that ends."""
        return {place: until for place, until in self._until.items() if self._holds(place, at)}

    def vetoes(self, namespace: str, at: float) -> tuple[Veto, ...]:
        if not self._until:
            return ()
        place = next((place for place in (EVERYBODY, namespace) if self._holds(place, at)), None)
        if place is None:
            return ()
        where = f"of namespace {place} " if place else ""
        detail = f"too many objects {where}want to shrink at once: the metrics are doubted for a while"
        until = self._until[place]
        return (Veto(axis=Axis.REPLICAS, direction=Direction.DOWN, reason="FleetBreaker", detail=detail, until=until),)

    def _holds(self, place: str, at: float) -> bool:
        """A clock that was set back does not make the window longer."""
        return 0 < self._until.get(place, at) - at <= self.window_s

    def _forget_who_stopped(self, falling: set[str], at: float) -> None:
        """While a window holds them nobody falls: that says nothing about what they want."""
        self._held = {uid: place for uid, place in self._held.items() if uid in falling or self._holds(place, at)}


def falls_steeply(decision: Decision) -> bool:
    change = decision.change
    return change is not None and change.replicas is not None and change.replicas <= change.was * (1 - FALL) + 1e-9


def fleet_wishes(ticks: Iterable[ObjectTick]) -> Iterator[FleetWish]:
    """Of those that write: neither Shadow nor a pause, nor an HPA, which scales by itself."""
    for tick in ticks:
        subject = tick.subject
        if subject.resource is not HPAS and writes(subject.policy.admit, tick.seen.at):
            yield FleetWish(subject.uid, subject.name.namespace, falls_steeply(tick.decision))
