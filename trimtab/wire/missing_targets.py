"""missing_targets: what a namespace's objects name that is not there, and when it is asked for again.

A workload of a kind that is not followed is asked for by its object in every tick: that is what it takes to scale it.
One that is missing is asked for the less often the more of them a namespace names, so that all of them together cost a
few questions per tick, however many they are.
"""

from __future__ import annotations

from http import HTTPStatus
from itertools import islice
from typing import NamedTuple

from trimtab.errors import Refused
from trimtab.wire.clock import Clock

APART_S = 0.3  # questions of one namespace about what is missing: fifty in a tick of 15 s, one for each of fifty
GONE_S = 600.0  # so long after its time nobody has asked for it: its object is gone

Name = tuple[str, str, str]  # api version, kind and name


class Miss(NamedTuple):
    said: str
    again_at: float


class MissingTargets:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._missed: dict[str, dict[Name, Miss]] = {}  # by namespace, in the order in which they were asked for

    def check(self, namespace: str, name: Name) -> None:
        """Refused as the last time, until it may be asked for again."""
        miss = self._missed.get(namespace, {}).get(name)
        if miss and self._clock.since_boot() < miss.again_at:
            raise Refused(miss.said, HTTPStatus.NOT_FOUND)

    def note(self, namespace: str, name: Name, said: str) -> None:
        now, missed = self._clock.since_boot(), self._missed.setdefault(namespace, {})
        missed.pop(name, None)
        for oldest in [*islice(missed, 2)]:  # two for the one that comes: what nobody asks for any more gets fewer
            if missed[oldest].again_at < now - GONE_S:
                del missed[oldest]
        missed[name] = Miss(said, now + APART_S * (len(missed) + 1))

    def found(self, namespace: str, name: Name) -> None:
        if missed := self._missed.get(namespace):
            missed.pop(name, None)
            if not missed:
                del self._missed[namespace]
