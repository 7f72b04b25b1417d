"""cluster: the collections of the API server that the operator follows, and the workloads and pods found in them."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Generic, NamedTuple, TypeVar

from trimtab.core.model import Pod
from trimtab.errors import ClusterUnavailable, InvalidInput, Refused, TrimtabError
from trimtab.kinds.annotations import ENABLED, FROZEN, PROMETHEUS_ALLOWED
from trimtab.live.look.members import Members
from trimtab.wire.kube import Kube
from trimtab.wire.objects import (
    Blocker,
    Custom,
    Followed,
    FollowedHpa,
    FollowedScaler,
    HasMeta,
    Lease,
    Node,
    PartialObject,
    Scale,
    WirePod,
    WireWorkload,
)
from trimtab.wire.resources import (
    DAEMON_SETS,
    DEPLOYMENTS,
    DISRUPTION_BUDGETS,
    HPAS,
    LEASES,
    LIMIT_RANGES,
    NAMESPACES,
    NODES,
    PODS,
    REPLICA_SETS,
    RESOURCE_QUOTAS,
    STATEFUL_SETS,
    MissingTargets,
    Resource,
)
from trimtab.wire.shards import ALONE, LEASE, Shard
from trimtab.wire.watch import Informer, Store

T = TypeVar("T", bound=HasMeta)
SYSTEM_NAMESPACES = ("kube-system", "kube-public", "kube-node-lease")
UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
LOOK_AGAIN_S = 10.0  # for kinds whose CRD is not installed (yet)
OURS = (
    ("trimtab.dev/v1alpha1", "Autoscaler"),
    ("autoscaling.crane.io/v1alpha1", "EffectiveHorizontalPodAutoscaler"),
    ("autoscaling.k8s.io/v1alpha1", "Hvpa"),
)
SCALED_OBJECT = ("keda.sh/v1alpha1", "ScaledObject")
VPA = ("autoscaling.k8s.io/v1", "VerticalPodAutoscaler")
WPA = ("datadoghq.com/v1alpha1", "WatermarkPodAutoscaler")
PHPA = ("jamiethompson.me/v1alpha1", "PredictiveHorizontalPodAutoscaler")
log = logging.getLogger(__name__)


class Feed(Generic[T]):
    """One collection; of a kind that the cluster may not have, it waits until there is one."""

    def __init__(
        self,
        kube: Kube,
        kind: type[T],
        where: Resource | tuple[str, str],
        namespace: str = "",
        fields: str = "",
        keep: Callable[[T], bool] | None = None,
    ) -> None:
        self.kube, self.kind, self.where, self.namespace, self.fields = kube, kind, where, namespace, fields
        self.store: Store[T] = Store(keep)
        self.resource = where if isinstance(where, Resource) else None
        self.absent = False  # the cluster has no such kind (yet)
        self.given_up = False  # we may not see it, and do without

    @property
    def name(self) -> str:
        return self.where.plural if isinstance(self.where, Resource) else self.where[1]

    @property
    def settled(self) -> bool:
        """Its content is known, or it is known that there is none for us."""
        return self.store.synced.is_set() or self.absent or self.given_up

    @property
    def trouble(self) -> TrimtabError | None:
        """Why it is not being followed right now; a kind that the cluster does not have is none."""
        return None if self.absent or self.given_up else self.store.trouble

    @property
    def unseen(self) -> bool:
        """Of a kind that is no part of Kubernetes nothing could be read so far: nobody waits for it."""
        return self.store.trouble is not None and isinstance(self.where, tuple) and not self.settled

    async def run(self) -> None:
        resource = self.resource = await self._find()
        informer = Informer(self.kube, self.kind, resource, self.namespace, fields=self.fields)
        informer.store = self.store
        await informer.run()

    async def _find(self) -> Resource:
        while True:
            try:
                found = self.where if isinstance(self.where, Resource) else await self.kube.resource(*self.where)
                self.absent, self.store.trouble = False, None
                return found
            except TrimtabError as trouble:
                self.absent = isinstance(trouble, Refused) and trouble.status == HTTPStatus.NOT_FOUND
                if self.store.in_trouble(trouble) and not self.absent:
                    log.warning("%s: %s", self.name, trouble)
            except Exception as bug:  # one kind never stops the others
                log.exception("%s: a bug of trimtab; it is looked for again", self.name)
                self.store.trouble = ClusterUnavailable(f"a bug of trimtab: {bug!r}")
            await asyncio.sleep(LOOK_AGAIN_S)


class ScaleTarget(NamedTuple):
    """The workload as last seen; `workload` is None for kinds of which only the scale is known."""

    resource: Resource
    namespace: str
    name: str
    uid: str
    version: str
    replicas: int
    status_replicas: int
    workload: WireWorkload | None = None

    @property
    def text(self) -> str:
        return f"{self.resource.kind} {self.namespace}/{self.name}"

    @property
    def ref(self) -> str:
        """As its own namespace speaks of it; one that is made anew under its name is the same."""
        return f"{self.resource.kind}/{self.name}"


class WatchedCluster:
    """Everything followed; `namespace` limits it to one, "" means the whole cluster."""

    def __init__(
        self,
        kube: Kube,
        namespace: str = "",
        own: tuple[str, tuple[str, ...]] = ("", ()),
        home: str = "",
        shard: Shard = ALONE,
    ) -> None:
        self.kube, self.namespace, self.home, self.shard = kube, namespace, home, shard  # home: where our Lease is
        self.own = own  # namespace and names of our own workloads, which we never scale
        self.uid: str | None = None  # of our installation; "": it has none; None: not known yet
        self.served_system: tuple[str, ...] = ()  # of SYSTEM_NAMESPACES, those that are not left alone
        keep = self._is_ours if shard.of > 1 else None
        self.ours: dict[str, Feed[Custom]] = {
            kind: Feed(kube, Followed, (version, kind), namespace, keep=keep) for version, kind in OURS
        }
        self.hpas: Feed[Custom] = Feed(kube, FollowedHpa, HPAS, namespace, keep=keep)
        self.scaled_objects: Feed[Custom] = Feed(kube, FollowedScaler, SCALED_OBJECT, namespace, keep=keep)
        self.vpas: Feed[Custom] = Feed(kube, FollowedScaler, VPA, namespace, keep=keep)
        self.wpas: Feed[Custom] = Feed(kube, FollowedScaler, WPA, namespace, keep=keep)
        self.phpas: Feed[Custom] = Feed(kube, FollowedScaler, PHPA, namespace, keep=keep)
        self.workloads = {
            resource.kind: Feed(kube, WireWorkload, resource, namespace, keep=keep)
            for resource in (DEPLOYMENTS, STATEFUL_SETS, REPLICA_SETS, DAEMON_SETS)
        }
        self.pods = Feed(kube, WirePod, PODS, namespace, keep=self._is_pod_of_interest if keep else None)
        fields = f"metadata.name={namespace}" if namespace else ""
        self.namespaces = Feed(kube, PartialObject, NAMESPACES, fields=fields)
        self.nodes = Feed(kube, Node, NODES)
        others = f",metadata.namespace!={home}" if home else ""  # our own renewals would be most of what we hear
        self.leases = Feed(kube, Lease, LEASES, fields=f"metadata.name={LEASE}{others}")
        self.left: frozenset[str] = frozenset()  # namespaces that an operator of their own serves
        self.quotas: Feed[Custom] = Feed(kube, Blocker, RESOURCE_QUOTAS, namespace, keep=keep)
        self.limit_ranges: Feed[Custom] = Feed(kube, Blocker, LIMIT_RANGES, namespace, keep=keep)
        self.disruption_budgets: Feed[Custom] = Feed(kube, Blocker, DISRUPTION_BUDGETS, namespace, keep=keep)
        self.members = Members(self.pods.store, self.workloads["ReplicaSet"].store)
        self._missing_targets = MissingTargets(kube.clock)

    @property
    def own_deployments(self) -> list[WireWorkload]:
        """The operator's own Deployments, where this operator sees its own namespace."""
        store = self.workloads["Deployment"].store
        return [found for name in self.own[1] if (found := store.get(self.own[0], name)) is not None]

    def ready_pods(self, workload: WireWorkload) -> int:
        pods = self.members.facts(workload.metadata.namespace, workload.metadata.uid)
        return sum(1 for pod in pods if pod.ready and not pod.deleting)

    @property
    def others(self) -> list[Feed[Custom]]:
        """By which others scale, beside Kubernetes' own."""
        return [self.scaled_objects, self.vpas, self.wpas, self.phpas]

    @property
    def feeds(self) -> list[Feed[Any]]:
        core: list[Feed[Any]] = [self.hpas, *self.others, self.pods]
        blockers: list[Feed[Any]] = [self.quotas, self.limit_ranges, self.disruption_budgets]
        whole: list[Feed[Any]] = [] if self.namespace else [self.leases]
        return [*self.ours.values(), *self.workloads.values(), *core, *blockers, self.namespaces, self.nodes, *whole]

    def unsettled(self) -> list[str]:
        """What is not known yet, and waited for."""
        return [feed.name for feed in self.feeds if not feed.settled and not feed.unseen]

    async def run(self) -> None:
        lost = {
            "namespaces": f"the label {ENABLED} is not looked at",
            "nodes": "requests may grow beyond the largest of them",
            "leases": "a namespace with an operator of its own is served by both",
        }
        async with asyncio.TaskGroup() as group:
            for feed in self.feeds:
                limited = feed.name in lost if self.namespace else feed is self.leases  # a Role of an older chart
                group.create_task(self._follow_if_seen(feed, lost[feed.name]) if limited else feed.run())

    async def _follow_if_seen(self, feed: Feed[Any], lost: str) -> None:
        """What we may not see is said once, and done without: Roles alone show nothing that has no namespace."""
        assert feed.resource is not None
        while True:
            try:
                await self.kube.raw(feed.resource.path(), {"limit": "1", "fieldSelector": feed.fields})
                break
            except Refused as refusal:
                if refusal.status == HTTPStatus.FORBIDDEN:
                    log.info("%s may not be read: %s", feed.name, lost)
                    feed.given_up = True
                    return
            except TrimtabError as trouble:
                log.warning("%s: %s", feed.name, trouble)
            await asyncio.sleep(LOOK_AGAIN_S)
        await feed.run()

    def _is_ours(self, found: HasMeta) -> bool:
        """Other shards' objects are not kept; the API server cannot choose by the hash of a namespace."""
        return self.shard.owns(found.metadata.namespace)

    def _is_pod_of_interest(self, pod: WirePod) -> bool:
        """DaemonSets everywhere take their share of the nodes."""
        owner = pod.metadata.controller
        return self._is_ours(pod) or (owner is not None and owner.kind == "DaemonSet")

    def enabled(self, namespace: str) -> bool:
        """The opt-out: a namespace labelled trimtab.dev/enabled: "false"; nobody is in before that is known.

        The cluster's own namespaces are out unless they are named: who may write there is no tenant.
        """
        found = self.namespaces.store.get("", namespace)
        if not self.namespaces.settled:
            return False
        if namespace in self.left:
            return False
        if namespace in SYSTEM_NAMESPACES and namespace not in (self.namespace, *self.served_system):
            return False
        return found is None or (found.metadata.labels or {}).get(ENABLED) != "false"

    @property
    def frozen(self) -> bool:
        """The brake of the whole installation: an annotation on the operator's own namespace."""
        return self._freeze not in ("", "false") and not self.frozen_before

    @property
    def frozen_before(self) -> bool:
        """The annotation names another installation, which is gone; whatever else is written there holds us."""
        return bool(self.uid) and self._freeze != self.uid and UID.fullmatch(self._freeze) is not None

    @property
    def _freeze(self) -> str:
        found = self.namespaces.store.get("", self.home)
        return found.metadata.notes.get(FROZEN, "") if found else ""

    def may_query(self, namespace: str) -> bool:
        """The opt-in to Prometheus, where there is one: a namespace labelled trimtab.dev/prometheus: "true"."""
        found = self.namespaces.store.get("", namespace)
        return found is not None and (found.metadata.labels or {}).get(PROMETHEUS_ALLOWED) == "true"

    def pods_of(self, target: ScaleTarget) -> tuple[Pod, ...]:
        return self.members.facts(target.namespace, target.uid)

    async def target(self, namespace: str, api_version: str | None, kind: str, name: str) -> ScaleTarget:
        """The workload an object points at, from what is followed, else by asking for its scale."""
        if namespace == self.own[0] and name in self.own[1] and kind in ("Deployment", "StatefulSet"):
            raise InvalidInput("scaleTargetRef", name, "this is trimtab itself, which it never scales")
        feed = self.workloads.get(kind)
        if feed is None or feed.resource is None or (api_version or "apps/v1") != feed.resource.api_version:
            return await self._asked_for(namespace, api_version or "apps/v1", kind, name)
        found = feed.store.get(namespace, name)
        if found is None:
            raise Refused(f"{kind} {namespace}/{name} does not exist", HTTPStatus.NOT_FOUND)
        if kind == "ReplicaSet" and (owner := found.metadata.controller):
            fix = f"it belongs to {owner.kind}/{owner.name}: point at that"
            raise InvalidInput("scaleTargetRef", f"ReplicaSet/{name}", fix)
        return _target(feed.resource, found)

    def known_now(self, target: ScaleTarget) -> ScaleTarget:
        """The same workload as it is followed by now, where only its status has changed: that happens all the time."""
        feed = self.workloads.get(target.resource.kind) if target.workload else None
        found = feed.store.get(target.namespace, target.name) if feed else None
        now = _target(target.resource, found) if found else target
        return now if (now.uid, now.replicas) == (target.uid, target.replicas) else target

    async def _asked_for(self, namespace: str, api_version: str, kind: str, name: str) -> ScaleTarget:
        """Its scale; what is missing is not asked for at every tick by everybody who names it."""
        whom = (api_version, kind, name)
        self._missing_targets.check(namespace, whom)
        try:
            target = await self._by_scale(namespace, api_version, kind, name)
        except Refused as refusal:
            if refusal.status == HTTPStatus.NOT_FOUND:
                self._missing_targets.note(namespace, whom, str(refusal))
            raise
        self._missing_targets.found(namespace, whom)
        return target

    async def _by_scale(self, namespace: str, api_version: str, kind: str, name: str) -> ScaleTarget:
        resource = await self.kube.resource(api_version, kind, namespace)
        if not resource.scalable:
            fix = "this kind has no scale subresource, or no namespace"
            raise InvalidInput("scaleTargetRef", f"{kind}/{name}", fix)
        try:
            scale = await self.kube.get(Scale, resource, namespace, name, "scale")
        except Refused as refusal:
            if refusal.status != HTTPStatus.FORBIDDEN:
                raise
            grant = f"targets: [{{group: {resource.group}, resource: {resource.plural}}}]"
            raise Refused(f"{refusal}; the chart's values grant it: {grant}", refusal.status) from refusal
        meta, replicas = scale.metadata, scale.spec.replicas
        return ScaleTarget(resource, namespace, name, meta.uid, meta.resource_version, replicas, scale.status.replicas)


def _target(resource: Resource, found: WireWorkload) -> ScaleTarget:
    meta = found.metadata
    replicas = 1 if found.spec.replicas is None else found.spec.replicas
    return ScaleTarget(
        resource, meta.namespace, meta.name, meta.uid, meta.resource_version, replicas, found.status.replicas, found
    )
