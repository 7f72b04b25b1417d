"""A container killed for its memory gets more once, whatever happens to the operator afterwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.virtual.cluster import Cluster, autoscaler
from tests.virtual.faults import FOREVER, Killed
from tests.virtual.machines import OWN_NAMESPACE
from trimtab.live.act.restore import Restored, restore_all
from trimtab.live.look.subject import ChangeRules
from trimtab.quantity import MIB, parse_quantity
from trimtab.wire.from_kubernetes import rfc3339
from trimtab.wire.kube import Kube

WEB = "shop/web"
QUICK = ChangeRules(up_after_s=300.0, down_after_s=300.0)
GROWN = 422  # MiB: 256 + 100, rounded up to the end of a bucket, and the margin


def furnish(cluster: Cluster, replicas: int = 2, **vertical: Any) -> None:
    cluster.prometheus = None
    cluster.deploy(WEB, replicas=replicas, load=1.0, memory="256Mi")
    bounds = {"minReplicas": replicas, "maxReplicas": replicas}
    cluster.apply(autoscaler(WEB, **bounds, vertical={"apply": "InPlace"} | vertical))
    cluster.run(minutes=15)


def memory_of(cluster: Cluster) -> set[int]:
    """MiB that pods request."""
    requests = [pod["spec"]["containers"][0]["resources"]["requests"] for pod in cluster.pods(WEB)]
    return {round(parse_quantity(request["memory"]) / MIB) for request in requests}


def leader(cluster: Cluster) -> str:
    return str(cluster.get("Lease", f"{OWN_NAMESPACE}/trimtab")["spec"]["holderIdentity"])


def test_four_takeovers_raise_memory_once() -> None:
    with Cluster(seed=9, operators=2, change_rules=QUICK) as cluster:
        furnish(cluster)
        cluster.oom_kill(WEB)
        killed_at = rfc3339(cluster.now())
        cluster.run(minutes=2)
        assert memory_of(cluster) == {GROWN}
        for _ in range(4):
            cluster.kill(leader(cluster), back_after_s=20.0)
            cluster.run(minutes=12)
            assert memory_of(cluster) == {GROWN}
        (kill,) = cluster.get("Autoscaler", WEB)["status"]["memory"]["oom_kills"].values()
        assert (rfc3339(kill["finished_at"]), kill["request_bytes"]) == (killed_at, 256 * MIB)


def test_the_next_kill_raises_it_from_the_size_it_had_then() -> None:
    with Cluster(seed=9, change_rules=QUICK) as cluster:
        furnish(cluster)
        cluster.oom_kill(WEB)
        cluster.run(minutes=2)
        cluster.oom_kill(WEB)
        cluster.run(minutes=2)
        (kill,) = cluster.get("Autoscaler", WEB)["status"]["memory"]["oom_kills"].values()
        assert round(kill["request_bytes"] / MIB) == GROWN
        assert 522 <= min(memory_of(cluster)) <= max(memory_of(cluster)) <= 650


def test_one_kill_among_many_pods_is_answered() -> None:
    with Cluster(seed=9, change_rules=QUICK) as cluster:
        furnish(cluster, replicas=12)
        cluster.oom_kill(WEB, pod=5)
        cluster.run(minutes=2)
        assert min(memory_of(cluster)) >= 356


@pytest.mark.parametrize("done", [True, False], ids=["carried out", "lost"])
@pytest.mark.parametrize("requests", [1, 2, 3, 4])
def test_an_operator_that_dies_while_it_answers_a_kill_answers_it_once(requests: int, done: bool) -> None:
    """Before the resize, between the resizes of two pods, or before its status says what it has done."""
    with Cluster(seed=9, change_rules=QUICK) as cluster:
        furnish(cluster)
        cluster.oom_kill(WEB)
        now_s = cluster.now() - cluster.start
        dies = Killed(now_s, FOREVER, requests=requests, methods=("PATCH",), done=done, back_after_s=5.0)
        cluster.faults(dies)
        cluster.run(minutes=10)
        assert max(memory_of(cluster)) == GROWN


@pytest.mark.parametrize("by_s", [7200.0, -7200.0])
def test_a_clock_that_is_set_repeats_nothing(by_s: float) -> None:
    with Cluster(seed=9, operators=2, change_rules=QUICK) as cluster:
        furnish(cluster)
        cluster.oom_kill(WEB)
        cluster.run(minutes=2)
        cluster.step_clock(leader(cluster), by_s)
        cluster.run(minutes=30)
        cluster.kill(leader(cluster), back_after_s=20.0)
        cluster.run(minutes=30)
        assert memory_of(cluster) == {GROWN}


def test_a_rollout_by_its_owner_is_sized_by_what_the_kill_taught() -> None:
    with Cluster(seed=9, change_rules=QUICK) as cluster:
        furnish(cluster)
        cluster.oom_kill(WEB)
        cluster.run(minutes=2)
        cluster.deploy(WEB, replicas=2, memory="256Mi", image="web:2")
        cluster.run(minutes=15)
        assert memory_of(cluster) == {GROWN}


def test_a_size_that_changes_leaves_an_event_a_log_line_and_a_metric(caplog: pytest.LogCaptureFixture) -> None:
    """From what to what, and why: ten resizes left nothing that whoever is on call could read."""
    with Cluster(seed=9, change_rules=QUICK) as cluster:
        furnish(cluster)
        cluster.oom_kill(WEB)
        said = f"main memory 256Mi to {GROWN}Mi: OOM kill at {rfc3339(cluster.now())[11:19]} UTC"
        with caplog.at_level("INFO"):
            cluster.run(minutes=2)
        events = cluster.server.store.of(cluster._kind("Event")).items.values()
        assert said in [event["message"] for event in events if event["reason"] == "SuccessfulResize"]
        assert f"Autoscaler shop/web: {said}" in caplog.messages
        counted = 'container="main",resource="memory",direction="up",reason="OOMKill"} 1'
        assert counted in cluster.metrics_page()


def _restored(cluster: Cluster) -> list[Restored]:
    async def found() -> list[Restored]:
        async with Kube(cluster._access("person")) as kube:
            return [each async for each in restore_all(kube, "", dry_run=False)]

    return cluster.loop.run_until_complete(found())


def _killed(cluster: Cluster) -> None:
    cluster.oom_kill(WEB)


def _busy(cluster: Cluster) -> None:
    cluster.load(WEB, 3.0)


@pytest.mark.parametrize(("before", "keeps", "says"), [
    (_killed, "memory", "OOM kill at"),
    (_busy, "cpu", "its pods use"),
])  # fmt: skip
def test_restore_takes_nothing_away_that_pods_need(before: Callable[[Cluster], None], keeps: str, says: str) -> None:
    """`freeze --undo` and uninstall put all pods at once straight to the limit that had killed them."""
    with Cluster(seed=9, change_rules=QUICK) as cluster:
        cluster.workloads.set(WEB, burst=8.0)
        furnish(cluster)
        before(cluster)
        cluster.run(minutes=30)
        cluster.stop_operator("operator-0")
        cluster.run(seconds=5)
        sizes = [pod["spec"]["containers"][0]["resources"]["requests"] for pod in cluster.pods(WEB)]
        found = _restored(cluster)
        after = [pod["spec"]["containers"][0]["resources"]["requests"] for pod in cluster.pods(WEB)]
        assert [size[keeps] for size in after] == [size[keeps] for size in sizes]
        assert any(each.stays and f"main {keeps} stays at" in each.text and says in each.text for each in found)


def test_restore_puts_back_what_nobody_needs() -> None:
    with Cluster(seed=9, change_rules=QUICK) as cluster:
        cluster.workloads.set(WEB, burst=8.0)
        furnish(cluster)
        cluster.load(WEB, lambda seconds: 3.0 if seconds < 3000 else 0.5)
        cluster.run(minutes=30)
        assert {pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] for pod in cluster.pods(WEB)} != {"1"}
        cluster.stop_operator("operator-0")
        cluster.run(minutes=15)
        found = _restored(cluster)
        assert not any(each.trouble or "cpu stays" in each.text for each in found)
        assert {pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] for pod in cluster.pods(WEB)} == {"1"}
