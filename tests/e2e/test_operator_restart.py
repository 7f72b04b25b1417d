"""Restarts in the middle of a change: cooldowns and windows hold as if nothing had happened, as the audit log tells."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.bed import Bed, eventually
from tests.bed.manifests import deployment
from tests.live.accounts import chart_account
from tests.live.running import Running, autoscaler, install_crds, replicas

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]
TICK_S, STEP_S, REST_S, WINDOW_S = 2, 8, 20, 15
LATE_S = 1.0  # between the moment a decision is dated and the API server's date of its write
QUICK = ("--tick", f"{TICK_S}s", "--lease", "4s/3s/1s")
TWO_A_STEP = {
    "scaleUp": {"policies": [{"type": "Pods", "value": 2, "periodSeconds": STEP_S}]},
    "scaleDown": {"stabilizationWindowSeconds": WINDOW_S},
}


def queue(name: str = "web") -> list[dict[str, Any]]:
    metric = {"name": "queue_length", "selector": {"matchLabels": {"app": name}}}
    target = {"type": "AverageValue", "averageValue": "10"}
    return [{"type": "External", "external": {"metric": metric, "target": target}}]


def scales(bed: Bed, namespace: str) -> list[tuple[float, int]]:
    """(at, replicas) of each write of the scale that succeeded, in the API server's order."""
    found = []
    for event in bed.audit():
        about = event.get("objectRef", {})
        ours = about.get("namespace") == namespace and about.get("subresource") == "scale"
        if ours and event["verb"] == "patch" and event["responseStatus"]["code"] == 200:
            at = datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp()
            found.append((at, event["requestObject"]["spec"]["replicas"]))
    return found


def assert_steps_hold(found: list[tuple[float, int]], first: int, last: int) -> None:
    """Never down, never twice, never more than two pods within a step."""
    counts = [first, *(count for _, count in found)]
    assert counts == sorted(set(counts)) and counts[-1] == last, counts
    for (earlier, _), (later, count), before in zip(found, found[1:], counts[1:], strict=False):
        assert count - before <= 2
        assert later - earlier >= STEP_S - LATE_S, f"{before} to {count} after {later - earlier:.1f} s"


@pytest.fixture
def own_bed() -> Iterator[Bed]:
    with Bed.start() as started:
        yield started


def test_killed_twice_in_the_middle_of_a_scale_up(bed: Bed, namespace: str, tmp_path: Path) -> None:
    install_crds(bed)
    bed.load(namespace, "web", queue=90)
    bed.apply(deployment(namespace, "web"), autoscaler(namespace, metrics=queue(), behavior=TWO_A_STEP))
    with Running(bed, namespace, tmp_path, *QUICK, kubeconfig=chart_account(bed, namespace)) as running:
        for reached in (3, 7):
            eventually(lambda: scaled(bed, namespace) >= reached, 60, every_s=0.02)  # noqa: B023
            running.kill()
            running.start()
        eventually(lambda: replicas(bed, namespace) == 9, 60)
    assert_steps_hold(scales(bed, namespace), 1, 9)


def scaled(bed: Bed, namespace: str) -> int:
    """The last size that the status of the object knows of: once it is there, the step is remembered."""
    wrote: int = bed.get("autoscaler", "web", "-n", namespace)["status"]["memory"]["wrote"]["replicas"]
    return wrote


def test_a_cooldown_and_a_window_outlive_the_operator(bed: Bed, namespace: str, tmp_path: Path) -> None:
    install_crds(bed)
    behavior = {"scaleUp": {"cooldownSeconds": REST_S}, "scaleDown": {"stabilizationWindowSeconds": WINDOW_S}}
    bed.load(namespace, "web", queue=20)
    bed.apply(deployment(namespace, "web"), autoscaler(namespace, metrics=queue(), behavior=behavior))
    with Running(bed, namespace, tmp_path, *QUICK, kubeconfig=chart_account(bed, namespace)) as running:
        eventually(lambda: scaled(bed, namespace) == 2, 60)
        running.kill()
        for lost in tmp_path.glob("journal.db*"):  # a record, never the memory
            lost.unlink()
        bed.load(namespace, "web", queue=40)
        running.start()
        eventually(lambda: replicas(bed, namespace) == 4, 60)
        (first, _), (second, _) = scales(bed, namespace)
        assert second - first >= REST_S - LATE_S, "the cooldown began before the kill"
        eventually(lambda: scaled(bed, namespace) == 4, 20)
        running.kill()
        bed.load(namespace, "web", queue=10)
        started = time.time()
        running.start()
        eventually(lambda: replicas(bed, namespace) == 1, 90)
    down = scales(bed, namespace)[2][0]
    assert down - started >= WINDOW_S, "a new leader watches for a whole window before it lowers anything"


def test_a_scaling_is_known_even_if_nothing_was_said_of_it(bed: Bed, namespace: str, tmp_path: Path) -> None:
    """Killed between the write of the scale and that of the status: here by another hand under the same manager."""
    install_crds(bed)
    bed.load(namespace, "web", queue=10)
    spec: dict[str, Any] = {"metrics": queue(), "behavior": {"scaleUp": {"cooldownSeconds": REST_S}}}
    bed.apply(deployment(namespace, "web"), autoscaler(namespace, **spec))
    with Running(bed, namespace, tmp_path, *QUICK, kubeconfig=chart_account(bed, namespace)) as running:
        eventually(lambda: bed.get("autoscaler", "web", "-n", namespace)["status"]["currentReplicas"] == 1, 40)
        running.kill()
        words = ("patch", "deployment", "web", "-n", namespace, "--subresource=scale", "--field-manager=trimtab")
        bed.kubectl(*words, "--type=merge", "-p", '{"spec":{"replicas":2}}')
        bed.load(namespace, "web", queue=40)
        running.start()
        eventually(lambda: replicas(bed, namespace) == 4, 60)
    (unsaid, _), (next_one, _) = scales(bed, namespace)
    assert next_one - unsaid >= REST_S - LATE_S, "its cooldown holds all the same"


@pytest.mark.disruptive
def test_the_api_server_restarts_in_the_middle_of_a_scale_up(own_bed: Bed, tmp_path: Path) -> None:
    install_crds(own_bed)
    own_bed.kubectl("create", "namespace", "shop")
    own_bed.load("shop", "web", queue=90)
    own_bed.apply(deployment("shop", "web"), autoscaler("shop", metrics=queue(), behavior=TWO_A_STEP))
    with Running(own_bed, "shop", tmp_path, *QUICK, kubeconfig=chart_account(own_bed, "shop")) as running:
        eventually(lambda: replicas(own_bed, "shop") == 3, 60)
        own_bed.restart_apiserver()
        eventually(lambda: replicas(own_bed, "shop") >= 5, 90)
        own_bed.restart_apiserver()
        eventually(lambda: replicas(own_bed, "shop") == 9, 90)
        eventually(lambda: "leading" in running.get("/readyz"), 30)
    assert_steps_hold(scales(own_bed, "shop"), 1, 9)
