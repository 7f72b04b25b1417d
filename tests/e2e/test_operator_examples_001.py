"""Document 001's examples 1 and 2, walked up and down on a real control plane: the shapes of their figures.

The load grows a hundredfold and falls again; every act is taken from the operator's journal, which replays clean.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.bed import Bed, eventually
from tests.bed.manifests import deployment
from tests.e2e.test_bed import ready_pods
from tests.live.running import Running, install_crds, replicas
from trimtab.journal import Journal

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1800)]
QUIET, BUSY = 0.04, 4.6  # cores of all pods: below the smallest pod, above ten of the largest
RAMP_S = 360.0
USAGE = ("--usage-every", "2s", "--grow-after", "5s", "--shrink-after", "20s", "--memory-window", "20s")
SPEED = (*USAGE, "--usage-half-life", "15s", "--downscale-window", "10s", "--breaker-window", "0s")
EXAMPLES = {
    "one": ((0, 1, 2), (0.6, 3, 7), (0, 7, 10)),
    "two": ((1, 1, 1), (0.6, 2, 4), (0, 5, 10)),
}


class Corner(NamedTuple):
    at: float
    replicas: int
    cores: float


def hvpa(namespace: str, name: str) -> dict[str, Any]:
    """The target is above what sizes that follow usage show, so that each axis has its turn."""
    cpu = {"type": "Resource", "resource": {"name": "cpu", "targetAverageUtilization": 100}}
    bounds = {"containerName": "*", "minAllowed": {"cpu": "50m"}, "maxAllowed": {"cpu": "400m"}}
    return {
        "apiVersion": "autoscaling.k8s.io/v1alpha1",
        "kind": "Hvpa",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "scaleUpStabilizationWindow": "1s",
            "scaleDownStabilizationWindow": "1s",
            "minCpuChange": {"value": "10m", "percentage": 5},
            "minMemChange": {"value": "10M", "percentage": 5},
            "hpaTemplate": {"minReplicas": 1, "maxReplicas": 10, "metrics": [cpu]},
            "vpaTemplate": {"resourcePolicy": {"containerPolicies": [bounds]}},
            "weightBasedScalingIntervals": [
                {"vpaWeight": weight, "startReplicaCount": first, "lastReplicaCount": last}
                for weight, first, last in EXAMPLES[name]
            ],
        },
    }


def ramp(first: float, last: float) -> list[list[float]]:
    """The same growth in every second."""
    parts = 24
    return [[RAMP_S * part / parts, first * (last / first) ** (part / parts)] for part in range(parts + 1)]


def corners(journal: Path, namespace: str, name: str) -> list[Corner]:
    if not journal.exists():
        return []
    acts = Journal.read(journal).acts(namespace, name, last=100_000)
    return [
        Corner(act.seen.at, act.decision.plan.replicas, size.requests.cpu_cores or 0.0)
        for act in acts
        for size in act.decision.plan.sizes.values()
    ]


def cores(walk: list[Corner], first: int, last: int) -> list[float]:
    return [corner.cores for corner in walk if first <= corner.replicas <= last]


def flat(sizes: list[float]) -> bool:
    return max(sizes) <= 1.05 * min(sizes)


def reaches(bed: Bed, namespace: str, name: str, count: int) -> None:
    eventually(lambda: replicas(bed, namespace, name) == count, RAMP_S + 300, f"{name} with {count} replicas", 1.0)


def test_both_figures_upwards_and_downwards(bed: Bed, namespace: str, tmp_path: Path) -> None:
    install_crds(bed)
    for name in EXAMPLES:
        bed.load(namespace, name, cores=QUIET)
        bed.apply(deployment(namespace, name, replicas=1, cpu="60m"), hvpa(namespace, name))
    ready_pods(bed, namespace, 2)
    with Running(bed, namespace, tmp_path, *SPEED) as running:
        eventually(lambda: all(corners(running.journal, namespace, name) for name in EXAMPLES), 120, "first acts")
        for name in EXAMPLES:
            bed.load(namespace, name, cores=ramp(QUIET, BUSY))
        for name in EXAMPLES:
            reaches(bed, namespace, name, 10)
        top = time.time()
        for name in EXAMPLES:
            bed.load(namespace, name, cores=ramp(BUSY, QUIET))
        for name in EXAMPLES:
            reaches(bed, namespace, name, 1)
        eventually(lambda: corners(running.journal, namespace, "two")[-1].cores <= 0.08, 240, "small again")
    walks = {name: corners(running.journal, namespace, name) for name in EXAMPLES}
    for name, walk in walks.items():
        print(name, [(round(corner.at - top), corner.replicas, round(corner.cores, 3)) for corner in walk])
    up = {name: [corner for corner in walk if corner.at < top] for name, walk in walks.items()}
    down = {name: [corner for corner in walk if corner.at >= top] for name, walk in walks.items()}

    leaves = next(place for place, corner in enumerate(up["two"]) if corner.replicas > 1)
    line = [corner.cores for corner in up["two"][:leaves]]
    assert max(line) >= 4 * min(line), "example 2: first a vertical line at one replica"
    assert cores(up["two"], 2, 4), "on diagonally"
    assert flat(cores(up["two"], 5, 10)), "from 5 on only replicas"
    assert flat(cores(down["two"], 5, 10)), "and so on the way down"
    diagonal = cores(down["two"], 1, 4)
    assert max(diagonal) >= 4 * min(diagonal), "sizes fall where they rose"

    bends = next(place for place, corner in enumerate(up["one"]) if corner.replicas > 2)
    assert flat([corner.cores for corner in up["one"][:bends]]), "example 1: first horizontally"
    slope = cores(up["one"], 3, 7)
    assert max(slope) >= 3 * min(slope), "then both, up to 7"
    assert flat(cores(up["one"], 8, 10)), "then horizontally again"
    assert flat(cores(down["one"], 8, 10)), "and so on the way down"
