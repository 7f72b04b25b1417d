"""Demand that outlives the operator, and pods so slow that only a forecast meets a ramp, on a real control plane."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

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

# Cores of all pods together: level until lines can be drawn, then four times as much within forty minutes.
TARGET, POD_CORES, FIRST_CORES = 0.5, 0.25, 1.25
STARTUPS_S = {"slow": 240, "slower": 600}
LEVEL_S, RAMP_S, LOOK_EVERY_S = 900.0, 2400.0, 5.0


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


def annotated_hpa(namespace: str, name: str) -> dict[str, Any]:
    made = autoscaler(namespace, name, maxReplicas=60)
    made["metadata"]["annotations"] = {"predictive": "true"}
    return made | {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}


def ready_of(bed: Bed, namespace: str) -> dict[str, int]:
    found = bed.get("deployments", "-n", namespace)["items"]
    return {item["metadata"]["name"]: item["status"].get("readyReplicas", 0) for item in found}


@pytest.mark.timeout(6000)
def test_the_floor_of_slow_pods_is_ahead_of_a_ramp_at_the_default_tick(
    bed: Bed, namespace: str, tmp_path: Path
) -> None:
    """Takes over an hour: pods of four and of ten minutes' start-up, an HPA at 50 % of their CPU."""
    install_crds(bed)
    first = round(FIRST_CORES / POD_CORES / TARGET)
    for name, startup_s in STARTUPS_S.items():
        bed.load(namespace, name, cores=FIRST_CORES)
        made = deployment(namespace, name, replicas=first, annotations={"ready-after": f"{startup_s}s"})
        bed.apply(made, annotated_hpa(namespace, name))
    waits_s = max(STARTUPS_S.values()) + 120
    eventually(lambda: set(ready_of(bed, namespace).values()) == {first}, waits_s, "all are ready", every_s=5)
    script = [[0, FIRST_CORES], [LEVEL_S, FIRST_CORES], [LEVEL_S + RAMP_S, 4 * FIRST_CORES]]
    busy: dict[str, list[float]] = {name: [] for name in STARTUPS_S}
    with Running(bed, namespace, tmp_path, "--tick", "15s"):
        for name in STARTUPS_S:
            bed.load(namespace, name, cores=script)
        started = time.monotonic()
        while (elapsed := time.monotonic() - started) < LEVEL_S + RAMP_S:
            time.sleep(LOOK_EVERY_S)
            cores = FIRST_CORES * (1 + 3 * max(0.0, elapsed - LEVEL_S) / RAMP_S)
            for name, ready in ready_of(bed, namespace).items():
                if elapsed >= LEVEL_S:
                    busy[name].append(cores / max(1, ready) / POD_CORES)
    means = {name: float(np.mean(found)) for name, found in busy.items()}
    assert all(mean <= 1.3 * TARGET for mean in means.values()), means
