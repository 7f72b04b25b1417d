"""What is followed, and what is done without where Roles do not show it."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

import pytest
from aiohttp import web

from tests.wire.fake import Fake
from trimtab.live.look.cluster import WatchedCluster

Seen = tuple[set[str], set[str]]


def _seen(cluster: WatchedCluster) -> Seen:
    left = set(cluster.unsettled()) & {"nodes", "namespaces", "pods", "resourcequotas", "limitranges"}
    return left, {feed.name for feed in cluster.feeds if feed.given_up}


def settled(namespace: str, forbidden: tuple[str, ...], wanted: Seen) -> Seen:
    """What an empty cluster that forbids these leaves unsettled, and what was given up, as soon as it is as wanted."""

    async def handler(request: web.Request) -> web.StreamResponse:
        if request.path.rsplit("/", 1)[-1] in forbidden:
            return web.json_response({"message": "forbidden"}, status=403)
        if "sendInitialEvents" in request.query:  # an older server: a list is asked for then
            return web.Response(status=400)
        if request.query.get("watch"):
            await asyncio.sleep(5)
        return web.json_response({"items": [], "metadata": {"resourceVersion": "1"}})

    async def run() -> Seen:
        async with Fake(handler) as fake:
            kube = fake.kube()
            cluster = WatchedCluster(kube, namespace)
            following = asyncio.create_task(cluster.run())
            with suppress(TimeoutError):
                async with asyncio.timeout(60):
                    while _seen(cluster) != wanted:
                        await asyncio.sleep(0.02)
            found = _seen(cluster)
            following.cancel()
            await asyncio.wait([following])
            await kube.close()
            return found

    return asyncio.run(run())


def test_in_one_namespace_nodes_and_labels_are_done_without_and_said(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        wanted: Seen = (set(), {"nodes", "namespaces"})
        assert settled("shop", ("nodes", "namespaces"), wanted) == wanted
    said = [one for one in caplog.messages if "nodes may not be read" in one]
    assert said == ["nodes may not be read: requests may grow beyond the largest of them"]


def test_in_one_namespace_nodes_are_followed_where_they_may_be() -> None:
    assert settled("shop", (), (set(), set())) == (set(), set())


def test_for_the_whole_cluster_a_right_that_is_missing_holds_everything() -> None:
    assert settled("", ("nodes",), ({"nodes"}, set())) == ({"nodes"}, set())
    assert settled("shop", ("limitranges",), ({"limitranges"}, set())) == ({"limitranges"}, set())
