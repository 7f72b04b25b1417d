"""Sizes onto pods: which are written, one at a time where they shrink, and when the template is left alone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec
import pytest
from aiohttp import web

from tests.wire.fake import Fake
from trimtab.core.model import ContainerSize
from trimtab.errors import NotLeading, Refused
from trimtab.live.act.sizes import Sizes, gives_up_in_place, resize_all_now, resize_pods
from trimtab.live.look.sizes import StuckResize
from trimtab.policy import Apply, Size
from trimtab.wire.kube import Kube
from trimtab.wire.objects import WirePod

BIG = {"app": ContainerSize(requests=Size(cpu_cores=0.5, memory_bytes=2**29))}


def pod(name: str, cpu: str = "250m", memory: str = "512Mi", **status: Any) -> WirePod:
    container = {"name": "app", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
    meta = {"name": name, "namespace": "shop", "resourceVersion": "3"}
    found = {"metadata": meta, "spec": {"containers": [container]}, "status": {"phase": "Running"} | status}
    return msgspec.convert(found, WirePod)


def written(
    pods: list[WirePod],
    sizes: dict[str, ContainerSize],
    answer: int = 200,
    leads: bool = True,
    of: str = "",
    bring: Callable[[Kube, Sequence[WirePod], Sizes], Awaitable[object]] = resize_pods,
) -> list[Any]:
    """The bodies that reach the API server, by path; it gives its answer to pods whose name begins with `of`."""
    bodies = []

    async def handler(request: web.Request) -> web.StreamResponse:
        bodies.append((request.path, json.loads(await request.read())))
        refused = answer != 200 and f"/pods/{of}" in request.path
        return web.json_response({"message": "no"} if refused else {}, status=answer if refused else 200)

    async def run() -> None:
        async with Fake(handler) as fake:
            kube = fake.kube(fence=lambda: 10.0 if leads else 0.0)
            try:
                await bring(kube, pods, sizes)
            finally:
                await kube.close()

    asyncio.run(run())
    return bodies


def test_only_pods_that_differ_are_written_and_guarded() -> None:
    found = written([pod("a"), pod("b", cpu="500m")], BIG)
    assert [path for path, _ in found] == ["/api/v1/namespaces/shop/pods/a/resize"]
    container = {"name": "app", "resources": {"requests": {"cpu": "500m", "memory": "512Mi"}}}
    assert found[0][1] == {"metadata": {"resourceVersion": "3"}, "spec": {"containers": [container]}}


def test_growing_pods_grow_at_once_and_shrinking_ones_one_at_a_time() -> None:
    assert len(written([pod("a"), pod("b"), pod("c")], BIG)) == 3
    assert len(written([pod("a", cpu="2"), pod("b", cpu="2"), pod("c", cpu="2")], BIG)) == 1
    waits: dict[str, Any] = {"conditions": [{"type": "PodResizeInProgress", "status": "True"}]}
    assert written([pod("a", cpu="2"), pod("b", cpu="500m", **waits)], BIG) == []


@pytest.mark.parametrize("reason", ["Infeasible", "Deferred"])
def test_a_pod_that_cannot_be_resized_where_it_is_holds_up_no_other(reason: str) -> None:
    waits: dict[str, Any] = {"conditions": [{"type": "PodResizePending", "status": "True", "reason": reason}]}
    large = [pod("a", cpu="2"), pod("b", cpu="2", **waits), pod("c", cpu="2")]
    assert [path for path, _ in written(large, BIG)] == ["/api/v1/namespaces/shop/pods/a/resize"]
    assert len(written(large[1:2], BIG)) == 1, "it may itself become smaller"


def test_a_pod_that_is_refused_holds_up_no_other() -> None:
    assert len(written([pod("a"), pod("b"), pod("c")], BIG, answer=403, of="a")) == 3
    assert len(written([pod("a", cpu="2"), pod("b", cpu="2")], BIG, answer=422, of="a")) == 2
    with pytest.raises(Refused):
        written([pod("a"), pod("b")], BIG, answer=403)


def test_what_is_put_back_by_hand_goes_on_after_a_refusal_and_tells_it() -> None:
    async def restore(writer: Kube, pods: Sequence[WirePod], sizes: Sizes) -> None:
        with pytest.raises(Refused):
            await resize_all_now(writer, pods, sizes)

    assert len(written([pod("a"), pod("b")], BIG, answer=403, of="a", bring=restore)) == 2


def test_finished_pods_and_containers_nobody_sizes_are_left_alone() -> None:
    assert written([pod("a", phase="Succeeded")], BIG) == []
    assert written([pod("a")], {"other": BIG["app"]}) == []


def test_a_pod_that_changed_meanwhile_waits_for_the_next_tick() -> None:
    assert len(written([pod("a"), pod("b")], BIG, answer=409)) == 2


def test_who_does_not_lead_writes_nothing() -> None:
    with pytest.raises(NotLeading):
        written([pod("a")], BIG, leads=False)


@pytest.mark.parametrize(
    ("apply", "waiting", "gives_up"),
    [
        (Apply.IN_PLACE_OR_RECREATE, StuckResize("a", "Infeasible", 1000.0, ""), True),
        (Apply.IN_PLACE_OR_RECREATE, StuckResize("a", "Deferred", 1000.0 - 300, ""), True),
        (Apply.IN_PLACE_OR_RECREATE, StuckResize("a", "Deferred", 1000.0 - 299, ""), False),
        (Apply.IN_PLACE, StuckResize("a", "Infeasible", 0.0, ""), False),
    ],
)
def test_when_in_place_is_given_up(apply: Apply, waiting: StuckResize, gives_up: bool) -> None:
    assert gives_up_in_place(apply, [waiting], at=1000.0) is gives_up
