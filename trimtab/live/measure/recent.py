"""recent: what every object demanded in the last quarter of an hour, so that a new leader goes on where we ended.

Checkpoints are ten minutes apart and Prometheus has means: forecasts made from those would differ from the leader's
that was. So once a minute, and when the operator ends in order, the newest observations of all objects go into a few
ConfigMaps beside it, with the start-ups that were seen. A new leader reads them before anything else.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from itertools import count

import msgspec

from trimtab.core.demand import remembers_demand
from trimtab.core.demand.checkpoint import RecentDemand
from trimtab.errors import InvalidInput, NotLeading, TrimtabError
from trimtab.live.measure.background import Background
from trimtab.live.measure.checkpoint import StoredCheckpoints
from trimtab.live.measure.forecasts import Forecasts
from trimtab.live.object_tick import ObjectTick

EVERY_S = 60.0
KEY = "recent.json"
MOST_BYTES = 700_000  # of one ConfigMap, which may have 1 MiB
log = logging.getLogger(__name__)


class Left(msgspec.Struct, frozen=True, array_like=True):
    """Of one object, for the next leader."""

    target: str  # KIND/NAME of the workload that was measured
    demand: RecentDemand


class LastMinutes(Background):
    """Call `read_once` when a tick measures, `keep` when it is over, and `write` at the end."""

    def __init__(self, stored: StoredCheckpoints, lease: str, forecasts: Forecasts) -> None:
        super().__init__()
        self.stored, self.name, self.forecasts = stored, f"{lease}-recent", forecasts
        self.was_read = False
        self._ticks: Sequence[ObjectTick] = ()
        self._written_at = float("-inf")

    def read_once(self, ticks: Sequence[ObjectTick], at: float) -> None:
        """Nothing is written before it is known what is there."""
        self._ticks = [tick for tick in ticks if remembers_demand(tick.subject.policy)]
        if self.idle and self._ticks and not self.was_read:
            self._written_at = at
            self.start(self._read(self._ticks))

    def keep(self, at: float) -> None:
        """Write, once a minute."""
        if self.idle and self.was_read and not 0.0 <= at - self._written_at < EVERY_S:
            self.start(self.write(at))

    def take_over(self) -> None:
        self.close()
        self.was_read, self._ticks = False, ()

    async def write(self, at: float) -> None:
        """A failure costs the next leader a few minutes of what we saw."""
        if not self.was_read:
            return
        self._written_at = at
        try:
            number = 0
            async for part in self._parts(at):
                await self.stored.put(f"{self.name}-{number}", {KEY: msgspec.json.encode(part).decode()})
                number += 1
        except NotLeading as error:
            log.debug("recent demand: %s", error)
        except TrimtabError as error:
            log.warning("what was measured in the last minutes is not kept for another leader: %s", error)

    async def _parts(self, at: float) -> AsyncIterator[dict[str, msgspec.Raw]]:
        """By uid, as much as fits into one ConfigMap; ticks go on between two of them."""
        part, size = dict[str, msgspec.Raw](), 0
        for tick in self._ticks:
            await asyncio.sleep(0)
            uid, startups = tick.subject.uid, self.forecasts.witnessed(tick.target.uid)
            found = self.forecasts.demand.recent_of(uid, tick.subject.policy, at, *startups)
            data = msgspec.json.encode(Left(tick.target.ref, found))
            if part and size + len(data) > MOST_BYTES:
                yield part
                part, size = {}, 0
            part[uid], size = msgspec.Raw(data), size + len(data) + len(uid)
        yield part

    async def _read(self, ticks: Sequence[ObjectTick]) -> None:
        by_uid = {tick.subject.uid: tick for tick in ticks}
        try:
            for number in count():
                text = (await self.stored.data(f"{self.name}-{number}")).get(KEY)
                if text is None:
                    break
                for uid, left in msgspec.json.decode(text, type=dict[str, Left]).items():
                    if uid in by_uid and by_uid[uid].target.ref == left.target:  # else it was edited meanwhile
                        self._take(by_uid[uid], left.demand)
        except (TrimtabError, msgspec.DecodeError) as error:
            log.warning("what the leader before measured in its last minutes cannot be read: %s", error)
        self.was_read = True

    def _take(self, tick: ObjectTick, found: RecentDemand) -> None:
        try:
            self.forecasts.demand.load(tick.subject.uid, tick.subject.policy, found)
        except InvalidInput as error:
            log.warning("%s: its last minutes before now are not known: %s", tick.subject.name, error)
        self.forecasts.take_up_startups(tick.target.uid, found.startups_s, found.waits_s)
