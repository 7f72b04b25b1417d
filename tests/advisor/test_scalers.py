"""Which of our kinds scales a workload, as the cluster lists them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp import web

from tests.advisor.workloads import target
from tests.virtual import loop
from tests.virtual.apiserver import ApiServer
from tests.virtual.transport import Link
from tests.wire.fake import Fake, script
from trimtab.advisor.scalers import OwnScaler, read_scalers, with_scalers
from trimtab.wire.access import Access
from trimtab.wire.kube import Kube

WEB = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}


def scaler(kind: str, group: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": f"{group}/v1alpha1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "shop"},
        "spec": spec,
    }


def test_the_one_that_acts_is_named() -> None:
    server = ApiServer(lambda: 1_750_000_000.0)
    root = "/apis/autoscaling.crane.io/v1alpha1/namespaces/shop/effectivehorizontalpodautoscalers"
    for name, strategy in (("previews", "Preview"), ("scales", "Auto")):
        spec = {"scaleTargetRef": WEB, "scaleStrategy": strategy}
        made = scaler("EffectiveHorizontalPodAutoscaler", "autoscaling.crane.io", name, spec)
        server.put(f"{root}/{name}", made)

    async def read() -> list[OwnScaler]:
        async with Kube(Access("http://cluster", transport=Link(server, "me").transport)) as kube:
            return await read_scalers(kube, ("shop",))

    found = with_scalers([target("web"), target("api")], loop.run(read()))
    assert [one.scaled_by for one in found] == ["EffectiveHorizontalPodAutoscaler/scales", ""]


@pytest.mark.parametrize("status", [403, 404])
def test_a_cluster_without_our_kinds_or_rights_to_them_has_none(status: int) -> None:
    async def read() -> list[OwnScaler]:
        async with Fake(script(web.Response(status=status))) as fake, fake.kube() as kube:
            return await read_scalers(kube, ("shop",))

    assert asyncio.run(read()) == []
