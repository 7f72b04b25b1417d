"""A change becomes patches: guarded, tried again where only a status was in the way, remembered axis by axis."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import msgspec
import pytest
from aiohttp import web

from tests.live.build import AT, custom, spec, subject
from tests.wire.fake import Fake
from trimtab.acts import AxisOutcome, Fate, Outcome
from trimtab.core.model import Change, ContainerSize
from trimtab.live.act.apply import apply
from trimtab.live.look.cluster import ScaleTarget, WatchedCluster
from trimtab.live.look.memory import ObjectMemory
from trimtab.live.look.subject import Subject
from trimtab.policy import Size
from trimtab.wire.access import Access
from trimtab.wire.kube import Kube
from trimtab.wire.objects import WirePod, WireWorkload
from trimtab.wire.resources import DEPLOYMENTS

BOTH = subject(custom(spec=spec(vertical={"apply": "InPlace"})))
NOTHING = ObjectMemory()
BIGGER = {"app": ContainerSize(requests=Size(cpu_cores=0.5))}
CONTAINER = {"name": "app", "resources": {"requests": {"cpu": "250m"}}}


def applied(
    change: Change | None, to: Subject = BOTH, memory: ObjectMemory = NOTHING, **answers: list[tuple[int, Any]]
) -> tuple[ObjectMemory, Outcome, list[str]]:
    """What becomes of a change when the server answers each kind of request so, in order; the last one stays."""
    asked: list[str] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        what = f"{request.method.lower()}_{request.path.rsplit('/', 1)[-1]}"
        asked.append(what)
        if request.method == "PATCH":
            guarded = json.loads(await request.read())["metadata"]
            assert "resourceVersion" in guarded, f"{what} may overwrite somebody's newer word"
        left = answers.get(what, [(200, {})])
        status, body = left.pop(0) if len(left) > 1 else left[0]
        return web.json_response(body, status=status)

    async def run() -> tuple[ObjectMemory, Outcome]:
        async with Fake(handler) as fake:
            kube = fake.kube()
            cluster = WatchedCluster(kube)
            pod = {
                "metadata": {"name": "a", "namespace": "shop", "ownerReferences": [{"uid": "d", "controller": True}]}
            }
            cluster.pods.store.put(msgspec.convert(pod | {"spec": {"containers": [CONTAINER]}}, WirePod))
            made = {"metadata": {"uid": "d"}, "spec": {"template": {"spec": {"containers": [CONTAINER]}}}}
            target = ScaleTarget(DEPLOYMENTS, "shop", "web", "d", "7", 2, 2, msgspec.convert(made, WireWorkload))
            done = await apply(kube, cluster, to, target, change, memory, AT)
            await kube.close()
            return done

    return *asyncio.run(run()), asked


def test_more_pods_come_before_larger_ones_and_fewer_after() -> None:
    assert applied(Change(was=2, replicas=4, sizes=BIGGER))[2] == ["patch_scale", "patch_resize"]
    assert applied(Change(was=2, replicas=1, sizes=BIGGER))[2] == ["patch_resize", "patch_scale"]


def test_what_was_written_is_remembered_when_the_rest_is_refused() -> None:
    no = {"message": "exceeded quota: team"}
    memory, outcome, _ = applied(Change(was=2, replicas=4, sizes=BIGGER), patch_resize=[(403, no)])
    refused, written = outcome
    assert (refused.axis, refused.fate) == ("sizes", Fate.REFUSED) and "exceeded quota: team" in refused.reason
    assert written == AxisOutcome(axis="replicas", fate=Fate.WRITTEN), "it is both"
    assert memory.core.up_at == AT and memory.core.resized_at is None and memory.sizes == {}
    assert memory.wrote is not None and memory.wrote.replicas == 4


def test_a_refused_scaling_starts_no_cooldown() -> None:
    memory, (refused,), _ = applied(Change(was=2, replicas=4), patch_scale=[(403, {"message": "forbidden"})])
    assert refused.fate is Fate.REFUSED and memory == ObjectMemory()


def test_sizes_wait_for_replicas_that_were_refused() -> None:
    both = Change(was=2, replicas=4, sizes=BIGGER)
    _, (refused, held), asked = applied(both, patch_scale=[(403, {"message": "forbidden"})])
    assert asked == ["patch_scale"] and (refused.axis, held.axis) == ("replicas", "sizes")
    assert held.fate is Fate.REFUSED and "waits" in held.reason


def test_a_conflict_of_versions_is_tried_again_and_somebodys_number_is_not_overwritten() -> None:
    same = {"metadata": {"resourceVersion": "8", "uid": "d"}, "spec": {"replicas": 2}}
    memory, (done,), asked = applied(
        Change(was=2, replicas=4), patch_scale=[(409, {}), (200, {})], get_scale=[(200, same)]
    )
    assert (
        done.fate is Fate.WRITTEN and asked == ["patch_scale", "get_scale", "patch_scale"] and memory.core.up_at == AT
    )
    theirs = {"metadata": {"resourceVersion": "8", "uid": "d"}, "spec": {"replicas": 9}}
    memory, (done,), asked = applied(Change(was=2, replicas=4), patch_scale=[(409, {})], get_scale=[(200, theirs)])
    assert done.fate is Fate.REFUSED and "scaled to 9 meanwhile" in done.reason and memory == ObjectMemory()
    assert asked == ["patch_scale", "get_scale"]


@pytest.mark.parametrize(
    ("uid", "replicas", "version"),
    [
        pytest.param("d", 2, "8", id="its status has changed"),
        pytest.param("d", 9, "7", id="somebody has scaled it"),
        pytest.param("e", 2, "7", id="another of its name"),
    ],
)
def test_a_write_is_guarded_by_the_newest_version_of_the_replicas_that_were_seen(
    uid: str, replicas: int, version: str
) -> None:
    """A Deployment whose pods come and go has a new version every moment: each would be refused and asked for."""
    meta, cluster = {"namespace": "shop", "name": "web"}, WatchedCluster(Kube(Access("http://127.0.0.1:1")))
    seen, now = (
        msgspec.convert(
            {"metadata": meta | {"uid": uid, "resourceVersion": version}, "spec": {"replicas": count}}, WireWorkload
        )
        for uid, version, count in (("d", "7", 2), (uid, "8", replicas))
    )
    cluster.workloads["Deployment"].store.put(now)
    target = ScaleTarget(DEPLOYMENTS, "shop", "web", "d", "7", 2, 2, seen)
    assert cluster.known_now(target).version == version


def test_a_workload_made_anew_under_the_same_name_is_not_scaled_for_the_pods_of_the_old_one() -> None:
    anew = {"metadata": {"resourceVersion": "9", "uid": "another"}, "spec": {"replicas": 2}}
    memory, (done,), asked = applied(Change(was=2, replicas=4), patch_scale=[(409, {})], get_scale=[(200, anew)])
    assert done.fate is Fate.REFUSED and "made anew" in done.reason and memory == ObjectMemory()
    assert asked == ["patch_scale", "get_scale"]


def test_nothing_to_do_asks_nothing() -> None:
    assert applied(None) == (ObjectMemory(), (), [])


def test_pods_that_came_later_get_their_size_unless_only_a_pin_may_be_written() -> None:
    known = ObjectMemory(sizes=BIGGER, template={"app": ContainerSize(requests=Size(cpu_cores=0.25))})
    assert applied(None, memory=known)[2] == ["patch_resize"]
    notes = {"annotations": {"trimtab.dev/pin": "4"}}
    pinned = subject(custom(metadata=notes, spec=spec(vertical={"apply": "InPlace"})))
    assert applied(Change(was=2, replicas=4), pinned, known)[2] == ["patch_scale"]


def test_a_pod_that_may_not_have_its_size_holds_up_no_replicas() -> None:
    known = ObjectMemory(sizes=BIGGER, template={"app": ContainerSize(requests=Size(cpu_cores=0.25))})
    no = {"message": "exceeded quota: team"}
    memory, (refused, written), asked = applied(Change(was=2, replicas=1), memory=known, patch_resize=[(403, no)])
    assert asked == ["patch_resize", "patch_scale"] and memory.core.down_at == AT
    assert "exceeded quota: team" in refused.reason and written.axis == "replicas"
