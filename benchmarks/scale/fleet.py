"""The fleet: Deployments over many namespaces with an Autoscaler each, most by CPU, some by queries or sized."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec

from benchmarks.scale.control_plane import HOME, lighten
from tests.bed import Bed, eventually
from tests.bed.manifests import deployment
from tests.live.running import autoscaler
from trimtab.live.tell.status import worth_writing
from trimtab.wire.budget import Budget
from trimtab.wire.kube import Kube
from trimtab.wire.kubeconfig import connect
from trimtab.wire.objects import Custom
from trimtab.wire.resources import DEPLOYMENTS

CORES, QUEUE = 0.125, 10.0  # per pod: exactly its target of 50 % of 0.25 cores, and of 10 messages
CONNECTIONS = 16
NODE_PODS = 1000  # a kubelet of a thousand pods answers soon enough
KINDS = ("cpu", "cpu", "cpu", "cpu", "cpu", "cpu", "query", "query", "forecast", "vertical")  # of every ten

Item = TypeVar("Item")


class Member(NamedTuple):
    namespace: str
    name: str
    kind: str

    @property
    def key(self) -> tuple[str, str]:
        return self.namespace, self.name


class Generation(msgspec.Struct):
    generation: int = 0


class Wish(msgspec.Struct):
    replicas: int = 1


class Rolled(msgspec.Struct, rename="camel"):
    observed_generation: int = 0
    replicas: int = 0
    updated_replicas: int = 0
    ready_replicas: int = 0


class Rollout(msgspec.Struct):
    """How far a Deployment is."""

    metadata: Generation
    spec: Wish
    status: Rolled = msgspec.field(default_factory=Rolled)

    @property
    def is_done(self) -> bool:
        status, wanted = self.status, self.spec.replicas
        known = status.observed_generation == self.metadata.generation
        return known and status.replicas == status.updated_replicas == status.ready_replicas == wanted


class Fleet(NamedTuple):
    """`mixed` or all by CPU."""

    members: tuple[Member, ...]
    pods_each: int

    @classmethod
    def of(cls, objects: int, namespaces: int, pods_each: int, mixed: bool) -> Fleet:
        kinds = KINDS if mixed else ("cpu",)
        numbers = range(objects)
        members = (
            Member(
                f"fleet-{number % namespaces:03}", f"web-{number:05}", kinds[_spread(number, namespaces) % len(kinds)]
            )
            for number in numbers
        )
        return cls(tuple(members), pods_each)

    @property
    def namespaces(self) -> list[str]:
        return sorted({member.namespace for member in self.members})

    @property
    def pods(self) -> int:
        return self.pods_each * len(self.members)

    @property
    def nodes(self) -> int:
        return 3 + self.pods // NODE_PODS

    def tenth(self) -> list[Member]:
        """As many as a tenth of all, of those that follow CPU alone."""
        by_cpu, count = [member for member in self.members if member.kind == "cpu"], len(self.members) // 10
        return by_cpu[:: len(by_cpu) // count][:count]


def _spread(number: int, namespaces: int) -> int:
    """So that each namespace has some of each kind."""
    return number + number // namespaces


def scaler(member: Member) -> dict[str, Any]:
    if member.kind == "query":
        query = f'sum(queue_length{{namespace="{member.namespace}",app="{member.name}"}})'
        target = {"type": "AverageValue", "averageValue": f"{QUEUE:g}"}
        metrics = [{"type": "Prometheus", "prometheus": {"query": query, "target": target}}]
        return autoscaler(*member.key, metrics=metrics)
    if member.kind == "forecast":
        return autoscaler(*member.key, forecast={"model": "seasonal"})
    if member.kind == "vertical":
        return autoscaler(*member.key, vertical={"apply": "Never"})
    return autoscaler(*member.key)


def create(bed: Bed, objects: Sequence[dict[str, Any]]) -> None:
    async def made(kube: Kube, each: dict[str, Any]) -> None:
        resource = await kube.resource(each["apiVersion"], each["kind"])
        await kube.create(Custom, resource, each["metadata"].get("namespace", ""), each)

    _for_each(bed, made, objects)


def patch(bed: Bed, members: Sequence[Member], body: dict[str, Any], subresource: str = "") -> None:
    """The Deployments of these."""

    async def patched(kube: Kube, member: Member) -> None:
        await kube.patch(Custom, DEPLOYMENTS, *member.key, body, subresource=subresource, manager="benchmark")

    _for_each(bed, patched, members)


def _for_each(bed: Bed, ask: Callable[[Kube, Item], Awaitable[None]], items: Iterable[Item]) -> None:
    """Many at a time: kubectl limits its own rate."""

    async def all_asked() -> None:
        waiting = iter(items)
        async with Kube(connect(kubeconfig=str(bed.kubeconfig)), Budget(per_s=1000, burst=1000)) as kube:

            async def work() -> None:
                for item in waiting:
                    await ask(kube, item)

            await asyncio.gather(*(work() for _ in range(CONNECTIONS)))

    asyncio.run(all_asked())


def build(bed: Bed, fleet: Fleet) -> None:
    """All pods ready and measured."""
    lighten(bed)
    spaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in fleet.namespaces]
    create(bed, [*spaces, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}}])
    create(bed, [_deployment(fleet, number) for number in range(len(fleet.members))])
    limit_s = 600 + fleet.pods / 10
    eventually(lambda: ready(bed) == fleet.pods, limit_s, f"{fleet.pods} pods ready", every_s=15)
    eventually(lambda: measured(bed) == fleet.pods, limit_s, f"{fleet.pods} pods measured", every_s=3)


def ready(bed: Bed) -> int:
    return sum(found.status.ready_replicas for found in rollouts(bed))


def _deployment(fleet: Fleet, number: int) -> dict[str, Any]:
    """Its pods know their node: a scheduler would only take its time."""
    pods = fleet.pods_each
    load = json.dumps({"cores": CORES * pods, "queue": QUEUE * pods})
    found = deployment(*fleet.members[number].key, replicas=pods, annotations={"load": load})
    found["spec"]["template"]["spec"]["nodeName"] = f"node-{number % fleet.nodes}"
    return found


def rollouts(bed: Bed) -> list[Rollout]:
    async def listed() -> list[Rollout]:
        async with Kube(connect(kubeconfig=str(bed.kubeconfig))) as kube:
            return (await kube.list(Rollout, DEPLOYMENTS)).items

    return asyncio.run(listed())


def statuses(bed: Bed) -> dict[tuple[str, str], Any]:
    """What is said of each object, its memory included, but measurements and wording."""

    async def listed() -> list[Custom]:
        async with Kube(connect(kubeconfig=str(bed.kubeconfig))) as kube:
            return (await kube.list(Custom, await kube.resource("trimtab.dev/v1alpha1", "Autoscaler"))).items

    return {(each.metadata.namespace, each.metadata.name): worth_writing(each.status) for each in asyncio.run(listed())}


def measured(bed: Bed) -> int:
    return bed.kubectl("get", "--raw", "/apis/metrics.k8s.io/v1beta1/pods").count('"window"')


def set_load(bed: Bed, members: Sequence[Member], cores: float) -> None:
    """Of all pods of each together, of all of them at once."""
    bed.loads([{"namespace": namespace, "app": name, "cores": cores} for namespace, name, _ in members])
