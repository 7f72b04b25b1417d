"""Demand that outlives the operator, and pods so slow that only a forecast meets a ramp, on a real control plane."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.bed import Bed, eventually
from tests.bed.manifests import deployment
from tests.e2e.test_bed import ready_pods
from tests.history.filled import Filled, fill, serve
from tests.live.running import Running, autoscaler, install_crds

pytestmark = pytest.mark.e2e
DAY_S, WEEK_MINUTES = 86400, 7 * 1440
WITHIN_S = 60.0

TARGET, POD_CORES, FIRST_CORES = 0.5, 0.25, 1.25
FIRST_PODS = round(FIRST_CORES / POD_CORES / TARGET)
AHEAD, REACTING = "ahead", "reacting"


class Ramp(NamedTuple):
    """So steep that who only reacts to it is above 1.3 times the target in the mean (simulated: 1.42 and 1.40)."""

    startup_s: float
    lasts_s: float
    times: float

    def cores(self, elapsed_s: float) -> float:
        return FIRST_CORES * (1 + (self.times - 1) * min(1.0, max(0.0, elapsed_s - LEVEL_S) / self.lasts_s))

    def script(self) -> list[list[float]]:
        end_s = LEVEL_S + self.lasts_s
        return [[0, FIRST_CORES], [LEVEL_S, FIRST_CORES], [end_s, self.cores(end_s)]]


class Look(NamedTuple):
    """What a moment of the ramp needs, as pods at the target, and what there was."""

    needed: float
    ready: int
    floor: int


# Level until a line can be drawn as far back as the slowest pods look ahead.
LEVEL_S, LOOK_EVERY_S = 720.0, 5.0
RAMPS = {"slow": Ramp(240.0, 1200.0, 4.0), "slower": Ramp(600.0, 1800.0, 2.75)}
WORKLOADS = [(pods, how) for pods in RAMPS for how in (AHEAD, REACTING)]


def effective_hpa(namespace: str) -> dict[str, Any]:
    made = autoscaler(namespace)
    algorithm = {"algorithmType": "dsp", "dsp": {"sampleInterval": "60s", "historyLength": "7d"}}
    made["spec"]["prediction"] = {"predictionWindowSeconds": 3600, "predictionAlgorithm": algorithm}
    return made | {"apiVersion": "autoscaling.crane.io/v1alpha1", "kind": "EffectiveHorizontalPodAutoscaler"}


def week_of(namespace: str, pod: str, cores: float) -> Filled:
    """A daily wave around `cores`, a value each minute, until now."""
    end = int(time.time()) // 60 * 60
    times = np.arange(end - (WEEK_MINUTES - 1) * 60, end + 60, 60)
    counter = np.cumsum(60 * cores * (1 + 0.5 * np.sin(2 * np.pi * times / DAY_S)))
    labels = f'namespace="{namespace}",container="app",pod="{pod}"'
    return Filled(f"container_cpu_usage_seconds_total{{{labels}}}", times, counter)


def test_an_effective_hpa_on_cpu_forecasts_within_a_minute_of_its_first_sight_and_of_a_kill(
    bed: Bed, namespace: str, tmp_path: Path
) -> None:
    install_crds(bed)
    bed.apply(deployment(namespace, "web"))
    bed.load(namespace, "web", cores=0.1)
    ready_pods(bed, namespace, 1)
    (pod,) = bed.get("pods", "-n", namespace, "-l", "app=web")["items"]
    fill(tmp_path, [week_of(namespace, pod["metadata"]["name"], 0.1)])
    with serve(tmp_path) as (url, _), Running(bed, namespace, tmp_path, "--prometheus", url) as running:
        bed.apply(effective_hpa(namespace))
        forecast = lambda: 'model="dsp"' in running.get("/metrics")  # noqa: E731
        eventually(forecast, WITHIN_S, "a forecast at first sight", every_s=0.5)
        running.kill()
        running.start()
        eventually(lambda: _answers(running) and forecast(), WITHIN_S, "a forecast after a kill", every_s=0.5)


def _answers(running: Running) -> bool:
    try:
        return running.get("/readyz").startswith("ok")
    except OSError:
        return False


def workload(namespace: str, pods: str, how: str) -> dict[str, Any]:
    ready_after = f"{RAMPS[pods].startup_s:.0f}s"
    return deployment(namespace, f"{pods}-{how}", replicas=FIRST_PODS, annotations={"ready-after": ready_after})


def hpa(namespace: str, pods: str, how: str) -> dict[str, Any]:
    made = autoscaler(namespace, f"{pods}-{how}", maxReplicas=60)
    made["metadata"]["annotations"] = {"predictive": "true"} if how == AHEAD else {}
    return made | {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}


def ready_of(bed: Bed, namespace: str) -> dict[str, int]:
    found = bed.get("deployments", "-n", namespace)["items"]
    return {item["metadata"]["name"]: item["status"].get("readyReplicas", 0) for item in found}


def floors_of(bed: Bed, namespace: str) -> dict[str, int]:
    return {item["metadata"]["name"]: item["spec"]["minReplicas"] for item in bed.get("hpa", "-n", namespace)["items"]}


def watch_ramps(bed: Bed, namespace: str) -> dict[tuple[str, str], list[Look]]:
    """Every workload's ramp, look by look, from its foot to its top."""
    looks: dict[tuple[str, str], list[Look]] = {workload: [] for workload in WORKLOADS}
    for pods, how in WORKLOADS:
        bed.load(namespace, f"{pods}-{how}", cores=RAMPS[pods].script())
    started = time.monotonic()
    while (elapsed_s := time.monotonic() - started) < LEVEL_S + max(ramp.lasts_s for ramp in RAMPS.values()):
        time.sleep(LOOK_EVERY_S)
        ready, floors = ready_of(bed, namespace), floors_of(bed, namespace)
        for (pods, how), found in looks.items():
            if LEVEL_S <= elapsed_s < LEVEL_S + RAMPS[pods].lasts_s:
                needed = RAMPS[pods].cores(elapsed_s) / POD_CORES / TARGET
                found.append(Look(needed, ready[f"{pods}-{how}"], floors[f"{pods}-{how}"]))
    return looks


def over_target(looks: list[Look]) -> float:
    """Utilisation over the target, in the mean."""
    return float(np.mean([look.needed / max(1, look.ready) for look in looks]))


@pytest.mark.timeout(5400)
def test_the_floor_of_slow_pods_is_ahead_of_a_ramp_at_the_default_tick(
    bed: Bed, namespace: str, tmp_path: Path
) -> None:
    """Takes 52 minutes: pods of four and of ten minutes' start-up, each under an HPA at 50 % of CPU, with its twin."""
    install_crds(bed)
    bed.apply(*(workload(namespace, *each) for each in WORKLOADS))
    waits_s = max(ramp.startup_s for ramp in RAMPS.values()) + 300
    everybody = {f"{pods}-{how}": FIRST_PODS for pods, how in WORKLOADS}
    eventually(lambda: ready_of(bed, namespace) == everybody, waits_s, "all are ready", every_s=5)
    bed.apply(*(hpa(namespace, *each) for each in WORKLOADS))  # not before: the first ready pods bear all of the load
    with Running(bed, namespace, tmp_path, "--tick", "15s"):
        looks = watch_ramps(bed, namespace)
    means = {workload: over_target(found) for workload, found in looks.items()}
    print(means, [(look.needed, look.ready, look.floor) for look in looks["slower", AHEAD]][::12])
    for pods in RAMPS:
        assert means[pods, AHEAD] <= 1.3 < means[pods, REACTING], means
        top = looks[pods, AHEAD][-len(looks[pods, AHEAD]) // 3 :]
        assert all(look.floor >= look.needed for look in top), f"{pods}: the floor is ahead of the load: {top}"
