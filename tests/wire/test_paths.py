"""Names are names: no object's text can make a request about anything else than the object it names."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from urllib.parse import unquote

import pytest
from aiohttp import web
from hypothesis import example, given
from hypothesis import strategies as st

from tests.wire.fake import Fake, script
from trimtab.errors import ClusterUnavailable, InvalidInput
from trimtab.wire.objects import Custom, Scale, WirePod
from trimtab.wire.resources import (
    DEPLOYMENTS,
    PODS,
    custom_metric_path,
    external_metric_path,
    namespace_metric_path,
    path_of,
    root_of,
)

ELSEWHERE = "../../../../../apis/apps/v1/namespaces/kube-system/deployments/coredns"
nasty = st.one_of(
    st.text(max_size=12), st.sampled_from(["", ".", "..", ELSEWHERE, "a/b", "%2e%2e", "a?b=c", "a#b", "ü", "a\nb"])
)


@given(st.lists(nasty, min_size=1, max_size=4))
@example(["..", "coredns"])
@example(["a?watch=1#x"])
def test_a_path_holds_the_names_it_was_given_or_is_refused(names: list[str]) -> None:
    try:
        path = path_of(*names)
    except InvalidInput:
        assert any(name in ("", ".", "..") or set("/%") & set(name) or not name.isprintable() for name in names)
        return
    assert [unquote(part) for part in path.split("/")[1:]] == names
    assert not set("?#\\ ") & set(path)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda text: DEPLOYMENTS.path("shop", text, "scale"), id="name"),
        pytest.param(lambda text: DEPLOYMENTS.path(text, "web"), id="namespace"),
        pytest.param(
            lambda text: custom_metric_path("v1beta2", "shop", "services", text, "hits"), id="metric's object"
        ),
        pytest.param(lambda text: custom_metric_path("v1beta2", "shop", "pods", "*", text), id="custom metric"),
        pytest.param(lambda text: namespace_metric_path("v1beta2", "shop", text), id="metric of a namespace"),
        pytest.param(lambda text: external_metric_path("shop", text), id="external metric"),
        pytest.param(root_of, id="apiVersion"),
    ],
)
@pytest.mark.parametrize("text", [ELSEWHERE, "..", ".", "../api/v1/pods", "%2e%2e", "a\nb"])
def test_no_part_of_a_path_leads_elsewhere(make: Callable[[str], str], text: str) -> None:
    with pytest.raises(InvalidInput):
        make(text)


def test_odd_names_reach_the_server_as_they_were_given() -> None:
    names = ["a b", "a?x=y", "a#b", "pubsub|subscription", "ü", "a+b&c", "a;b"]

    async def run() -> list[str]:
        async with Fake(script(web.json_response({}))) as fake, fake.kube() as kube:
            for name in names:
                await kube.get(Scale, DEPLOYMENTS, "shop", name, "scale")
            assert all(request.query_string == "" for request in fake.requests)
            return [request.rel_url.path for request in fake.requests]

    assert asyncio.run(run()) == [f"/apis/apps/v1/namespaces/shop/deployments/{name}/scale" for name in names]


def test_a_name_that_leads_elsewhere_never_becomes_a_request() -> None:
    async def run() -> None:
        async with Fake(script(web.json_response({}))) as fake, fake.kube() as kube:
            with pytest.raises(InvalidInput):
                await kube.patch(Scale, DEPLOYMENTS, "shop", ELSEWHERE, {}, subresource="scale")
            with pytest.raises(InvalidInput):
                await kube.resource("../api/v1/pods", "Deployment")
            assert fake.requests == []

    asyncio.run(run())


@pytest.mark.parametrize(
    "meta",
    [{"name": "coredns", "namespace": "shop"}, {"name": "web", "namespace": "kube-system"}],
    ids=["another name", "another namespace"],
)
def test_an_answer_about_another_object_is_none(meta: dict[str, str]) -> None:
    async def run() -> None:
        async with Fake(script(web.json_response({"metadata": meta}))) as fake, fake.kube() as kube:
            with pytest.raises(ClusterUnavailable, match="not asked for"):
                await kube.get(WirePod, PODS, "shop", "web")
            with pytest.raises(ClusterUnavailable, match="not asked for"):
                await kube.patch(WirePod, PODS, "shop", "web", {})
        listed = {"items": [{"metadata": {"name": "web", "namespace": "kube-system"}}]}
        async with Fake(script(web.json_response(listed))) as fake, fake.kube() as kube:
            with pytest.raises(ClusterUnavailable, match="not asked for"):
                await kube.list(Custom, DEPLOYMENTS, "shop")
            assert len((await kube.list(Custom, DEPLOYMENTS)).items) == 1

    asyncio.run(run())
