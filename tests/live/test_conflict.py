"""Who else moves a target: per axis, the younger of ours holds still, others always win."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from tests.live.build import AT, custom, spec, subject
from trimtab.kinds.schedule import expand_schedules
from trimtab.live.look.cluster import WatchedCluster
from trimtab.live.look.conflict import Claims, _axes, vetoes
from trimtab.policy import Axis, Bounds, Policy, WrittenSchedule
from trimtab.wire.access import Access
from trimtab.wire.kube import Kube
from trimtab.wire.objects import Custom

BOTH = spec(vertical={"apply": "InPlace"})
NEW, OLD = "2026-02-01T00:00:00Z", "2026-01-01T00:00:00Z"


@pytest.fixture
def cluster() -> WatchedCluster:
    return WatchedCluster(Kube(Access("http://127.0.0.1:1")))


def axes(cluster: WatchedCluster, found: Custom, *others: Custom) -> set[Axis]:
    """On which axes `found` holds still."""
    subjects = [subject(one) for one in (found, *others)]
    return set(Claims(cluster, subjects, AT).against(subjects[0], AT))


def target(name: str = "web", field: str = "scaleTargetRef", **more: Any) -> dict[str, Any]:
    return {field: {"kind": "Deployment", "name": name}} | more


def test_alone_nothing_conflicts(cluster: WatchedCluster) -> None:
    assert axes(cluster, custom(spec=BOTH)) == set()


def test_an_hpa_takes_the_replicas_and_the_requests_it_divides_by(cluster: WatchedCluster) -> None:
    cluster.hpas.store.put(custom("other", spec=target()))
    assert axes(cluster, custom(spec=BOTH)) == {Axis.REPLICAS, Axis.CPU}
    assert axes(cluster, custom(spec=spec("elsewhere"))) == set()


CPU_SHARE = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}},
}
CPU_VALUE = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "AverageValue", "averageValue": "200m"}},
}
MEMORY_SHARE = {
    "type": "ContainerResource",
    "containerResource": {"name": "memory", "container": "app", "target": {"type": "Utilization"}},
}


@pytest.mark.parametrize(
    ("metrics", "taken"),
    [
        ({}, {Axis.CPU}),
        ({"metrics": [CPU_SHARE]}, {Axis.CPU}),
        ({"metrics": [CPU_VALUE]}, set()),
        ({"metrics": [CPU_SHARE, MEMORY_SHARE]}, {Axis.CPU, Axis.MEMORY}),
        ({"metrics": [{"type": "Resource"}, "odd", {"resource": {"target": 7}}]}, set()),
    ],
)
def test_requests_are_left_alone_where_others_scale_on_a_share_of_them(
    cluster: WatchedCluster, metrics: dict[str, Any], taken: set[Axis]
) -> None:
    cluster.hpas.store.put(custom("other", spec=target(**metrics)))
    alone = {key: value for key, value in BOTH.items() if key != "maxReplicas"}
    assert axes(cluster, custom(spec=alone)) == taken
    assert axes(cluster, custom(spec=alone | {"vertical": {"apply": "Never"}})) == set()


def test_a_vpa_takes_the_requests_unless_it_is_off(cluster: WatchedCluster) -> None:
    cluster.vpas.store.put(custom("vpa", spec=target(field="targetRef")))
    assert axes(cluster, custom(spec=BOTH)) == {Axis.CPU, Axis.MEMORY}
    cluster.vpas.store.put(custom("vpa", spec=target(field="targetRef", updatePolicy={"updateMode": "Off"})))
    assert axes(cluster, custom(spec=BOTH)) == set()


def test_a_scaled_object_counts_once(cluster: WatchedCluster) -> None:
    cluster.scaled_objects.store.put(custom("keda", spec={"scaleTargetRef": {"name": "web"}}))
    owner = [{"kind": "ScaledObject", "name": "keda", "uid": "uid-keda", "controller": True}]
    cluster.hpas.store.put(custom("keda-hpa-web", spec=target(), metadata={"ownerReferences": owner}))
    found = subject(custom(spec=spec()))
    claims = Claims(cluster, [found], AT).against(found, AT)
    assert claims[Axis.REPLICAS].title == "ScaledObject shop/keda"
    assert "paused=true" in vetoes(claims)[0].detail


def test_an_hpa_of_keda_counts_until_its_scaled_object_is_known(cluster: WatchedCluster) -> None:
    owner = [{"kind": "ScaledObject", "name": "keda", "uid": "uid-keda", "controller": True}]
    cluster.hpas.store.put(custom("keda-hpa-web", spec=target(), metadata={"ownerReferences": owner}))
    assert axes(cluster, custom(spec=spec())) == {Axis.REPLICAS}


def test_the_remedy_for_a_scaled_object_ends_the_conflict(cluster: WatchedCluster) -> None:
    notes = {"annotations": {"autoscaling.keda.sh/paused": "true"}}
    cluster.scaled_objects.store.put(custom("keda", spec={"scaleTargetRef": {"name": "web"}}, metadata=notes))
    assert axes(cluster, custom(spec=spec())) == set()


def test_an_hpa_that_crane_left_behind_is_named_with_its_command(cluster: WatchedCluster) -> None:
    owner = [{"kind": "EffectiveHorizontalPodAutoscaler", "name": "web", "uid": "uid-web", "controller": True}]
    cluster.hpas.store.put(custom("ehpa-web", spec=target(), metadata={"ownerReferences": owner}))
    found = subject(custom(spec=spec(), metadata={"name": "web", "uid": "uid-web"}))
    (veto,) = vetoes(Claims(cluster, [found], AT).against(found, AT))
    assert "kubectl delete hpa ehpa-web -n shop" in veto.detail


def test_what_a_vpa_can_be_told_ends_the_conflict(cluster: WatchedCluster) -> None:
    cluster.vpas.store.put(custom("vpa", spec=target(field="targetRef")))
    found = subject(custom(spec=BOTH))
    remedy = Claims(cluster, [found], AT).against(found, AT)[Axis.CPU].remedy
    patch = json.loads(remedy.partition("-p '")[2].rstrip("'"))
    cluster.vpas.store.put(custom("vpa", spec=target(field="targetRef") | patch["spec"]))
    assert axes(cluster, custom(spec=BOTH)) == set()


def test_what_a_watermark_autoscaler_can_be_told_ends_the_conflict(cluster: WatchedCluster) -> None:
    cluster.wpas.store.put(custom("wpa", spec=target()))
    found = subject(custom(spec=spec()))
    claim = Claims(cluster, [found], AT).against(found, AT)[Axis.REPLICAS]
    assert claim.title == "WatermarkPodAutoscaler shop/wpa"
    patch = json.loads(claim.remedy.partition("-p '")[2].rstrip("'"))
    cluster.wpas.store.put(custom("wpa", spec=target() | patch["spec"]))
    assert axes(cluster, custom(spec=spec())) == set()


def test_a_predictive_hpa_takes_the_replicas(cluster: WatchedCluster) -> None:
    cluster.phpas.store.put(custom("phpa", spec=target()))
    assert axes(cluster, custom(spec=BOTH)) == {Axis.REPLICAS, Axis.CPU}


def test_a_pin_is_a_write_in_shadow_too(cluster: WatchedCluster) -> None:
    cluster.hpas.store.put(custom("other", spec=target()))
    notes = {"annotations": {"trimtab.dev/pin": "3", "trimtab.dev/pin-until": "2040-01-01T00:00:00Z"}}
    assert axes(cluster, custom(spec=spec(mode="Shadow"), metadata=notes)) == {Axis.REPLICAS}
    past = {"annotations": notes["annotations"] | {"trimtab.dev/pin-until": "2020-01-01T00:00:00Z"}}
    assert axes(cluster, custom(spec=spec(mode="Shadow"), metadata=past)) == set()


def test_vertical_alone_moves_replicas_only_where_it_has_a_floor_for_them(cluster: WatchedCluster) -> None:
    cluster.hpas.store.put(custom("other", spec=target(metrics=[CPU_VALUE])))
    alone = {key: value for key, value in BOTH.items() if key != "maxReplicas"}
    assert axes(cluster, custom(spec=alone)) == set()
    assert axes(cluster, custom(spec=alone | {"minReplicas": 3})) == {Axis.REPLICAS}


def test_the_older_of_ours_wins_on_each_axis_they_share(cluster: WatchedCluster) -> None:
    young, old = custom("young", NEW, spec=BOTH), custom("old", OLD, spec=spec())
    assert axes(cluster, young, old) == {Axis.REPLICAS, Axis.CPU}, "the old one scales on a share of cpu"
    assert axes(cluster, old, young) == set()
    assert axes(cluster, custom("older", "2025-12-01T00:00:00Z", spec=BOTH), young, old) == set()


def test_made_in_the_same_second_the_name_decides(cluster: WatchedCluster) -> None:
    a, b = custom("a", NEW, spec=spec()), custom("b", NEW, spec=spec())
    assert axes(cluster, b, a) == {Axis.REPLICAS} and axes(cluster, a, b) == set()


def test_shadow_and_paused_objects_neither_claim_nor_hold(cluster: WatchedCluster) -> None:
    young = custom("young", NEW, spec=spec())
    for mode in ("Shadow", "Paused"):
        assert axes(cluster, young, custom("old", OLD, spec=spec(mode=mode))) == set()
    cluster.hpas.store.put(custom("other", spec=target()))
    assert axes(cluster, custom("watcher", spec=spec(mode="Shadow"))) == set()


def test_a_schedule_is_a_floor_however_far_it_is() -> None:
    """Whose replicas are claimed does not depend on the day."""
    yearly = WrittenSchedule(name="new year", start="0 0 1 1 *", end="0 0 2 1 *", min_replicas=30)
    far = expand_schedules(Policy(settle=(), bounds=Bounds(schedules=(yearly,))), 1_790_000_000.0, 1_790_000_000.0)
    assert far.bounds.spans == () and _axes(far, 1_790_000_000.0) == (Axis.REPLICAS,)


def calls(cluster: WatchedCluster, many: int) -> int:
    """How many functions are called to tell so many objects on one target who was there before them."""
    subjects, counted = [subject(custom(f"web-{number}", spec=BOTH)) for number in range(many)], [0]

    def count(*_: object) -> None:
        counted[0] += 1

    sys.setprofile(count)
    try:
        claims = Claims(cluster, subjects, AT)
        held = [bool(claims.against(each, AT)) for each in subjects]
    finally:
        sys.setprofile(None)
    assert held.count(False) == 1
    return counted[0]


def test_many_objects_on_one_target_cost_in_proportion(cluster: WatchedCluster) -> None:
    assert calls(cluster, 400) < 6 * calls(cluster, 100)
