"""Who else moves a target: per axis, the younger of ours holds still, others always win."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.live.build import AT, custom, spec, subject
from trimtab.live.look.conflict import Claims, vetoes
from trimtab.live.look.world import World
from trimtab.policy import Axis
from trimtab.wire.access import Access
from trimtab.wire.kube import Kube
from trimtab.wire.objects import Custom

BOTH = spec(vertical={"apply": "InPlace"})
NEW, OLD = "2026-02-01T00:00:00Z", "2026-01-01T00:00:00Z"


@pytest.fixture
def world() -> World:
    return World(Kube(Access("http://127.0.0.1:1")))


def axes(world: World, found: Custom, *others: Custom) -> set[Axis]:
    """On which axes `found` holds still."""
    subjects = [subject(one) for one in (found, *others)]
    return set(Claims(world, subjects, AT).against(subjects[0], AT))


def target(name: str = "web", field: str = "scaleTargetRef", **more: Any) -> dict[str, Any]:
    return {field: {"kind": "Deployment", "name": name}} | more


def test_alone_nothing_conflicts(world: World) -> None:
    assert axes(world, custom(spec=BOTH)) == set()


def test_an_hpa_takes_the_replicas_only(world: World) -> None:
    world.hpas.store.put(custom("other", spec=target()))
    assert axes(world, custom(spec=BOTH)) == {Axis.REPLICAS}
    assert axes(world, custom(spec=spec("elsewhere"))) == set()


def test_a_vpa_takes_the_requests_unless_it_is_off(world: World) -> None:
    world.vpas.store.put(custom("vpa", spec=target(field="targetRef")))
    assert axes(world, custom(spec=BOTH)) == {Axis.CPU, Axis.MEMORY}
    world.vpas.store.put(custom("vpa", spec=target(field="targetRef", updatePolicy={"updateMode": "Off"})))
    assert axes(world, custom(spec=BOTH)) == set()


def test_a_scaled_object_counts_once(world: World) -> None:
    world.scaled_objects.store.put(custom("keda", spec={"scaleTargetRef": {"name": "web"}}))
    owner = [{"kind": "ScaledObject", "name": "keda", "uid": "uid-keda", "controller": True}]
    world.hpas.store.put(custom("keda-hpa-web", spec=target(), metadata={"ownerReferences": owner}))
    found = subject(custom(spec=spec()))
    claims = Claims(world, [found], AT).against(found, AT)
    assert claims[Axis.REPLICAS].title == "ScaledObject shop/keda"
    assert "paused=true" in vetoes(claims)[0].detail


def test_the_remedy_for_a_scaled_object_ends_the_conflict(world: World) -> None:
    notes = {"annotations": {"autoscaling.keda.sh/paused": "true"}}
    world.scaled_objects.store.put(custom("keda", spec={"scaleTargetRef": {"name": "web"}}, metadata=notes))
    assert axes(world, custom(spec=spec())) == set()


def test_an_hpa_that_crane_left_behind_is_named_with_its_command(world: World) -> None:
    owner = [{"kind": "EffectiveHorizontalPodAutoscaler", "name": "web", "uid": "uid-web", "controller": True}]
    world.hpas.store.put(custom("ehpa-web", spec=target(), metadata={"ownerReferences": owner}))
    found = subject(custom(spec=spec(), metadata={"name": "web", "uid": "uid-web"}))
    (veto,) = vetoes(Claims(world, [found], AT).against(found, AT))
    assert "kubectl delete hpa ehpa-web -n shop" in veto.detail


def test_what_a_vpa_can_be_told_ends_the_conflict(world: World) -> None:
    world.vpas.store.put(custom("vpa", spec=target(field="targetRef")))
    found = subject(custom(spec=BOTH))
    remedy = Claims(world, [found], AT).against(found, AT)[Axis.CPU].remedy
    patch = json.loads(remedy.partition("-p '")[2].rstrip("'"))
    world.vpas.store.put(custom("vpa", spec=target(field="targetRef") | patch["spec"]))
    assert axes(world, custom(spec=BOTH)) == set()


def test_a_pin_is_a_write_in_shadow_too(world: World) -> None:
    world.hpas.store.put(custom("other", spec=target()))
    notes = {"annotations": {"trimtab.dev/pin": "3", "trimtab.dev/pin-until": "2040-01-01T00:00:00Z"}}
    assert axes(world, custom(spec=spec(mode="Shadow"), metadata=notes)) == {Axis.REPLICAS}
    past = {"annotations": notes["annotations"] | {"trimtab.dev/pin-until": "2020-01-01T00:00:00Z"}}
    assert axes(world, custom(spec=spec(mode="Shadow"), metadata=past)) == set()


def test_vertical_alone_moves_replicas_only_where_it_has_a_floor_for_them(world: World) -> None:
    world.hpas.store.put(custom("other", spec=target()))
    alone = {key: value for key, value in BOTH.items() if key != "maxReplicas"}
    assert axes(world, custom(spec=alone)) == set()
    assert axes(world, custom(spec=alone | {"minReplicas": 3})) == {Axis.REPLICAS}


def test_the_older_of_ours_wins_on_each_axis_they_share(world: World) -> None:
    young, old = custom("young", NEW, spec=BOTH), custom("old", OLD, spec=spec())
    assert axes(world, young, old) == {Axis.REPLICAS}
    assert axes(world, old, young) == set()


def test_made_in_the_same_second_the_name_decides(world: World) -> None:
    a, b = custom("a", NEW, spec=spec()), custom("b", NEW, spec=spec())
    assert axes(world, b, a) == {Axis.REPLICAS} and axes(world, a, b) == set()


def test_shadow_and_paused_objects_neither_claim_nor_hold(world: World) -> None:
    young = custom("young", NEW, spec=spec())
    for mode in ("Shadow", "Paused"):
        assert axes(world, young, custom("old", OLD, spec=spec(mode=mode))) == set()
    world.hpas.store.put(custom("other", spec=target()))
    assert axes(world, custom("watcher", spec=spec(mode="Shadow"))) == set()
