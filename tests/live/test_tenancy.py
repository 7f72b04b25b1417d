"""Whose queries Prometheus is asked: each namespace its own series, the labelled ones, or everybody."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from aiohttp import web

from tests.live.memory_api import MemoryApi
from tests.wire.fake import Fake
from trimtab.core.model import Missing, Reason, Samples, TotalSample
from trimtab.live.look.cluster import SYSTEM_NAMESPACES, WatchedCluster
from trimtab.live.measure.gather import Gather, Wanted
from trimtab.live.measure.tenancy import QueryTenancy
from trimtab.live.settings import OperatorSettings
from trimtab.policy import Metric, MetricKind, Total
from trimtab.wire.access import Access
from trimtab.wire.prometheus import Prometheus

SECRET = Total(metric=Metric(kind=MetricKind.PROMETHEUS, query="sum(bank_balance)"), target=10)


def asked(tenancy: QueryTenancy) -> tuple[list[Samples | Missing], list[Any]]:
    """The answers to two tenants' equal queries, and the forms that reached the server."""
    forms: list[Any] = []

    async def prometheus(request: web.Request) -> web.StreamResponse:
        forms.append(dict(await request.post()))
        data = {"resultType": "vector", "result": [{"metric": {}, "value": [time.time(), "42"]}]}
        return web.json_response({"status": "success", "data": data})

    async def run() -> list[Samples | Missing]:
        async with Fake(prometheus) as fake:
            kube, server = fake.kube(), Prometheus(Access(fake.url))
            wanted = [Wanted(namespace, (SECRET,), ()) for namespace in ("bank", "tenant")]
            found = await Gather(kube, server, tenancy=tenancy).gather(wanted, time.time())
            await kube.close()
            await server.close()
            return [samples[0] for samples in found.samples]

    return asyncio.run(run()), forms


def test_a_label_proxy_is_told_whose_query_it_is() -> None:
    found, forms = asked(QueryTenancy("label-proxy"))
    assert sorted(form["namespace"] for form in forms) == ["bank", "tenant"], "one question each, never shared"
    assert all(isinstance(sample, TotalSample) for sample in found)


def test_by_label_refuses_before_anything_is_asked() -> None:
    found, forms = asked(QueryTenancy("by-label", lambda namespace: namespace == "bank"))
    assert isinstance(found[0], TotalSample) and len(forms) == 1
    refused = found[1]
    assert isinstance(refused, Missing) and refused.reason is Reason.NOT_ALLOWED
    assert "kubectl label namespace tenant trimtab.dev/prometheus=true" in refused.detail
    assert "42" not in refused.detail


def test_open_asks_equal_queries_once_without_a_namespace() -> None:
    found, forms = asked(QueryTenancy())
    assert len(forms) == 1 and "namespace" not in forms[0]
    assert all(isinstance(sample, TotalSample) for sample in found)


@pytest.mark.parametrize("labels, allowed", [({"trimtab.dev/prometheus": "true"}, True), ({}, False), (None, False)])
def test_the_label_is_the_namespaces_own(labels: dict[str, str] | None, allowed: bool) -> None:
    api = MemoryApi()
    api.put("/api/v1/namespaces/tenant", {"metadata": {"name": "tenant", "labels": labels}})
    cluster = WatchedCluster(api.kube())
    api.follow(cluster)
    assert cluster.may_query("tenant") is allowed and not cluster.may_query("unknown")


@pytest.mark.parametrize("namespace", SYSTEM_NAMESPACES)
def test_the_clusters_own_namespaces_are_left_alone_unless_named(namespace: str) -> None:
    api = MemoryApi()
    cluster = WatchedCluster(api.kube())
    api.follow(cluster)
    assert cluster.enabled("shop") and not cluster.enabled(namespace)
    cluster.served_system = (namespace,)
    assert cluster.enabled(namespace)


def test_a_label_proxy_is_not_asked_for_many_namespaces_at_once() -> None:
    proxy = Access("http://proxy")
    assert OperatorSettings().history(proxy) == proxy
    assert OperatorSettings(tenancy="label-proxy").history(proxy) is None
    found = OperatorSettings(tenancy="label-proxy", history_url="http://prometheus").history(proxy)
    assert found is not None and found.url == "http://prometheus"
