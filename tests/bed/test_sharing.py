"""The load of a workload is shared among its ready pods, over time and up to their limits."""

from __future__ import annotations

from typing import Any

import pytest

from tests.bed import exposition
from tests.bed.sharing import IDLE_MEMORY_BYTES, Curve, Pod, Script, World


def raw_pod(name: str, ready: bool = True, cpu_limit: str | None = None, **annotations: str) -> dict[str, Any]:
    limits = {"cpu": cpu_limit} if cpu_limit else {}
    return {
        "metadata": {
            "uid": name,
            "name": name,
            "namespace": "shop",
            "labels": {"app": "web"},
            "annotations": {f"bed.trimtab.dev/{word}": value for word, value in annotations.items()},
        },
        "spec": {"nodeName": "node-0", "containers": [{"name": "app"}, {"name": "sidecar"}]},
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": str(ready)}],
            "containerStatuses": [{"resources": {"limits": limits}}],
        },
    }


def world_of(*pods: dict[str, Any], **script: Any) -> World:
    world = World(now=100.0)
    world.post(("shop", "web"), Script.parse(script, 100.0))
    for pod in pods:
        world.see(pod, started_at=90.0)
    world.advance(100.0)
    return world


def pods_of(world: World) -> list[Pod]:
    return list(world.pods.values())


def test_ready_pods_share_and_the_others_do_nothing() -> None:
    world = world_of(raw_pod("a"), raw_pod("b"), raw_pod("c", ready=False), cores=1.0, rate=50)
    assert [(pod.cores, pod.rate) for pod in pods_of(world)] == [(0.5, 25), (0.5, 25), (0, 0)]


def test_counters_add_up_what_was_shared_before_a_change() -> None:
    world = world_of(raw_pod("a"), cores=1.0)
    world.set_clock(110.0)
    world.see(raw_pod("b"), started_at=110.0)
    world.advance(120.0)
    assert [round(pod.cpu_seconds, 6) for pod in pods_of(world)] == [15.001, 5.001]


def test_what_nobody_looks_at_is_added_up_later() -> None:
    world = world_of(raw_pod("a"), raw_pod("b"), cores=1.0)
    for second in range(101, 111):
        world.advance_ramps(second)
    assert pods_of(world)[0].cpu_seconds == 0.001, "its load is constant: nothing to do yet"
    world.post(("shop", "web"), Script.parse({"cores": [[0, 2.0], [10, 4.0]]}, 110.0))
    for second in range(111, 121):
        world.advance_ramps(second)
    world.forget("b")
    assert round(pods_of(world)[0].cpu_seconds, 6) == 19.501, "10 s of a half, then a ramp from 1 to 2 in steps of 1 s"
    assert pods_of(world)[0].cores == 4.0
    assert "node_cpu_usage_seconds_total 39.001" in exposition.kubelet(world, "node-0")


def test_a_limit_caps_the_cpu_of_a_pod() -> None:
    world = world_of(raw_pod("a", cpu_limit="250m"), raw_pod("b", cpu_limit="2"), cores=1.0)
    assert [pod.cores for pod in pods_of(world)] == [0.25, 0.5]


def test_the_annotation_is_a_script_until_one_is_posted() -> None:
    world = World(now=100.0)
    world.see(raw_pod("a", load='{"cores": 2}'), started_at=90.0)
    world.advance(101.0)
    assert pods_of(world)[0].cores == 2
    world.post(("shop", "web"), Script.parse({"cores": 3}, 101.0))
    assert pods_of(world)[0].cores == 3


@pytest.mark.parametrize(
    ("elapsed_s", "value"),
    [(-1, 10), (0, 10), (30, 55), (60, 100), (90, 100)],
    ids=["before", "start", "halfway", "end", "after"],
)
def test_a_curve_is_straight_between_its_points(elapsed_s: float, value: float) -> None:
    assert Curve.parse("rate", [[0, 10], [60, 100]]).at(elapsed_s) == value


@pytest.mark.parametrize(
    "words",
    [{"cpu": 1}, {"cores": "much"}, {"cores": []}, {"rate": [[60, 1], [0, 1]]}, {"fault": "fire"}],
    ids=["unknown word", "no number", "no points", "time runs back", "unknown fault"],
)
def test_a_wrong_script_is_refused_by_name(words: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(words))):
        Script.parse(words, 0.0)


def test_faults_hide_what_they_should() -> None:
    spoken = {
        fault: exposition.application(world_of(raw_pod("a"), rate=10, fault=fault))
        for fault in (None, "nan", "silent", "unmeasured")
    }
    assert 'requests_per_second{namespace="shop",app="web",pod="a"} 10.0' in spoken[None]
    assert 'requests_per_second{namespace="shop",app="web",pod="a"} NaN' in spoken["nan"]
    assert "requests_per_second" not in spoken["silent"]
    assert spoken["unmeasured"] == spoken[None]
    unmeasured = exposition.kubelet(world_of(raw_pod("a"), cores=1, fault="unmeasured"), "node-0")
    assert "container_cpu" not in unmeasured and "node_cpu" in unmeasured


def test_a_single_pod_can_be_unmeasured_and_works_on() -> None:
    world = world_of(raw_pod("a"), raw_pod("b", fate="Unmeasured"), cores=1, rate=10)
    kubelet, adapter = exposition.kubelet(world, "node-0"), exposition.custom_pods(world, "shop", "rate", {})
    assert 'pod="a"' in kubelet and 'pod="b"' not in kubelet
    assert [(one["describedObject"]["name"], one["value"]) for one in adapter["items"]] == [("a", "5000m")]


def test_the_first_container_works_and_the_others_idle() -> None:
    text = exposition.kubelet(world_of(raw_pod("a"), memory_bytes=2**30), "node-0")
    memory = [line for line in text.splitlines() if line.startswith("container_memory")]
    assert [line.split()[-2] for line in memory] == [str(2**30), str(IDLE_MEMORY_BYTES)]
