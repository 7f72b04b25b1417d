"""The thin client on a real API server: every verb, the informer through a restart, leadership, permissions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tests.bed import PATIENCE_S, Bed
from tests.bed.waiting import until
from trimtab.errors import Refused
from trimtab.wire.access import prometheus_access
from trimtab.wire.discover import find_prometheus
from trimtab.wire.kube import Kube, Patch
from trimtab.wire.kubeconfig import connect
from trimtab.wire.lease import Leadership
from trimtab.wire.objects import Custom, Lease, Scale, WirePod, WireWorkload
from trimtab.wire.prometheus import Prometheus
from trimtab.wire.resources import CONFIG_MAPS, DEPLOYMENTS, LEASES, PODS
from trimtab.wire.watch import Informer

pytestmark = pytest.mark.e2e


def deployment(namespace: str, name: str, replicas: int = 0) -> dict[str, Any]:
    labels = {"app": name}
    container = {"name": "main", "image": "any", "resources": {"requests": {"cpu": "250m"}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def config_map(namespace: str, name: str, **annotations: str) -> dict[str, Any]:
    meta = {"name": name, "namespace": namespace, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}


def on(bed: Bed, test: Callable[[Kube], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        async with Kube(connect(kubeconfig=str(bed.kubeconfig))) as kube:
            await test(kube)

    asyncio.run(run())


async def scaled_to_two(kube: Kube, namespace: str) -> dict[str, Any]:
    """The patch that did it. The Deployment's own controller may write between our reading and our writing."""
    while True:
        scale = await kube.get(Scale, DEPLOYMENTS, namespace, "web", "scale")
        guarded = {"metadata": {"resourceVersion": scale.metadata.resource_version}, "spec": {"replicas": 2}}
        try:
            written = await kube.patch(Scale, DEPLOYMENTS, namespace, "web", guarded, subresource="scale")
        except Refused as refusal:
            if refusal.status != 409:
                raise
            continue
        assert written.spec.replicas == 2
        return guarded


@pytest.mark.smoke
def test_every_verb_and_patch(bed: Bed, namespace: str) -> None:
    async def run(kube: Kube) -> None:
        made = await kube.create(WireWorkload, DEPLOYMENTS, namespace, deployment(namespace, "web"))
        assert made.spec.template.spec.containers[0].resources.requests == {"cpu": "250m"}
        guarded = await scaled_to_two(kube, namespace)
        refused_before = kube.counts["patch", "deployments", 409]
        with pytest.raises(Refused) as conflict:
            await kube.patch(Scale, DEPLOYMENTS, namespace, "web", guarded, subresource="scale")
        assert conflict.value.status == 409

        limits = {
            "spec": {"template": {"spec": {"containers": [{"name": "main", "resources": {"limits": {"cpu": "1"}}}]}}}
        }
        merged = await kube.patch(WireWorkload, DEPLOYMENTS, namespace, "web", limits, Patch.STRATEGIC)
        assert merged.spec.template.spec.containers[0].image == "any"  # merged into the list, not over it
        step = [{"op": "replace", "path": "/spec/replicas", "value": 1}]
        assert (await kube.patch(WireWorkload, DEPLOYMENTS, namespace, "web", step, Patch.JSON)).spec.replicas == 1

        await kube.delete(DEPLOYMENTS, namespace, "web")
        with pytest.raises(Refused) as gone:
            await kube.get(WireWorkload, DEPLOYMENTS, namespace, "web")
        assert gone.value.status == 404
        assert kube.counts["patch", "deployments", 409] == refused_before + 1

    on(bed, run)


@pytest.mark.smoke
def test_server_side_apply_respects_other_managers_unless_forced(bed: Bed, namespace: str) -> None:
    async def run(kube: Kube) -> None:
        theirs = config_map(namespace, "shared") | {"data": {"key": "theirs"}}
        await kube.patch(Custom, CONFIG_MAPS, namespace, "shared", theirs, Patch.APPLY, manager="somebody")
        ours = config_map(namespace, "shared") | {"data": {"key": "ours"}}
        with pytest.raises(Refused, match="somebody") as conflict:
            await kube.apply(Custom, CONFIG_MAPS, ours, force=False)
        assert conflict.value.status == 409
        await kube.apply(Custom, CONFIG_MAPS, ours)

    on(bed, run)


def test_lists_are_paged(bed: Bed, namespace: str) -> None:
    async def run(kube: Kube) -> None:
        kube.budget.per_s, kube.budget.burst = 1000.0, 1000.0
        made = (kube.create(Custom, CONFIG_MAPS, namespace, config_map(namespace, f"c{i}")) for i in range(520))
        await asyncio.gather(*made)
        listing = await kube.list(Custom, CONFIG_MAPS, namespace)
        assert len({item.metadata.name for item in listing.items}) >= 520
        assert listing.resource_version
        assert kube.counts["list", "configmaps", 200] == 2

    on(bed, run)


@pytest.mark.smoke
def test_kinds_are_discovered(bed: Bed) -> None:
    async def run(kube: Kube) -> None:
        controller = await kube.resource("v1", "ReplicationController")
        assert (controller.plural, controller.namespaced, controller.scalable) == ("replicationcontrollers", True, True)
        role = await kube.resource("rbac.authorization.k8s.io/v1", "ClusterRole")
        assert (role.namespaced, role.scalable) == (False, False)
        with pytest.raises(Refused, match="no Deploymnet in apps/v1"):
            await kube.resource("apps/v1", "Deploymnet")

    on(bed, run)


@pytest.mark.smoke
def test_a_service_account_is_told_what_it_lacks(bed: Bed, namespace: str) -> None:
    bed.kubectl("create", "serviceaccount", "limited", "-n", namespace)
    kubeconfig = bed.kubeconfig_for(namespace, "limited")

    async def run() -> None:
        async with Kube(connect(kubeconfig=str(kubeconfig))) as kube:
            with pytest.raises(Refused, match='cannot list resource "pods"') as refusal:
                await kube.list(WirePod, PODS, namespace)
            assert refusal.value.status == 403

    asyncio.run(run())


@pytest.mark.smoke
def test_an_informer_streams_its_first_list_and_follows(bed: Bed, namespace: str) -> None:
    odd = "one\u0085two\u2028three"

    async def run(kube: Kube) -> None:
        await kube.create(Custom, CONFIG_MAPS, namespace, config_map(namespace, "first", note=odd))
        informer = Informer(kube, Custom, CONFIG_MAPS, namespace)
        task = asyncio.create_task(informer.run())
        await asyncio.wait_for(informer.store.synced.wait(), PATIENCE_S)
        first = informer.store.get(namespace, "first")
        assert first is not None
        assert first.metadata.annotations == {"note": odd}
        assert ("list", "configmaps", 200) not in kube.counts  # it came by sendInitialEvents
        await kube.create(Custom, CONFIG_MAPS, namespace, config_map(namespace, "second"))
        await until(lambda: informer.store.get(namespace, "second"))
        await kube.delete(CONFIG_MAPS, namespace, "first")
        await until(lambda: informer.store.get(namespace, "first") is None)
        assert kube.counts["watch", "configmaps", 200] == 1
        task.cancel()

    on(bed, run)


@pytest.mark.smoke
def test_discovery_of_the_metrics_server(bed: Bed, namespace: str) -> None:
    ports = [{"name": "http", "port": 9090}]
    for name in ("prometheus-k8s", "thanos-query", "prometheus-operator"):
        meta = {"name": name, "namespace": namespace}
        bed.apply({"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {"ports": ports}})

    async def run(kube: Kube) -> None:
        found = await find_prometheus(kube, namespace)
        assert [(one.product, one.name) for one in found] == [
            ("Thanos", "thanos-query"),
            ("Prometheus", "prometheus-k8s"),
        ]

    on(bed, run)


@pytest.mark.smoke
def test_a_real_prometheus_answers(bed: Bed) -> None:
    async def run() -> None:
        async with Prometheus(prometheus_access(bed.prometheus_url)) as prometheus:
            (sample,) = await prometheus.query("vector(1.5)")
            assert (sample.value, sample.labels) == (1.5, {})
            (series,) = await prometheus.query_range("vector(2)", 1_700_000_000, 1_700_000_120, 60)
            assert bytes(series.values) == b'[[1700000000,"2"],[1700000060,"2"],[1700000120,"2"]]'

    asyncio.run(run())


@pytest.mark.smoke
def test_leadership_is_taken_renewed_and_given_back(bed: Bed, namespace: str) -> None:
    async def run(kube: Kube) -> None:
        long: dict[str, Any] = {
            "duration_s": 600.0,
            "renew_deadline_s": 500.0,
            "retry_s": 0.3,
        }  # it does not end by itself
        a, b = (Leadership(kube.access, namespace, "trimtab", who, **long) for who in ("a", "b"))
        first = asyncio.create_task(a.run())
        await until(a.may_write)
        second = asyncio.create_task(b.run())
        await until(lambda: b.holder == "a")
        before = await kube.get(Lease, LEASES, namespace, "trimtab")

        async def renewed() -> bool:
            lease = await kube.get(Lease, LEASES, namespace, "trimtab")
            return lease.metadata.resource_version != before.metadata.resource_version

        await until(renewed)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await until(b.may_write)
        assert (a.may_write(), b.term) == (False, 1)
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)

    on(bed, run)


@pytest.mark.disruptive
def test_failover_within_20_s_of_a_death_with_the_defaults(bed: Bed, namespace: str) -> None:
    async def run(kube: Kube) -> None:
        a, b = (Leadership(kube.access, namespace, "trimtab", who) for who in ("a", "b"))
        await a._try()  # and never renews: as if killed with -9 right afterwards
        task = asyncio.create_task(b.run())
        assert await until(b.may_write) <= 20.0
        assert not a.may_write()
        task.cancel()

    on(bed, run)


async def relists_from_a_forgotten_version(kube: Kube, version: str) -> None:
    """A restarted API server remembers nothing from before its start: 410."""
    informer = Informer(kube, Custom, CONFIG_MAPS, "default")
    informer._version = version
    task = asyncio.create_task(informer.run())
    await asyncio.wait_for(informer.store.synced.wait(), PATIENCE_S)
    assert informer.store.get("default", "before")
    task.cancel()


@pytest.mark.disruptive
def test_an_informer_survives_a_restart_of_the_api_server() -> None:
    with Bed.start(parts=("etcd", "apiserver")) as bed:

        async def run(kube: Kube) -> None:
            informer = Informer(kube, Custom, CONFIG_MAPS, "default")
            task = asyncio.create_task(informer.run())
            await asyncio.wait_for(informer.store.synced.wait(), PATIENCE_S)
            first_version = informer._version
            await kube.create(Custom, CONFIG_MAPS, "default", config_map("default", "before"))
            await until(lambda: informer.store.get("default", "before"))
            await asyncio.to_thread(bed.stop_part, "apiserver")
            await until(lambda: informer.store.trouble is not None)
            assert informer.store.get("default", "before")  # what was known stays known
            await asyncio.to_thread(bed.start_part, "apiserver")
            await kube.create(Custom, CONFIG_MAPS, "default", config_map("default", "after"))
            assert await until(lambda: informer.store.get("default", "after")) < 15.0
            assert informer.store.trouble is None
            assert not task.done()
            task.cancel()
            await relists_from_a_forgotten_version(kube, first_version)

        on(bed, run)
