"""What is followed, and what is done without where Roles do not show it."""

from __future__ import annotations

import asyncio
import logging

import pytest
from aiohttp import web

from tests.wire.fake import Fake
from trimtab.live.look.cluster import WatchedCluster


def settled(namespace: str, forbidden: tuple[str, ...]) -> tuple[set[str], set[str]]:
    """What an empty cluster that forbids these leaves unsettled, and what was given up."""

    async def handler(request: web.Request) -> web.StreamResponse:
        if request.path.rsplit("/", 1)[-1] in forbidden:
            return web.json_response({"message": "forbidden"}, status=403)
        if "sendInitialEvents" in request.query:  # an older server: a list is asked for then
            return web.Response(status=400)
        if request.query.get("watch"):
            await asyncio.sleep(5)
        return web.json_response({"items": [], "metadata": {"resourceVersion": "1"}})

    async def run() -> tuple[set[str], set[str]]:
        async with Fake(handler) as fake:
            kube = fake.kube()
            cluster = WatchedCluster(kube, namespace)
            following = asyncio.create_task(cluster.run())
            for _ in range(200):
                await asyncio.sleep(0.02)
                left = set(cluster.unsettled())
                if left <= set(forbidden) | {feed.name for feed in cluster.ours.values()} | {"ScaledObject"}:
                    break
            following.cancel()
            await asyncio.wait([following])
            await kube.close()
            return left & {"nodes", "namespaces", "pods", "resourcequotas", "limitranges"}, {
                feed.name for feed in cluster.feeds if feed.given_up
            }

    return asyncio.run(run())


def test_in_one_namespace_nodes_and_labels_are_done_without_and_said(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        left, given_up = settled("shop", ("nodes", "namespaces"))
    assert left == set() and given_up == {"nodes", "namespaces"}
    said = [one for one in caplog.messages if "nodes cannot be read with Roles only" in one]
    assert said == ["nodes cannot be read with Roles only: requests may grow beyond the largest of them"]


def test_in_one_namespace_nodes_are_followed_where_they_may_be() -> None:
    assert settled("shop", ()) == (set(), set())


def test_for_the_whole_cluster_a_right_that_is_missing_holds_everything() -> None:
    assert settled("", ("nodes",)) == ({"nodes"}, set())
    assert settled("shop", ("limitranges",)) == ({"limitranges"}, set())
