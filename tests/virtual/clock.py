"""Clocks that tests set: one by hand, one that goes with a virtual loop and can be stepped."""

from __future__ import annotations

from tests.virtual.loop import VirtualLoop

GRAIN = 1e6  # of a second: a date near 2025 has no more digits as a float


class HandClock:
    """Stands still until a test moves it."""

    def __init__(self, wall: float = 1_700_000_000.0, boot: float = 1000.0) -> None:
        self.wall, self.boot = wall, boot

    def now(self) -> float:
        return self.wall

    def since_boot(self) -> float:
        return self.boot


class VirtualClock:
    """The clock of one machine in a virtual loop: its date at the loop's time 0, and how far it was set since."""

    def __init__(self, loop: VirtualLoop, began: float) -> None:
        self._loop, self._began = loop, began
        self.stepped_s = 0.0

    def now(self) -> float:
        return int((self._began + self.stepped_s + self._loop.now_s) * GRAIN + 0.5) / GRAIN

    def since_boot(self) -> float:
        return self._loop.now_s
