"""Predictive HPA on a real control plane: pods that take a minute to start, met with and without forecasts.

Two namespaces with the same HPAs, pods and loads; in one the HPAs are annotated. Two loads, side by side: a ramp that
more than doubles in seven minutes and stays there, and a flash crowd, four times the load within a second, for four
minutes. Over target means load / ready pods above what the HPA tolerates; pods are counted from their creation.

What can be had, reckoned beforehand: on the ramp the load grows by 30 requests a second while a pod starts, 1.5 pods of
10 to 22. Who only reacts is that short nearly all the time; who knows the future never is, with 1.14 times the pods. No
line knows of a knee before it comes: a minute's start-up and a minute's evidence are lost at the foot of the ramp. A
crowd that comes within a second cannot be foreseen: there the forecast may do nothing, and must not do harm.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.bed import Bed, eventually
from tests.bed.manifests import deployment
from tests.bed.parts import HPA_SYNC_PERIOD_S
from tests.e2e.conftest import namespaces
from tests.live.running import Running, autoscaler, install_crds

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]
TARGET, TOLERANCE, STARTUP_S = 20.0, 0.1, 60
LASTS_S = 560.0
LOADS: dict[str, list[list[float]]] = {
    "ramp": [[0, 200], [20, 200], [470, 425], [LASTS_S, 425]],  # half a request a second more in each second
    "crowd": [[0, 100], [60, 100], [61, 400], [300, 400], [301, 100], [LASTS_S, 100]],
}
LOOK_EVERY_S = 1.0

Workload = tuple[str, str]  # namespace, name


@pytest.fixture
def pair(bed: Bed) -> Iterator[tuple[str, str]]:
    with namespaces(bed, "doc3-reactive", "doc3-ahead") as (theirs, ours):
        yield theirs, ours


def hpa(namespace: str, name: str, predictive: bool) -> dict[str, Any]:
    target = {"type": "AverageValue", "averageValue": f"{TARGET:g}"}
    metric = {"type": "Pods", "pods": {"metric": {"name": "requests_per_second"}, "target": target}}
    made = autoscaler(namespace, name, metrics=[metric], minReplicas=1, maxReplicas=60)
    made["metadata"]["annotations"] = {"predictive": "true"} if predictive else {}
    return made | {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}


def load_at(points: list[list[float]], at_s: float) -> float:
    for (start, low), (end, high) in pairwise(points):
        if at_s < end:
            return low + (high - low) * max(0.0, at_s - start) / (end - start)
    return points[-1][1]


def start(bed: Bed, namespace: str, run: str, predictive: bool) -> None:
    """Both workloads, each with the pods that its first load needs."""
    for name, points in LOADS.items():
        pods = round(points[0][1] / TARGET)
        made = deployment(namespace, name, replicas=pods, annotations={"ready-after": f"{STARTUP_S}s"})
        made["metadata"]["labels"]["run"] = run
        bed.load(namespace, name, rate=points[0][1])
        bed.apply(made, hpa(namespace, name, predictive))


def ready_and_made(bed: Bed, run: str) -> dict[Workload, tuple[int, int]]:
    """How many pods of each workload are ready, and how many there are."""
    found = {}
    for one in bed.get("deployments", "--all-namespaces", "-l", f"run={run}")["items"]:
        status = one["status"]
        key = one["metadata"]["namespace"], one["metadata"]["name"]
        found[key] = status.get("readyReplicas", 0), status.get("replicas", 0)
    return found


class Score(NamedTuple):
    """Seconds over target, and pod-seconds."""

    over_s: float = 0.0
    pod_s: float = 0.0

    def add(self, for_s: float, load: float, ready: int, made: int) -> Score:
        over = ready == 0 or load / ready > TARGET * (1 + TOLERANCE)
        return Score(self.over_s + for_s * over, self.pod_s + for_s * made)


def watch(bed: Bed, pair: tuple[str, str], run: str) -> dict[Workload, Score]:
    """Start both loads in both namespaces, and count."""
    scores = {(namespace, name): Score() for namespace in pair for name in LOADS}
    for namespace, name in scores:
        bed.load(namespace, name, rate=LOADS[name])
    started = last = time.monotonic()
    while last - started < LASTS_S:
        time.sleep(LOOK_EVERY_S)
        seen, now = ready_and_made(bed, run), time.monotonic()
        for (namespace, name), score in scores.items():
            load = load_at(LOADS[name], now - started)
            scores[namespace, name] = score.add(now - last, load, *seen[namespace, name])
        last = now
    return scores


def measured_startup_s(running: Running, name: str) -> float:
    found = re.search(rf'trimtab_startup_seconds{{.*name="{name}",percentile="90"}} (\S+)', running.get("/metrics"))
    assert found, "the start-up time is among the operator's metrics"
    return float(found[1])


def test_a_ramp_is_met_before_it_hurts_and_a_flash_crowd_costs_nothing(
    bed: Bed, pair: tuple[str, str], tmp_path: Path
) -> None:
    install_crds(bed)
    reactive, ahead = pair
    run = uuid.uuid4().hex
    for namespace in pair:
        start(bed, namespace, run, predictive=namespace == ahead)
    with Running(bed, ahead, tmp_path) as running:
        counts = lambda: ready_and_made(bed, run).values()  # noqa: E731
        eventually(lambda: all(ready == made for ready, made in counts()), 60 + STARTUP_S, every_s=1)
        scores = watch(bed, pair, run)
        startups = {name: measured_startup_s(running, name) for name in LOADS}
        told = bed.kubectl("get", "events", "-n", ahead, "--field-selector=reason=ForecastFloor")
    print(said := f"{scores}, start-up {startups}")
    calm, keen = scores[reactive, "ramp"], scores[ahead, "ramp"]
    assert calm.over_s > 240, f"the ramp hurts who does not look ahead: {said}"
    assert keen.over_s <= 0.7 * calm.over_s, said
    assert keen.pod_s <= 1.2 * calm.pod_s, said
    calm, keen = scores[reactive, "crowd"], scores[ahead, "crowd"]
    assert calm.over_s > STARTUP_S, f"the crowd is there before the pods: {said}"
    assert keen.over_s <= 1.05 * calm.over_s + HPA_SYNC_PERIOD_S, said  # their syncs are not at the same moment
    assert keen.pod_s <= 1.05 * calm.pod_s, said
    for startup_s in startups.values():
        assert startup_s == pytest.approx(STARTUP_S, rel=0.1)
    assert "minReplicas raised from 1 to" in told and f"in {startups['ramp']:.0f} s" in told
