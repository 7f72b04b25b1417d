"""own_operators: a namespace with an operator of its own is left to that one by an operator of the whole cluster.

The Lease of such an operator lies in the namespace that it serves, and says so. A tenant who makes one by hand switches
autoscaling off where he may anyway, in his own namespace.
"""

from __future__ import annotations

import logging

from trimtab.kinds.annotations import SERVES
from trimtab.live.look.cluster import WatchedCluster
from trimtab.wire.objects import Lease

log = logging.getLogger(__name__)
USUAL_LEASE_S = 15.0


class OwnOperators:
    """`look` before each tick: what is left to others stands in the cluster."""

    def __init__(self, cluster: WatchedCluster) -> None:
        self.cluster = cluster
        self._seen: dict[str, tuple[str, float]] = {}  # by namespace: the version of its Lease, and since when

    def look(self, now: float) -> None:
        """`now` by the clock since boot."""
        if self.cluster.namespace:
            return
        held = [lease for lease in self.cluster.leases.store if self._is_of_one_namespace(lease)]
        self._seen = {lease.metadata.namespace: self._since(lease, now) for lease in held}
        left = frozenset(lease.metadata.namespace for lease in held if self._may_be_held(lease))
        if left != self.cluster.left:
            log.warning("namespaces with an operator of their own, which are left to it: %s", sorted(left) or "none")
            self.cluster.left = left

    def _is_of_one_namespace(self, lease: Lease) -> bool:
        meta = lease.metadata
        serves = (meta.annotations or {}).get(SERVES)
        return serves == meta.namespace != self.cluster.home and bool(lease.spec.holder_identity)

    def _since(self, lease: Lease, now: float) -> tuple[str, float]:
        version, since = self._seen.get(lease.metadata.namespace, ("", now))
        return (
            (version, since) if version == lease.metadata.resource_version else (lease.metadata.resource_version, now)
        )

    def _may_be_held(self, lease: Lease) -> bool:
        """From when we saw its last renewal to when we last heard of any, by our own clock.

        While nothing is heard nobody knows that it was not renewed: a watch that is silent gives no namespace away.
        """
        lasts_s = float(lease.spec.lease_duration_seconds or USUAL_LEASE_S)
        return self.cluster.leases.store.heard_at - self._seen[lease.metadata.namespace][1] < lasts_s
