"""Document 003 on a real control plane: pods that take a minute to start, a ramp, once with and once without foresight.

Two HPAs with the same spec and the same load; one is annotated. Over target: load / ready pods above the target. The
pods are counted on the ramp alone, where who only reacts is short of them all the time: measured 1.44 times as many.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.bed import Bed, eventually
from tests.bed.manifests import deployment
from tests.e2e.test_bed import ready_pods
from tests.live.running import Running, autoscaler, install_crds
from trimtab.journal import replay

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
TARGET, STARTUP_S = 20.0, 60
RAMP = [[0, 60], [20, 60], [200, 420], [240, 420]]  # two requests a second more in each second
LASTS_S = 240.0


@pytest.fixture
def pair(bed: Bed) -> Iterator[tuple[str, str]]:
    names = tuple(f"doc3-{which}-{uuid.uuid4().hex[:6]}" for which in ("reactive", "ahead"))
    for name in names:
        bed.kubectl("create", "namespace", name)
    yield names[0], names[1]
    for name in names:
        bed.kubectl("delete", "namespace", name, "--wait=false")


def hpa(namespace: str, predictive: bool) -> dict[str, Any]:
    target = {"type": "AverageValue", "averageValue": f"{TARGET:g}"}
    metric = {"type": "Pods", "pods": {"metric": {"name": "requests_per_second"}, "target": target}}
    made = autoscaler(namespace, metrics=[metric], minReplicas=1, maxReplicas=40)
    made["metadata"]["annotations"] = {"predictive": "true"} if predictive else {}
    return made | {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}


def load_at(at_s: float) -> float:
    for (start, low), (end, high) in pairwise(RAMP):
        if at_s < end:
            return low + (high - low) * max(0.0, at_s - start) / (end - start)
    return float(RAMP[-1][1])


def ready_and_made(bed: Bed, namespace: str) -> tuple[int, int]:
    status = bed.get("deployment", "web", "-n", namespace)["status"]
    return status.get("readyReplicas", 0), status.get("replicas", 0)


def test_a_ramp_is_met_before_it_hurts(bed: Bed, pair: tuple[str, str], tmp_path: Path) -> None:
    install_crds(bed)
    reactive, ahead = pair
    for namespace in pair:
        bed.load(namespace, "web", rate=RAMP[0][1])
        made = deployment(namespace, "web", replicas=3, annotations={"ready-after": f"{STARTUP_S}s"})
        bed.apply(made, hpa(namespace, predictive=namespace == ahead))
    for namespace in pair:
        eventually(lambda namespace=namespace: ready_pods(bed, namespace, 3), 60 + STARTUP_S)
    over_s, pod_s = dict.fromkeys(pair, 0.0), dict.fromkeys(pair, 0.0)
    with Running(bed, ahead, tmp_path) as running:
        eventually(lambda: "trimtab_objects 1" in running.get("/metrics"), 20)
        for namespace in pair:
            bed.load(namespace, "web", rate=RAMP)
        started = last = time.monotonic()
        while (now := time.monotonic()) - started < LASTS_S:
            for namespace in pair:
                ready, made_pods = ready_and_made(bed, namespace)
                over = ready == 0 or load_at(now - started) / ready > TARGET * 1.1  # HPA's own tolerance
                over_s[namespace] += (now - last) * over
                pod_s[namespace] += (now - last) * made_pods
            last = now
            time.sleep(0.5)
    said = f"over target {over_s}, pod-seconds {pod_s}"
    print(said)
    assert over_s[reactive] > 30, f"the ramp hurts who does not look ahead: {said}"
    assert over_s[ahead] <= 0.7 * over_s[reactive], said
    assert pod_s[ahead] <= 1.6 * pod_s[reactive], said
    assert replay(running.journal).differences == ()
