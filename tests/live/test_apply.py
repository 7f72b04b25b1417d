"""A change becomes patches: guarded, tried again where only a status was in the way, remembered axis by axis."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import msgspec
from aiohttp import web

from tests.live.build import AT, custom, spec, subject
from tests.wire.fake import Fake
from trimtab.core.model import Change, ContainerSize
from trimtab.errors import Refused
from trimtab.live.act.apply import apply
from trimtab.live.act.pen import Pen
from trimtab.live.look.kept import Kept
from trimtab.live.look.subject import Subject
from trimtab.live.look.world import Target, World
from trimtab.policy import Size
from trimtab.wire.objects import WirePod, WireWorkload
from trimtab.wire.resources import DEPLOYMENTS

BOTH = subject(custom(spec=spec(vertical={"apply": "InPlace"})))
NOTHING = Kept()
BIGGER = {"app": ContainerSize(requests=Size(cpu_cores=0.5))}
CONTAINER = {"name": "app", "resources": {"requests": {"cpu": "250m"}}}


def applied(
    change: Change | None, to: Subject = BOTH, kept: Kept = NOTHING, **answers: list[tuple[int, Any]]
) -> tuple[Kept, Refused | None, list[str]]:
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

    async def run() -> tuple[Kept, Refused | None]:
        async with Fake(handler) as fake:
            kube = fake.kube()
            world = World(kube)
            pod = {
                "metadata": {"name": "a", "namespace": "shop", "ownerReferences": [{"uid": "d", "controller": True}]}
            }
            world.pods.store.put(msgspec.convert(pod | {"spec": {"containers": [CONTAINER]}}, WirePod))
            made = {"metadata": {"uid": "d"}, "spec": {"template": {"spec": {"containers": [CONTAINER]}}}}
            target = Target(DEPLOYMENTS, "shop", "web", "d", "7", 2, 2, msgspec.convert(made, WireWorkload))
            done = await apply(Pen(kube), world, to, target, change, kept, AT)
            await kube.close()
            return done

    return *asyncio.run(run()), asked


def test_more_pods_come_before_larger_ones_and_fewer_after() -> None:
    assert applied(Change(was=2, replicas=4, sizes=BIGGER))[2] == ["patch_scale", "patch_resize"]
    assert applied(Change(was=2, replicas=1, sizes=BIGGER))[2] == ["patch_resize", "patch_scale"]


def test_what_was_written_is_remembered_when_the_rest_is_refused() -> None:
    no = {"message": "exceeded quota: team"}
    kept, trouble, _ = applied(Change(was=2, replicas=4, sizes=BIGGER), patch_resize=[(403, no)])
    assert trouble is not None and "exceeded quota: team" in str(trouble)
    assert kept.core.up_at == AT and kept.core.resized_at is None and kept.sizes == {}
    assert kept.wrote is not None and kept.wrote.replicas == 4


def test_a_refused_scaling_starts_no_cooldown() -> None:
    kept, trouble, _ = applied(Change(was=2, replicas=4), patch_scale=[(403, {"message": "forbidden"})])
    assert trouble is not None and kept == Kept()


def test_a_conflict_of_versions_is_tried_again_and_somebodys_number_is_not_overwritten() -> None:
    same = {"metadata": {"resourceVersion": "8"}, "spec": {"replicas": 2}}
    kept, trouble, asked = applied(
        Change(was=2, replicas=4), patch_scale=[(409, {}), (200, {})], get_scale=[(200, same)]
    )
    assert trouble is None and asked == ["patch_scale", "get_scale", "patch_scale"] and kept.core.up_at == AT
    theirs = {"metadata": {"resourceVersion": "8"}, "spec": {"replicas": 9}}
    kept, trouble, asked = applied(Change(was=2, replicas=4), patch_scale=[(409, {})], get_scale=[(200, theirs)])
    assert trouble is not None and "scaled to 9 meanwhile" in str(trouble) and kept == Kept()
    assert asked == ["patch_scale", "get_scale"]


def test_nothing_to_do_asks_nothing() -> None:
    assert applied(None) == (Kept(), None, [])


def test_pods_that_came_later_get_their_size_unless_only_a_pin_may_be_written() -> None:
    known = Kept(sizes=BIGGER, template={"app": ContainerSize(requests=Size(cpu_cores=0.25))})
    assert applied(None, kept=known)[2] == ["patch_resize"]
    notes = {"annotations": {"trimtab.dev/pin": "4"}}
    pinned = subject(custom(metadata=notes, spec=spec(vertical={"apply": "InPlace"})))
    assert applied(Change(was=2, replicas=4), pinned, known)[2] == ["patch_scale"]


def test_a_pod_that_may_not_have_its_size_holds_up_no_replicas() -> None:
    known = Kept(sizes=BIGGER, template={"app": ContainerSize(requests=Size(cpu_cores=0.25))})
    no = {"message": "exceeded quota: team"}
    kept, trouble, asked = applied(Change(was=2, replicas=1), kept=known, patch_resize=[(403, no)])
    assert asked == ["patch_resize", "patch_scale"] and kept.core.down_at == AT
    assert trouble is not None and "exceeded quota: team" in str(trouble)
