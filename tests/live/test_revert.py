"""Somebody else's number is a new starting point; who puts ours back again and again has a quarrel with us."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from aiohttp import web
from msgspec.structs import replace

from tests.wire.fake import Fake
from trimtab.core.model import ContainerSize, Memory
from trimtab.live.look.cluster import ScaleTarget, WatchedCluster
from trimtab.live.look.memory import ObjectMemory, ReplicasWritten, SizesWritten
from trimtab.live.look.revert import noticed, resting, veto
from trimtab.policy import Axis, Direction, Size
from trimtab.wire.objects import WireWorkload
from trimtab.wire.resources import DEPLOYMENTS

AT, HOUR = 1_750_000_000.0, 3600.0
SMALL, LARGE = ({"app": ContainerSize(requests=Size(cpu_cores=cores))} for cores in (0.1, 0.5))
SCALED = ObjectMemory(wrote=ReplicasWritten(was=2, replicas=4, at=AT), core=Memory(up_at=AT))
PATCHED = ObjectMemory(patched=SizesWritten(was=SMALL, sizes=LARGE, at=AT))


def workload(replicas: int, cpu: str = "100m") -> dict[str, Any]:
    """The Deployment as it is, and who wrote what when."""
    app = {"name": "app", "resources": {"requests": {"cpu": cpu}}}
    template: dict[str, Any] = {"f:template": {"f:spec": {"f:containers": {'k:{"name":"app"}': {"f:resources": {}}}}}}
    writers = [
        {"manager": "helm", "time": "2026-01-01T00:00:00Z", "fieldsV1": {"f:spec": {"f:replicas": {}} | template}},
        {"manager": "argocd", "time": "2026-01-03T00:00:00Z", "fieldsV1": {"f:spec": template}},
        {"manager": "kubectl", "time": "2026-01-02T00:00:00Z", "fieldsV1": {"f:spec": {"f:replicas": {}}}},
        {"manager": "trimtab", "time": "2026-01-04T00:00:00Z", "fieldsV1": {"f:spec": {"f:replicas": {}} | template}},
    ]
    spec = {"replicas": replicas, "template": {"spec": {"containers": [app]}}}
    return {"metadata": {"uid": "d", "managedFields": writers}, "spec": spec}


def looked(
    memory: ObjectMemory, cached: dict[str, Any], real: dict[str, Any], at: float, generation: int = 1
) -> tuple[ObjectMemory, int]:
    """The memory after a look at `at`, and how often the API server was asked for the workload."""
    asked = 0

    async def handler(_: web.Request) -> web.StreamResponse:
        nonlocal asked
        asked += 1
        return web.json_response(real)

    async def run() -> ObjectMemory:
        async with Fake(handler) as fake:
            kube = fake.kube()
            found = msgspec.convert(cached, WireWorkload)
            count = found.spec.replicas or 0
            target = ScaleTarget(DEPLOYMENTS, "shop", "web", "d", "7", count, count, found)
            after = await noticed(WatchedCluster(kube), target, memory, generation, at)
            await kube.close()
            return after

    return asyncio.run(run()), asked


def put_back(times: int, every_s: float = 120.0, after_s: float = 30.0) -> tuple[ObjectMemory, float]:
    """The memory after we scaled to 4 and somebody put 2 in its place so often, and when that was last."""
    memory, at = SCALED, AT
    for turn in range(times):
        at = AT + turn * every_s
        memory = replace(memory, wrote=ReplicasWritten(was=2, replicas=4, at=at))
        memory, _ = looked(memory, workload(2), workload(2), at + after_s)
    return memory, at + after_s


def test_a_deploy_that_carries_replicas_is_a_new_starting_point() -> None:
    memory, at = put_back(2)
    assert memory.wrote is None and resting(memory, at) == {} and veto(memory, at) == ()


def test_three_times_within_ten_minutes_is_a_quarrel_and_only_decreases_rest() -> None:
    memory, at = put_back(3)
    (held,) = veto(memory, at)
    assert (held.axis, held.direction, held.until) == (Axis.REPLICAS, Direction.DOWN, at + HOUR)
    assert "kubectl puts the replicas back" in held.detail and "leave `replicas` out" in held.detail
    assert veto(memory, at + HOUR) == (), "the hour is over"
    memory, _ = looked(memory, workload(2), workload(2), at + 60, generation=2)
    assert memory.quarrels == {} and veto(memory, at + 60) == (), "an edit ends it"


@pytest.mark.parametrize(
    "times, every_s, after_s",
    [
        pytest.param(9, 400.0, 30.0, id="too seldom"),
        pytest.param(9, 120.0, 61.0, id="more than a minute after our write"),
    ],
)
def test_what_is_no_quarrel(times: int, every_s: float, after_s: float) -> None:
    memory, at = put_back(times, every_s, after_s)
    assert veto(memory, at) == ()


def test_a_template_that_is_put_back_twice_within_an_hour_rests_for_a_day() -> None:
    memory, _ = looked(PATCHED, workload(2), workload(2), AT + 60)
    assert veto(memory, AT + 60) == (), "once may be a deploy"
    again = replace(memory, patched=SizesWritten(was=SMALL, sizes=LARGE, at=AT + 600))
    memory, _ = looked(again, workload(2), workload(2), AT + 700)
    found = veto(memory, AT + 700)
    assert [(held.axis, held.direction) for held in found] == [(Axis.CPU, None), (Axis.MEMORY, None)]
    assert found[0].until == AT + 700 + 24 * HOUR and "argocd puts the requests back" in found[0].detail


@pytest.mark.parametrize(
    "memory, real, at",
    [
        pytest.param(SCALED, workload(7), AT + 60, id="another number is somebody's own word"),
        pytest.param(PATCHED, workload(2, "300m"), AT + 60, id="another size is somebody's own word"),
        pytest.param(PATCHED, workload(2), AT + HOUR + 1, id="so is the old one after an hour"),
    ],
)
def test_what_is_no_revert(memory: ObjectMemory, real: dict[str, Any], at: float) -> None:
    after, _ = looked(memory, real, real, at)
    assert resting(after, at) == {} and (after.wrote, after.patched) == (None, None)


@pytest.mark.parametrize(
    "memory, cached, real",
    [
        pytest.param(SCALED, workload(2), workload(4), id="replicas"),
        pytest.param(PATCHED, workload(2), workload(2, "500m"), id="sizes"),
    ],
)
def test_a_write_that_has_not_come_back_yet_is_no_revert(
    memory: ObjectMemory, cached: dict[str, Any], real: dict[str, Any]
) -> None:
    assert looked(memory, cached, real, AT + 1) == (memory, 1)


def test_nobody_is_asked_while_everything_is_as_we_wrote_it() -> None:
    assert looked(SCALED, workload(4), {}, AT + 60) == (SCALED, 0)
    assert looked(PATCHED, workload(2, "500m"), {}, AT + 60) == (PATCHED, 0)


def test_a_zero_of_ours_that_somebody_ended_is_not_ours_any_more() -> None:
    zeroed = ObjectMemory(wrote=ReplicasWritten(was=2, replicas=0, at=AT), core=Memory(zeroed=True))
    assert not looked(zeroed, workload(5), workload(5), AT + 60)[0].core.zeroed
    assert looked(zeroed, workload(2), workload(0), AT + 1)[0].core.zeroed, "the cache is behind our own write"
