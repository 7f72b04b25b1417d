"""freeze: the brake of one installation. It is an annotation of its Namespace, and names the installation by its UID.

The UID is that of the operator's ServiceAccount, which a new installation of the same chart does not have. So what an
uninstall froze stays frozen, and the next installation goes on; it takes the old annotation away.
"""

from __future__ import annotations

import asyncio
import logging

from trimtab.errors import Refused, TrimtabError
from trimtab.kinds.annotations import FROZEN, INSTALLATION_UID
from trimtab.live.look.cluster import WatchedCluster
from trimtab.wire.kube import Patch
from trimtab.wire.lease import Leadership
from trimtab.wire.objects import PartialObject
from trimtab.wire.resources import NAMESPACES
from trimtab.wire.whoami import own_uid

AGAIN_S = 10.0
log = logging.getLogger(__name__)


class Freeze:
    """Call `look` between two ticks: it finds out who we are, says loudly that we are frozen, and clears leftovers."""

    def __init__(self, cluster: WatchedCluster, leadership: Leadership) -> None:
        self.cluster, self.leadership = cluster, leadership
        self._work: asyncio.Task[None] | None = None
        self._again_at = float("-inf")
        self._said = False

    @property
    def said(self) -> str:
        """For an administrator; "" while nothing holds us."""
        if not self.cluster.frozen:
            return ""
        home = self.cluster.home
        return (
            f"FROZEN: nothing is scaled and nothing but status is written until `trimtab unfreeze -n {home}` "
            f"(annotation {FROZEN} of namespace {home})"
        )

    def look(self, now: float) -> None:
        """`now` by the clock since boot."""
        if bool(self.said) != self._said:
            self._said = not self._said
            log.warning("%s", self.said or "no longer frozen: scaling goes on")
        if now < self._again_at or (self._work is not None and not self._work.done()):
            return
        if self.cluster.uid is None:
            self._work, self._again_at = asyncio.create_task(self._learn()), now + AGAIN_S
        elif self.cluster.frozen_before and self.leadership.may_write():
            self._work, self._again_at = asyncio.create_task(self._clear()), now + AGAIN_S

    def close(self) -> None:
        if self._work is not None:
            self._work.cancel()

    async def _learn(self) -> None:
        try:
            uid = await own_uid(self.leadership.kube)
        except Refused as refusal:
            log.info("the API server does not say who we are: every freeze of our namespace holds us: %s", refusal)
            uid = ""
        except TrimtabError as trouble:
            log.warning("who we are is not known yet: %s", trouble)
            return
        self.cluster.uid = uid
        if uid:
            self.leadership.tell(INSTALLATION_UID, uid)

    async def _clear(self) -> None:
        home = self.cluster.home
        found = self.cluster.namespaces.store.get("", home)
        if found is None:
            return
        body = {"metadata": {"resourceVersion": found.metadata.resource_version, "annotations": {FROZEN: None}}}
        try:
            await self.leadership.kube.patch(PartialObject, NAMESPACES, "", home, body, Patch.MERGE)
        except TrimtabError as trouble:
            log.info("namespace %s keeps the freeze of an earlier installation: %s", home, trouble)
        else:
            log.warning("namespace %s was frozen for an earlier installation, which is gone: cleared", home)
