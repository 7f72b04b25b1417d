"""rollout: how far the fleet's switches have come, in a ConfigMap of the operator's own namespace: no tenant writes it.

While it cannot be read nothing switches.
"""

from __future__ import annotations

import logging

import msgspec

from trimtab.core.nights import Rollout
from trimtab.errors import TrimtabError
from trimtab.live.measure.checkpoint import StoredCheckpoints

KEY = "rollout.json"
log = logging.getLogger(__name__)


class StoredRollout:
    """Read once in each term, written when it changes."""

    def __init__(self, stored: StoredCheckpoints, lease: str) -> None:
        self.stored, self.name = stored, f"{lease}-tuning"
        self.known: Rollout | None = None

    async def read(self) -> Rollout:
        if self.known is None:
            text = (await self.stored.data(self.name)).get(KEY, "")
            try:
                self.known = msgspec.json.decode(text, type=Rollout) if text else Rollout()
            except msgspec.DecodeError as error:
                log.warning("tuning: the rollout of %s begins anew: %s", self.name, error)
                self.known = Rollout()
        return self.known

    async def write(self, rollout: Rollout) -> None:
        """In this term it holds in any case."""
        if rollout == self.known:
            return
        self.known = rollout
        try:
            await self.stored.put(self.name, {KEY: msgspec.json.encode(rollout).decode()})
        except TrimtabError as error:
            log.warning("tuning: how far the rollout has come is not kept over a restart: %s", error)

    def forget(self) -> None:
        self.known = None
