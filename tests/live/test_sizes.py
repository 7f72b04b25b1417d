"""Sizes that cannot be had in place: a rollout where that is allowed and nothing forbids it."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from aiohttp import web

from tests.live.build import AT, custom, spec, subject
from tests.wire.fake import Fake
from trimtab.core.model import ContainerSize
from trimtab.errors import Refused
from trimtab.live.act.sizes import keep_sizes
from trimtab.live.look.cluster import ScaleTarget, WatchedCluster
from trimtab.live.look.memory import ObjectMemory
from trimtab.policy import Size
from trimtab.wire.objects import WirePod, WireWorkload
from trimtab.wire.resources import DEPLOYMENTS

SMALL = {"requests": {"cpu": "250m"}}
KNOWN = ObjectMemory(
    sizes={"app": ContainerSize(requests=Size(cpu_cores=0.5))},
    template={"app": ContainerSize(requests=Size(cpu_cores=0.25))},
)


def kept_with(
    pending: str, allowed: int | None, apply: str = "InPlaceOrRecreate"
) -> tuple[ObjectMemory | Refused, list[str]]:
    """What keeping the sizes does for a pod whose resize is `pending`, and a budget that allows so many disruptions."""
    asked: list[str] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        asked.append(request.path.rsplit("/", 1)[-1])
        return web.json_response({})

    async def run() -> ObjectMemory | Refused:
        async with Fake(handler) as fake:
            kube = fake.kube()
            try:
                target, about = _target(), subject(custom(spec=spec(vertical={"apply": apply})))
                return await keep_sizes(kube, _world(WatchedCluster(kube)), about, target, KNOWN, AT)
            except Refused as refusal:
                return refusal
            finally:
                await kube.close()

    def _world(cluster: WatchedCluster) -> WatchedCluster:
        meta: dict[str, Any] = {"name": "a", "namespace": "shop", "labels": {"app": "web"}}
        meta |= {"ownerReferences": [{"uid": "d", "controller": True}]}
        status: dict[str, Any] = {"conditions": [{"type": "PodResizePending", "status": "True", "reason": pending}]}
        body = {"metadata": meta, "spec": {"containers": [{"name": "app", "resources": SMALL}]}, "status": status}
        cluster.pods.store.put(msgspec.convert(body, WirePod))
        if allowed is not None:
            selector = {"selector": {"matchLabels": {"app": "web"}}}
            counted: dict[str, Any] = {"disruptionsAllowed": allowed, "observedGeneration": 1}
            cluster.disruption_budgets.store.put(custom("steady", spec=selector, **counted))
        return cluster

    return asyncio.run(run()), asked


def _target() -> ScaleTarget:
    template = {"spec": {"containers": [{"name": "app", "resources": SMALL}]}}
    body = {"metadata": {"uid": "d"}, "spec": {"replicas": 1, "template": template}}
    body |= {"status": {"replicas": 1, "updatedReplicas": 1}}
    return ScaleTarget(DEPLOYMENTS, "shop", "web", "d", "7", 1, 1, msgspec.convert(body, WireWorkload))


@pytest.mark.parametrize("allowed", [None, 1])
def test_what_is_infeasible_is_rolled_out(allowed: int | None) -> None:
    memory, asked = kept_with("Infeasible", allowed)
    assert asked == ["web"] and isinstance(memory, ObjectMemory) and memory.sizes == {}


def test_a_budget_that_forbids_it_is_named_and_pods_go_on_being_sized_in_place() -> None:
    refusal, asked = kept_with("Infeasible", allowed=0)
    assert asked == ["resize"], "the template stays"
    assert isinstance(refusal, Refused) and "PodDisruptionBudget shop/steady" in str(refusal)


def test_in_place_alone_never_rolls_out() -> None:
    memory, asked = kept_with("Infeasible", allowed=0, apply="InPlace")
    assert asked == ["resize"] and memory == KNOWN
