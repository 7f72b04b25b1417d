"""The twin of HPA: 20 generated specs under the same load, once served by the built-in controller, once by us.

At 99 of 100 moments our replicas lie within 1 pod of what the built-in controller had within 1 scrape and sync of it.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.bed import Bed, eventually
from tests.bed.manifests import deployment
from tests.bed.parts import HPA_SYNC_PERIOD_S, METRICS_RESOLUTION_S
from tests.live.running import Running, autoscaler, install_crds
from trimtab.journal import replay

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
SPECS = 20
MOST = 12
LASTS_S = 135.0
# One sync, and one scrape: who syncs just before a scrape acts on the next one; and the time of a busy machine.
SLACK_S = HPA_SYNC_PERIOD_S + METRICS_RESOLUTION_S + 3.0
APART = 0.01  # of all moments: where a rate's period ends between two syncs, the next step comes a period later

Trajectory = list[tuple[float, int]]


@pytest.fixture
def pair(bed: Bed) -> Iterator[tuple[str, str]]:
    names = tuple(f"twin-{which}-{uuid.uuid4().hex[:6]}" for which in ("hpa", "ours"))
    for name in names:
        bed.kubectl("create", "namespace", name)
    yield names[0], names[1]
    for name in names:
        bed.kubectl("delete", "namespace", name, "--wait=false")


def spec(dice: random.Random) -> dict[str, Any]:
    """CPU by utilisation or value, sometimes memory too, with and without behavior."""
    use = dice.choice(
        [{"averageUtilization": dice.choice([40, 50, 75])}, {"averageValue": dice.choice(["100m", "150m"])}]
    )
    kind = "Utilization" if "averageUtilization" in use else "AverageValue"
    metrics = [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": kind, **use}}}]
    if dice.random() < 0.3:
        memory = {"name": "memory", "target": {"type": "AverageValue", "averageValue": "300Mi"}}
        metrics.append({"type": "Resource", "resource": memory})
    made: dict[str, Any] = {"minReplicas": dice.choice([1, 2]), "maxReplicas": MOST, "metrics": metrics}
    if dice.random() < 0.8:
        down = {"stabilizationWindowSeconds": dice.choice([0, 10, 20])}
        if dice.random() < 0.5:
            down |= {"policies": [{"type": "Pods", "value": dice.choice([2, 3]), "periodSeconds": 15}]}
        up: dict[str, Any] = {"stabilizationWindowSeconds": dice.choice([0, 0, 5])}
        if dice.random() < 0.5:
            up |= {"policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]}
        made["behavior"] = {"scaleUp": up, "scaleDown": down}
    return made


def load(dice: random.Random) -> dict[str, Any]:
    low, high = dice.uniform(0.1, 0.4), dice.uniform(0.8, 2.0)
    cores = [[0, low], [5, low], [5.1, high], [80, high], [80.1, low]]  # steps: on a ramp every moment is another load
    memory_bytes = [[0, 2**28], [5, 2**28], [5.1, dice.uniform(1, 8) * 2**28]]
    return {"cores": cores, "memory_bytes": memory_bytes}


def counts(bed: Bed, namespace: str) -> dict[str, int]:
    return {one["metadata"]["name"]: one["spec"]["replicas"] for one in bed.get("deploy", "-n", namespace)["items"]}


def differences(ours: Trajectory, theirs: Trajectory) -> list[str]:
    """The moments at which ours was further than 1 pod from all that theirs was within the slack."""
    found = []
    for at, count in ours:
        near = [other for when, other in theirs if abs(when - at) <= SLACK_S]
        if near and not min(near) - 1 <= count <= max(near) + 1:
            found.append(f"{at:.0f} s: {count}, the HPA had {sorted(set(near))}")
    return found


def test_twenty_specs_follow_the_built_in_controller(bed: Bed, pair: tuple[str, str], tmp_path: Path) -> None:
    install_crds(bed)
    theirs, ours = pair
    dice = random.Random(20261115)
    names, loads = [f"web-{index}" for index in range(SPECS)], {}
    scalers = []
    with Running(bed, ours, tmp_path, "--tick", f"{HPA_SYNC_PERIOD_S}s") as running:
        for name in names:
            fate = dice.choice([{}, {}, {"ready-after": "5s"}])
            scaler = autoscaler(ours, name, **spec(dice))
            twin = autoscaler(theirs, name) | {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}
            scalers += [scaler, twin | {"spec": scaler["spec"]}]
            loads[name] = load(dice)
            bed.apply(*(deployment(each, name, replicas=2, annotations=fate) for each in pair))
        bed.apply(*scalers)
        for name in names:
            for each in pair:
                bed.load(each, name, cores=loads[name]["cores"][0][1], memory_bytes=2**28)
        eventually(lambda: _settled(bed, pair), 90, "both controllers read metrics", every_s=1)
        for name in names:
            for each in pair:
                bed.load(each, name, **loads[name])
        seen: dict[str, dict[str, Trajectory]] = {each: {name: [] for name in names} for each in pair}
        started = time.monotonic()
        while (at := time.monotonic() - started) < LASTS_S:
            for each in pair:
                for name, count in counts(bed, each).items():
                    seen[each][name].append((at, count))
            time.sleep(0.5)
    apart = {name: found for name in names if (found := differences(seen[ours][name], seen[theirs][name]))}
    moments = sum(len(trajectory) for trajectory in seen[ours].values())
    assert sum(map(len, apart.values())) <= moments * APART, apart
    assert max(count for name in names for _, count in seen[ours][name]) >= 8, "the load has moved them"
    assert replay(running.journal).differences == ()


def _settled(bed: Bed, pair: tuple[str, str]) -> bool:
    """Every object of both has read its metrics, and the replicas have rested for a scrape and a sync."""
    for kind, namespace in zip(("hpa", "autoscaler"), pair, strict=True):
        for one in bed.get(kind, "-n", namespace)["items"]:
            kinds = {each["type"]: each["status"] for each in one.get("status", {}).get("conditions", [])}
            assert kinds.get("ScalingActive") == "True", (namespace, one["metadata"]["name"], kinds)
    before = [counts(bed, each) for each in pair]
    time.sleep(METRICS_RESOLUTION_S + HPA_SYNC_PERIOD_S)
    return [counts(bed, each) for each in pair] == before
