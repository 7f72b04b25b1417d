"""The bridge on pods: who gets it, what stands in its way, and that nothing ever grows upon a bridge."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from aiohttp import web
from msgspec.structs import replace

from tests.live.build import AT, custom, spec, subject
from tests.live.test_headroom import pod as bare_pod
from tests.live.test_headroom import quota, target
from tests.wire.fake import Fake
from trimtab.core.model import Change, Memory, Veto
from trimtab.errors import Refused
from trimtab.live.act.bridge import write_bridge
from trimtab.live.headroom import Headroom
from trimtab.live.look.cluster import WatchedCluster
from trimtab.live.look.memory import ObjectMemory
from trimtab.live.look.sizes import BridgeInForce, bridge_in_force
from trimtab.policy import Axis
from trimtab.wire.access import Access
from trimtab.wire.kube import Kube
from trimtab.wire.objects import Custom, FieldOwner, WireCondition, WirePod

READY = WireCondition(type="Ready", status="True")
PENDING = WireCondition(type="PodResizePending", status="True", reason="Deferred")


def pod(name: str, cpu: str = "250m", manager: str = "", ready: bool = True, **more: Any) -> WirePod:
    found = bare_pod(name, cpu=cpu, **more)
    owners = (FieldOwner(manager=manager),) if manager else ()
    conditions = (READY,) if ready else ()
    return msgspec.structs.replace(
        found,
        metadata=replace(found.metadata, managed_fields=owners, uid=f"uid-{name}"),
        status=replace(found.status, conditions=conditions),
    )


def written(
    pods: list[WirePod], change: float | None, in_memory: float = 1.0, refused: str = ""
) -> tuple[ObjectMemory | Refused, dict[str, tuple[str, str]]]:
    """What becomes of these pods: the cpu and the field manager of each that is written."""
    asked: dict[str, tuple[str, str]] = {}

    async def handler(request: web.Request) -> web.StreamResponse:
        name, body = request.path.split("/")[-2], msgspec.json.decode(await request.read())
        if name == refused:
            return web.json_response({"message": "exceeded quota"}, status=403)
        (container,) = body["spec"]["containers"]
        assert "memory" not in container["resources"]["requests"]
        asked[name] = (container["resources"]["requests"]["cpu"], request.query["fieldManager"])
        return web.json_response({"metadata": {"name": name, "namespace": "shop"}})

    async def run() -> ObjectMemory | Refused:
        async with Fake(handler) as fake:
            kube = fake.kube()
            cluster = WatchedCluster(kube)
            for each in pods:
                cluster.pods.store.put(each)
            about, known = subject(custom(spec=spec(bridge={}))), ObjectMemory(core=Memory(bridge=in_memory))
            try:
                wanted = Change(was=1, bridge=change)
                return await write_bridge(kube, cluster, about, target(), wanted, known, AT)
            except Refused as refusal:
                return refusal
            finally:
                await kube.close()

    return asyncio.run(run()), asked


def test_ready_pods_get_it_and_starting_ones_when_they_are_ready() -> None:
    memory, asked = written([pod("a"), pod("b", ready=False)], 1.25)
    assert asked == {"a": ("313m", "trimtab-bridge-1.25")}
    assert isinstance(memory, ObjectMemory) and memory.bridge_resizes == 1
    have = pod("a", cpu="313m", manager="trimtab-bridge-1.25")
    _, asked = written([have, pod("b")], None, in_memory=1.25)
    assert asked == {"b": ("313m", "trimtab-bridge-1.25")}


def test_from_level_to_level_and_back_it_is_always_counted_from_what_was_written() -> None:
    have = pod("a", cpu="313m", manager="trimtab-bridge-1.25")
    assert written([have], 1.5, in_memory=1.25)[1] == {"a": ("375m", "trimtab-bridge-1.5")}
    assert written([have], 1.0, in_memory=1.25)[1] == {"a": ("250m", "trimtab")}
    unready = pod("a", cpu="313m", manager="trimtab-bridge-1.25", ready=False)
    assert written([unready], 1.0, in_memory=1.25)[1] == {"a": ("250m", "trimtab")}


def test_a_bridge_that_was_not_recorded_on_the_pod_never_grows() -> None:
    assert written([pod("a", cpu="313m")], None, in_memory=1.25)[1] == {}
    assert written([pod("a", cpu="313m")], 1.5, in_memory=1.25)[1] == {}


def test_a_pod_that_is_refused_holds_up_no_other() -> None:
    memory, asked = written([pod("a"), pod("b")], 1.25, refused="a")
    assert set(asked) == {"b"} and isinstance(memory, ObjectMemory) and memory.bridge_resizes == 1
    refusal, _ = written([pod("a")], 1.25, refused="a")
    assert isinstance(refusal, Refused) and "exceeded quota" in str(refusal)


def vetoes(change: Change, *seen: WirePod | Custom) -> tuple[Veto, ...]:
    cluster = WatchedCluster(Kube(Access("http://127.0.0.1:1")))
    for each in seen:
        if isinstance(each, WirePod):
            cluster.pods.store.put(each)
        else:
            cluster.quotas.store.put(each)
    return Headroom(cluster).bridge_vetoes(target(), change, 1.0)


def test_a_quota_stands_in_its_way_and_is_named() -> None:
    full = quota({"requests.cpu": "1"}, {"requests.cpu": "800m"})
    (veto,) = vetoes(Change(was=2, bridge=1.5), pod("a"), pod("b"), full)
    assert (veto.axis, veto.reason) == (Axis.BRIDGE, "ExceedsQuota") and "shop/team" in veto.detail
    assert vetoes(Change(was=2, bridge=1.25), pod("a"), pod("b"), full) == (), "126m fit into 200m"
    assert vetoes(Change(was=2, bridge=1.5), pod("a"), pod("b", ready=False), full) == (), "only ready pods grow"
    assert vetoes(Change(was=2, bridge=1.0), pod("a"), full) == (), "nothing stands in the way of taking it back"


def test_a_resize_that_is_put_off_is_no_size() -> None:
    have = pod("a", cpu="313m", manager="trimtab-bridge-1.25")
    waits = replace(have, status=replace(have.status, conditions=(READY, PENDING)))
    sidecar = {"name": "proxy", "resources": {}}
    assert bridge_in_force([have, waits, pod("b", others=[sidecar])]) == BridgeInForce(pods=1, left_out=("proxy",))
