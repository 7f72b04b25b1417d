"""The bridge on a real control plane: pods that take two minutes, a jump of 60 %, with and without it at once."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest

from tests.bed import Bed, eventually
from tests.bed.manifests import deployment
from tests.live.running import Running, autoscaler, install_crds, trimtab
from trimtab.quantity import parse_quantity

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1200)]
SERVICE_LEVEL, BEFORE, AFTER = 0.8, 0.6, 0.96  # cores on ten pods of 100m
PLAIN, BRIDGED = "plain", "bridged"


def pods(bed: Bed, namespace: str, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = bed.get("pods", "-n", namespace, "-l", f"app={name}")["items"]
    return found


def cpu(pod: dict[str, Any]) -> float:
    return parse_quantity(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"])


def is_ready(pod: dict[str, Any]) -> bool:
    found = pod.get("status", {}).get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in found)


def carried(bed: Bed, namespace: str, name: str) -> float:
    """Cores that the ready pods carry at the service level."""
    return SERVICE_LEVEL * sum(cpu(pod) for pod in pods(bed, namespace, name) if is_ready(pod))


def seconds_over(bed: Bed, namespace: str, load: float) -> dict[str, float]:
    """Of each workload, how long ready pods had too much to carry, until neither has."""
    over, last, deadline = {PLAIN: 0.0, BRIDGED: 0.0}, time.monotonic(), time.monotonic() + 420
    while time.monotonic() < deadline:
        busy = [name for name in over if carried(bed, namespace, name) < load]
        now = time.monotonic()
        for name in busy:
            over[name] += now - last
        last = now
        if not busy and over[PLAIN] > 60:
            return over
        time.sleep(1)
    raise TimeoutError(f"still over the service level: {over}")


def uids(bed: Bed, namespace: str, name: str) -> set[str]:
    return {pod["metadata"]["uid"] for pod in pods(bed, namespace, name)}


def test_a_jump_meets_ready_pods_with_more_cpu_until_new_ones_are_ready(
    bed: Bed, namespace: str, tmp_path: Path
) -> None:
    install_crds(bed)
    metric = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}
    spec = {"metrics": [{"type": "Resource", "resource": metric}], "minReplicas": 10, "maxReplicas": 20}
    for name in (PLAIN, BRIDGED):
        bed.load(namespace, name, cores=BEFORE)
        slow = {"ready-after": "120s"}
        bed.apply(deployment(namespace, name, replicas=10, cpu="100m", annotations=slow, guaranteed=True))
    for name in (PLAIN, BRIDGED):
        eventually(lambda name=name: sum(map(is_ready, pods(bed, namespace, name))) == 10, 300)  # type: ignore[misc]
    before = uids(bed, namespace, BRIDGED)
    with Running(bed, namespace, tmp_path) as running:
        bed.apply(autoscaler(namespace, PLAIN, **spec), autoscaler(namespace, BRIDGED, bridge={}, **spec))
        told = lambda: bed.get("autoscaler", BRIDGED, "-n", namespace)["status"]  # noqa: E731
        eventually(lambda: told()["bridge"] == {"factor": "1", "pods": 0}, 60)
        for name in (PLAIN, BRIDGED):
            bed.load(namespace, name, cores=AFTER)
        over = seconds_over(bed, namespace, AFTER)
        print(f"seconds over the service level: {over}")
        assert over[BRIDGED] <= over[PLAIN] / 3
        assert "trimtab_bridge_resizes_total" in running.get("/metrics")
        eventually(lambda: {cpu(pod) for pod in pods(bed, namespace, BRIDGED)} == {0.1}, 600, "sizes go back")
        assert before <= uids(bed, namespace, BRIDGED), "the pods are the same ones"
        assert told()["desiredReplicas"] == bed.get("autoscaler", PLAIN, "-n", namespace)["status"]["desiredReplicas"]


def test_what_a_dead_operator_left_is_restored_by_hand(bed: Bed, namespace: str, tmp_path: Path) -> None:
    install_crds(bed)
    bed.load(namespace, "web", cores=0.2 * 0.95)
    bed.apply(deployment(namespace, "web", replicas=2, cpu="100m", guaranteed=True))
    eventually(lambda: sum(map(is_ready, pods(bed, namespace, "web"))) == 2, 60)
    bed.apply(autoscaler(namespace, bridge={}, minReplicas=2, maxReplicas=2))
    with Running(bed, namespace, tmp_path):
        eventually(lambda: {cpu(pod) for pod in pods(bed, namespace, "web")} == {0.15}, 120)
    done = trimtab("restore", "-n", namespace, "--kubeconfig", str(bed.kubeconfig))
    assert done.returncode == 0 and "back from 1.5 times its cpu" in done.stdout, done.stderr
    assert {cpu(pod) for pod in pods(bed, namespace, "web")} == {0.1}


def capacity(running: Running, name: str) -> float | None:
    """The load above which the ready pods of an object are overloaded, as the operator tells it."""
    found = re.search(
        rf'^trimtab_capacity\{{[^}}]*name="{name}"[^}}]*\}} (\S+)$', running.get("/metrics"), re.MULTILINE
    )
    return float(found[1]) if found else None


def test_pods_that_may_burst_carry_their_request_and_get_no_bridge(bed: Bed, namespace: str, tmp_path: Path) -> None:
    """Both use 95 % of 100m: Guaranteed pods are overloaded above 80m and grow, others above 100m and do not."""
    install_crds(bed)
    for name in (PLAIN, BRIDGED):
        bed.load(namespace, name, cores=0.2 * 0.95)
        bed.apply(deployment(namespace, name, replicas=2, cpu="100m", guaranteed=name == BRIDGED))
    for name in (PLAIN, BRIDGED):
        eventually(lambda name=name: sum(map(is_ready, pods(bed, namespace, name))) == 2, 120)  # type: ignore[misc]
    with Running(bed, namespace, tmp_path) as running:
        for name in (PLAIN, BRIDGED):
            bed.apply(autoscaler(namespace, name, bridge={}, minReplicas=2, maxReplicas=2))
        eventually(lambda: {cpu(pod) for pod in pods(bed, namespace, BRIDGED)} == {0.15}, 180)
        applies = {name: condition(bed, namespace, name) for name in (PLAIN, BRIDGED)}
        assert applies == {PLAIN: ("False", "PodsMayBurst"), BRIDGED: ("True", "LimitSetsLevel")}
        assert {cpu(pod) for pod in pods(bed, namespace, PLAIN)} == {0.1}
        assert capacity(running, PLAIN) == pytest.approx(2 * 0.1)
        assert capacity(running, BRIDGED) == pytest.approx(2 * 0.08 * 1.5)


def condition(bed: Bed, namespace: str, name: str) -> tuple[str, str]:
    found = bed.get("autoscaler", name, "-n", namespace)["status"]["conditions"]
    return next((one["status"], one["reason"]) for one in found if one["type"] == "BridgeApplies")
