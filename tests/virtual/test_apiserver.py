"""The tests' API server says what a real one says, as far as the operator listens."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.virtual import loop
from tests.virtual.apiserver import ApiServer
from tests.virtual.transport import Link
from tests.virtual.workloads import deployment
from trimtab.errors import Refused
from trimtab.wire.access import Access
from trimtab.wire.kube import METADATA, Kube, Patch
from trimtab.wire.objects import ConfigMap, Custom, ManagedWorkload, PartialObject, Scale, WireWorkload
from trimtab.wire.resources import CONFIG_MAPS, DEPLOYMENTS, EVENTS, REPLICA_SETS, Resource
from trimtab.wire.watch import Informer

PATH = "/apis/apps/v1/namespaces/shop/deployments/web"
AUTOSCALERS = Resource("trimtab.dev", "v1alpha1", "autoscalers", "Autoscaler")


def asked(work: Callable[[ApiServer, Kube], Awaitable[None]]) -> ApiServer:
    server = ApiServer(lambda: 1_750_000_000.0)
    server.put(PATH, deployment("shop/web"))

    async def run() -> None:
        async with Kube(Access("http://cluster", transport=Link(server, "me").transport)) as kube:
            await work(server, kube)

    loop.run(run())
    return server


def test_a_write_with_an_old_version_is_a_conflict_and_every_request_is_audited() -> None:
    async def work(server: ApiServer, kube: Kube) -> None:
        found = await kube.get(WireWorkload, DEPLOYMENTS, "shop", "web")
        body = {"metadata": {"resourceVersion": found.metadata.resource_version}, "spec": {"replicas": 5}}
        scaled = await kube.patch(Scale, DEPLOYMENTS, "shop", "web", body, subresource="scale")
        assert scaled.spec.replicas == 5
        with pytest.raises(Refused) as refusal:
            await kube.patch(Scale, DEPLOYMENTS, "shop", "web", body, subresource="scale")
        assert refusal.value.status == 409

    audit = asked(work).audit
    assert [(each.who, each.verb, each.status) for each in audit] == [
        ("me", "get", 200),
        ("me", "patch", 200),
        ("me", "patch", 409),
    ]


def test_who_changes_a_field_owns_it_and_an_apply_gives_up_what_it_leaves_out() -> None:
    async def work(server: ApiServer, kube: Kube) -> None:
        await kube.patch(Scale, DEPLOYMENTS, "shop", "web", {"spec": {"replicas": 5}}, subresource="scale")
        found = await kube.get(ManagedWorkload, DEPLOYMENTS, "shop", "web")
        assert found.metadata.is_ours_alone("spec", "replicas") and not found.metadata.is_ours("spec", "template")
        body = {"metadata": {"name": "a", "namespace": "shop"}, "spec": {"x": 1, "y": 2}}
        await kube.apply(Custom, AUTOSCALERS, body)
        after = await kube.apply(Custom, AUTOSCALERS, body | {"spec": {"x": 1}})
        assert after.spec == {"x": 1}
        other = {"metadata": {"name": "a", "namespace": "shop"}, "spec": {"x": 3}}
        with pytest.raises(Refused, match="conflicts with trimtab"):
            await kube.patch(Custom, AUTOSCALERS, "shop", "a", other, Patch.APPLY, manager="somebody")

    asked(work)


def test_status_has_its_own_door() -> None:
    async def work(server: ApiServer, kube: Kube) -> None:
        body: dict[str, Any] = {"metadata": {"name": "a", "namespace": "shop"}, "spec": {"x": 1}, "status": {"y": 1}}
        assert (await kube.apply(Custom, AUTOSCALERS, body)).status == {}
        said = await kube.apply(Custom, AUTOSCALERS, body | {"spec": {"x": 2}}, subresource="status")
        assert (said.spec, said.status, said.metadata.generation) == ({"x": 1}, {"y": 1}, 1)

    asked(work)


@pytest.mark.parametrize("path", ["/apis/apps/v1/replicants", "/apis/none/v1", f"{PATH}/log", "/elsewhere"])
def test_a_path_that_is_none_is_not_found(path: str) -> None:
    async def work(server: ApiServer, kube: Kube) -> None:
        with pytest.raises(Refused) as refusal:
            await kube.raw(path)
        assert refusal.value.status == 404

    asked(work)


def test_lists_come_in_pages() -> None:
    async def work(server: ApiServer, kube: Kube) -> None:
        for number in range(1100):
            server.put(f"/api/v1/namespaces/shop/events/e{number:04d}", {})
        assert len((await kube.list(Custom, EVENTS, "shop")).items) == 1100

    assert len(asked(work).audit) == 3


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ("metadata.name=web", ["shop/web", "team/web"]),
        ("metadata.namespace!=shop", ["team/api", "team/web"]),
        ("metadata.name=web,metadata.namespace!=shop", ["team/web"]),
    ],
)
def test_lists_are_chosen_by_name_and_namespace(fields: str, found: list[str]) -> None:
    async def work(server: ApiServer, kube: Kube) -> None:
        for name in ("api", "web"):
            server.put(f"/apis/apps/v1/namespaces/team/deployments/{name}", deployment(f"team/{name}"))
        listed = (await kube.list(Custom, DEPLOYMENTS, fields=fields)).items
        assert sorted(f"{item.metadata.namespace}/{item.metadata.name}" for item in listed) == found
        with pytest.raises(Refused, match="field label not supported"):
            await kube.list(Custom, DEPLOYMENTS, fields="spec.replicas=1")

    asked(work)


@pytest.mark.parametrize("streams", [True, False])
def test_an_informer_follows_through_cuts_and_a_forgotten_history(streams: bool) -> None:
    async def work(server: ApiServer, kube: Kube) -> None:
        server.streams_lists = streams
        informer = Informer(kube, WireWorkload, DEPLOYMENTS)
        task = asyncio.create_task(informer.run())
        await asyncio.sleep(1)
        assert len(informer.store) == 1
        server.watching.cut()
        server.put(PATH.replace("web", "api"), deployment("shop/api"))
        server.store.delete(DEPLOYMENTS, "shop", "web")
        server.store.compact()
        await asyncio.sleep(10)
        assert [key[1] for key in informer.store.items] == ["api"]
        await asyncio.sleep(600)  # bookmarks, and the server's own end of a watch
        server.put(PATH, deployment("shop/web"))
        await asyncio.sleep(0)
        await asyncio.sleep(0.1)
        assert len(informer.store) == 2 and informer.store.trouble is None
        task.cancel()

    asked(work)


def test_a_scale_is_a_view_of_its_workload() -> None:
    async def work(server: ApiServer, kube: Kube) -> None:
        with pytest.raises(Refused) as refusal:
            await kube.get(Scale, REPLICA_SETS, "shop", "web", "scale")
        assert refusal.value.status == 404
        with pytest.raises(Refused) as invalid:
            await kube.patch(Scale, DEPLOYMENTS, "shop", "web", {"spec": {"replicas": -1}}, subresource="scale")
        assert invalid.value.status == 422

    asked(work)


def test_who_asks_for_metadata_gets_nothing_else_of_those_that_have_a_label() -> None:
    async def work(server: ApiServer, kube: Kube) -> None:
        for name, labels in (("ours", {"mark": "x"}), ("theirs", {"other": "x"})):
            path = f"/api/v1/namespaces/shop/configmaps/{name}"
            server.put(path, {"metadata": {"labels": labels}, "data": {"large": "..."}})
        found = (await kube.list(PartialObject, CONFIG_MAPS, "shop", labels="mark", accept=METADATA)).items
        assert [(each.metadata.name, each.metadata.labels) for each in found] == [("ours", {"mark": "x"})]
        whole = await kube.list(ConfigMap, CONFIG_MAPS, "shop", labels="mark")
        cut = await kube.list(ConfigMap, CONFIG_MAPS, "shop", labels="mark", accept=METADATA)
        assert [each.data for each in (*whole.items, *cut.items)] == [{"large": "..."}, {}]

    asked(work)
