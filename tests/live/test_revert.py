"""Somebody undoes our change: that axis rests an hour, after a second time until the object is edited."""

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
from trimtab.live.look.memory import ObjectMemory, ReplicasWritten, SizesWritten, UndoneChange
from trimtab.live.look.revert import noticed, resting, text, veto
from trimtab.policy import Axis, Size
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


def test_an_hour_the_first_time_and_until_an_edit_the_second() -> None:
    memory, _ = looked(SCALED, workload(2), workload(2), AT + 60)
    ((what, once),) = memory.undone.items()
    assert (what, once.by, once.until) == ("replicas", "kubectl", AT + 60 + HOUR)
    assert "kubectl" in text(what, once) and "an hour" in text(what, once)
    assert [one.axis for one in veto(memory, AT + 60)] == [Axis.REPLICAS]
    assert veto(memory, AT + 60 + HOUR) == (), "the hour is over"
    again = replace(memory, wrote=ReplicasWritten(was=2, replicas=5, at=AT + 2 * HOUR))
    memory, _ = looked(again, workload(2), workload(2), AT + 2 * HOUR + 60)
    assert memory.undone["replicas"].until is None and veto(memory, AT + 1e9) != ()
    assert "until this object is edited" in text("replicas", memory.undone["replicas"])
    memory, _ = looked(memory, workload(2), workload(2), AT + 3 * HOUR, generation=2)
    assert memory.undone == {} and veto(memory, AT + 3 * HOUR) == ()


def test_the_template_that_is_put_back_rests_too() -> None:
    memory, _ = looked(PATCHED, workload(2), workload(2), AT + 60)
    assert memory.undone == {"sizes": UndoneChange(by="argocd", until=AT + 60 + HOUR, generation=1)}
    assert [one.axis for one in veto(memory, AT + 60)] == [Axis.CPU, Axis.MEMORY], "the replicas do not rest"


@pytest.mark.parametrize(
    "memory, real, at",
    [
        pytest.param(SCALED, workload(7), AT + 60, id="another number is somebody's own word"),
        pytest.param(SCALED, workload(2), AT + HOUR + 1, id="an hour later it is no answer to ours"),
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
