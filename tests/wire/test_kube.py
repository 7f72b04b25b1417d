"""What the client does with a server that is slow, rude, restarted or lying."""

from __future__ import annotations

import asyncio
import socket
import time
from typing import Any

import pytest
from aiohttp import web

from tests.virtual import loop
from tests.virtual.apiserver import Reply
from tests.wire.fake import Fake, script
from tests.wire.inside import FINE, Inside
from trimtab.errors import ClusterUnavailable, Refused
from trimtab.wire.access import Access
from trimtab.wire.budget import Budget, Priority
from trimtab.wire.http import Outgoing
from trimtab.wire.kube import Asked, Kube, Patch
from trimtab.wire.objects import Scale, WirePod
from trimtab.wire.resources import CONFIG_MAPS, DEPLOYMENTS, EVENTS, HPAS, PODS


def status(code: int, message: str = "no") -> web.Response:
    return web.json_response({"kind": "Status", "code": code, "message": message}, status=code)


def pod(name: str, **more: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "a", "managedFields": [{"fieldsV1": {"f:x": {}}}]},
        **more,
    }


@pytest.mark.parametrize("code", [403, 404, 409, 410, 422])
def test_a_refusal_carries_its_status_and_sentence(code: int) -> None:
    async def run() -> None:
        async with Fake(script(status(code, "because"))) as fake, fake.kube() as kube:
            with pytest.raises(Refused, match="because") as caught:
                await kube.get(WirePod, PODS, "a", "b")
            assert caught.value.status == code
            assert kube.counts == {("get", "pods", code): 1}

    asyncio.run(run())


def test_a_502_is_tried_again_for_a_read_but_not_for_a_write() -> None:
    bad = web.Response(status=502, body=b"bad gateway")

    async def run() -> None:
        async with Fake(script(bad, web.json_response(pod("b")))) as fake, fake.kube() as kube:
            assert (await kube.get(WirePod, PODS, "a", "b")).metadata.name == "b"
        async with Fake(script(bad)) as fake, fake.kube() as kube:
            with pytest.raises(ClusterUnavailable, match="502"):
                await kube.patch(Scale, DEPLOYMENTS, "a", "b", {}, subresource="scale")
            assert len(fake.requests) == 1  # it may have happened

    asyncio.run(run())


def test_a_502_without_a_content_type_is_unavailable() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 4\r\nConnection: close\r\n\r\n\x00\xff\xfe!")
        writer.close()

    async def run() -> None:
        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            async with Kube(Access(f"http://127.0.0.1:{port}")) as kube:
                with pytest.raises(ClusterUnavailable, match="502"):
                    await kube.get(WirePod, PODS, "a", "b")

    asyncio.run(run())


def test_429_is_waited_for_even_by_a_write() -> None:
    busy = web.Response(status=429, headers={"Retry-After": "1"})

    async def run() -> None:
        async with (
            Fake(script(busy, web.json_response({"spec": {"replicas": 3}}))) as fake,
            fake.kube() as kube,
        ):
            started = time.monotonic()
            scale = await kube.patch(Scale, DEPLOYMENTS, "a", "b", {"spec": {"replicas": 3}}, subresource="scale")
            assert scale.spec.replicas == 3
            assert time.monotonic() - started >= 1.0
            assert len(fake.requests) == 2

    asyncio.run(run())


def test_a_retry_after_beyond_a_tick_is_not_waited_for() -> None:
    async def run() -> None:
        async with (
            Fake(script(web.Response(status=429, headers={"Retry-After": "3600"}))) as fake,
            fake.kube() as kube,
        ):
            with pytest.raises(ClusterUnavailable, match="429"):
                await kube.get(WirePod, PODS, "a", "b")
            assert len(fake.requests) == 1

    asyncio.run(run())


def test_no_server_and_a_login_page_are_both_unavailable() -> None:
    async def run() -> None:
        async with Fake(script(web.Response(text="<html>sign in</html>"))) as fake, fake.kube() as kube:
            with pytest.raises(ClusterUnavailable, match="something else"):
                await kube.get(WirePod, PODS, "a", "b")
        with socket.socket() as taken:  # nobody listens there, and nobody can begin to
            taken.bind(("127.0.0.1", 0))
            kube = Kube(Access(f"http://127.0.0.1:{taken.getsockname()[1]}"))
            with pytest.raises(ClusterUnavailable, match="no answer"):
                await kube.get(WirePod, PODS, "a", "b")
            assert kube.counts[("get", "pods", 0)] == 4
            await kube.close()

    asyncio.run(run())


def test_a_list_is_paged_and_one_bad_object_costs_only_itself() -> None:
    first = web.json_response({"metadata": {"continue": "next"}, "items": [pod("a"), pod("bad", spec="text")]})
    second = web.json_response({"metadata": {"resourceVersion": "7"}, "items": [pod("c")]})

    async def run() -> None:
        async with Fake(script(first, second)) as fake, fake.kube() as kube:
            listing = await kube.list(WirePod, PODS, "a", labels="x=y", fields="spec.nodeName=n")
            assert [item.metadata.name for item in listing.items] == ["a", "c"]
            assert (listing.resource_version, listing.unreadable) == ("7", 1)
            queries = [dict(request.query) for request in fake.requests]
            selectors = {"labelSelector": "x=y", "fieldSelector": "spec.nodeName=n", "limit": "500"}
            assert queries == [selectors, {**selectors, "continue": "next"}]

    asyncio.run(run())


def test_an_expired_continue_token_falls_back_to_one_whole_list() -> None:
    first = web.json_response({"metadata": {"continue": "next"}, "items": [pod("a")]})
    whole = web.json_response({"metadata": {"resourceVersion": "9"}, "items": [pod("a"), pod("b")]})

    async def run() -> None:
        async with Fake(script(first, status(410), whole)) as fake, fake.kube() as kube:
            assert len((await kube.list(WirePod, PODS)).items) == 2
            assert dict(fake.requests[-1].query) == {}

    asyncio.run(run())


def test_what_goes_over_the_wire() -> None:
    async def run() -> None:
        async with Fake(script(web.json_response({}))) as fake, fake.kube() as kube:
            body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "b", "namespace": "a"}}
            await kube.patch(WirePod, PODS, "a", "b", {}, Patch.STRATEGIC, subresource="resize")
            await kube.apply(WirePod, PODS, body, subresource="status")
            await kube.delete(PODS, "a", "b", uid="1-2")
            resize, applied, deleted = fake.requests
            assert resize.path == "/api/v1/namespaces/a/pods/b/resize"
            assert resize.headers["Content-Type"] == "application/strategic-merge-patch+json"
            assert resize.headers["Accept-Encoding"] == "identity"
            assert applied.headers["Content-Type"] == "application/apply-patch+yaml"
            assert dict(applied.query) == {"fieldManager": "trimtab", "force": "true"}
            assert await deleted.json() == {"preconditions": {"uid": "1-2"}}

    asyncio.run(run())


def test_discovery_finds_the_plural_once_and_says_what_is_missing() -> None:
    kinds = {
        "resources": [
            {"name": "rollouts", "kind": "Rollout", "namespaced": True},
            {"name": "rollouts/scale", "kind": "Scale", "namespaced": True},
            {"name": "plans", "kind": "Plan", "namespaced": False},
        ]
    }

    groups = {"groups": [{"name": "argoproj.io", "versions": [{"groupVersion": "argoproj.io/v1alpha1"}]}]}

    async def run() -> None:
        async with Fake(script(web.json_response(groups), web.json_response(kinds))) as fake, fake.kube() as kube:
            rollout = await kube.resource("argoproj.io/v1alpha1", "Rollout")
            plan = await kube.resource("argoproj.io/v1alpha1", "Plan")
            assert rollout.path("a", "b", "scale") == "/apis/argoproj.io/v1alpha1/namespaces/a/rollouts/b/scale"
            assert (rollout.scalable, plan.scalable) == (True, False)
            assert plan.path("a", "b") == "/apis/argoproj.io/v1alpha1/plans/b"
            for number in range(100):
                with pytest.raises(Refused, match="install its CRD"):
                    await kube.resource(f"nobody-{number}.example.com/v1", "Thing")
            assert [asked.path for asked in fake.requests] == ["/apis", "/apis/argoproj.io/v1alpha1"]
            with pytest.raises(Refused, match=r"no Rolout in argoproj\.io/v1alpha1"):
                await kube.resource("argoproj.io/v1alpha1", "Rolout")
        async with Fake(script(status(404))) as fake, fake.kube() as kube:
            with pytest.raises(Refused, match="install its CRD"):
                await kube.resource("gone.example.com/v1", "Thing")
        async with Fake(script(status(403), web.json_response(kinds))) as fake, fake.kube() as kube:
            assert await kube.resource("argoproj.io/v1alpha1", "Rollout"), "who may not list the groups asks for each"

    asyncio.run(run())


def test_the_budget_slows_down_and_counts() -> None:
    async def run() -> None:
        budget = Budget(per_s=20.0, burst=2.0)
        async with Fake(script(web.json_response({}))) as fake, Kube(Access(fake.url), budget) as kube:
            started = time.monotonic()
            await asyncio.gather(*(kube.raw("/version") for _ in range(8)))
            assert time.monotonic() - started >= 6 / 20 * 0.95
            assert budget.spent == 8
            assert budget.waited_s > 0

    asyncio.run(run())


@pytest.mark.parametrize(
    "verb, asked, priority",
    [
        ("patch", Asked(DEPLOYMENTS, "a", "b", "scale"), Priority.SCALE),
        ("list", Asked(DEPLOYMENTS, "a"), Priority.READ),
        ("patch", Asked(PODS, "a", "b", "resize"), Priority.CHANGE),
        ("patch", Asked(DEPLOYMENTS, "a", "b"), Priority.CHANGE),
        ("patch", Asked(HPAS, "a", "b", "status"), Priority.STATUS),
        ("patch", Asked(CONFIG_MAPS, "a", "b"), Priority.STATUS),
        ("create", Asked(EVENTS, "a"), Priority.EVENT),
    ],
)
def test_what_a_service_needs_goes_before_what_tells_of_it(verb: str, asked: Asked, priority: Priority) -> None:
    assert asked.priority(verb) is priority


def test_800_statuses_that_wait_do_not_delay_a_scaling() -> None:
    order: list[str] = []

    async def answer(asked: Outgoing) -> Reply:
        order.append(asked.url.rpartition("/")[2])
        return FINE

    async def run() -> None:
        budget = Budget(per_s=50.0, burst=1.0)
        async with Kube(Inside(answer).access(), budget) as kube:
            statuses = [kube.patch(Scale, HPAS, "a", f"web-{n}", {}, subresource="status") for n in range(800)]
            waiting = [asyncio.create_task(status) for status in statuses]
            await asyncio.sleep(0.1)
            await kube.patch(Scale, DEPLOYMENTS, "a", "web", {}, subresource="scale")
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    loop.run(run())
    assert order.index("scale") <= 0.1 * 50 + 4
