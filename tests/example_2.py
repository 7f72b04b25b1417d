"""HVPA's example 2, the loads that walk up and down its figure, and what the figure looks like.

The target is above what sizes that follow usage show, so that each axis has its turn: a vertical line at one replica up
to maxAllowed, on diagonally between 2 and 4, then horizontally; and back.
"""

from __future__ import annotations

from typing import Any, NamedTuple

STAGES = ((1, 1, 1), (0.6, 2, 4), (0, 5, 10))
LEAST, MOST = 0.05, 0.4  # cores of one replica
QUIET = 0.05
UP = (0.1, 0.17, 0.29, 0.5, 0.85, 1.35, 2.4, 3.7)  # cores of all: first along the line, where each is a rise of 60 %
DOWN = (2.2, 1.3, 0.6, 0.3, 0.1, 0.045)  # so far that it does not matter which axis answers first


class Point(NamedTuple):
    """Of the figure: what was written."""

    replicas: int
    cores: float  # of one of them


def hvpa(namespace: str, name: str, up_rest: str, down_rest: str) -> dict[str, Any]:
    """After a scaling it rests until its metrics show what came of it, as the document's first example does."""
    cpu = {"type": "Resource", "resource": {"name": "cpu", "targetAverageUtilization": 100}}
    bounds = {"minAllowed": {"cpu": f"{LEAST}"}, "maxAllowed": {"cpu": f"{MOST}"}}
    policy = {"containerName": "*", "controlledResources": ["cpu"]} | bounds
    return {
        "apiVersion": "autoscaling.k8s.io/v1alpha1",
        "kind": "Hvpa",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "scaleUpStabilizationWindow": up_rest,
            "scaleDownStabilizationWindow": down_rest,
            "minCpuChange": {"value": "10m", "percentage": 5},
            "hpaTemplate": {"minReplicas": 1, "maxReplicas": 10, "metrics": [cpu]},
            "vpaTemplate": {"resourcePolicy": {"containerPolicies": [policy]}},
            "weightBasedScalingIntervals": [
                {"vpaWeight": weight, "startReplicaCount": first, "lastReplicaCount": last}
                for weight, first, last in STAGES
            ],
        },
    }


def check_figure(written: tuple[list[Point], list[Point]], settled: tuple[list[Point], list[Point]]) -> None:
    """Every point that was written, up and down, and those at which it stood under each load, the start the first."""
    up, down = settled
    line = [point.cores for point in up if point.replicas == 1]
    assert line == sorted(line) and line[-1] >= 4 * line[0], f"up a vertical line at one replica: {up}"
    left = next(number for number, point in enumerate(written[0]) if point.replicas > 1)
    assert written[0][left - 1] == (1, MOST), f"to maxAllowed, and not away from it before: {written[0]}"
    assert up[-1].replicas == 10 and down[-1].replicas == 1, f"to the end: {settled}"
    assert down[-1].cores <= next(point.cores for point in down if point.replicas == 1) / 1.4, f"and back: {down}"
    for way, points, falls in zip(settled, written, (False, True), strict=True):
        _check_stages(points[::-1] if falls else points)
        _check_beyond_the_line(way[::-1] if falls else way, points)


def _check_stages(points: list[Point]) -> None:
    stages = [_stage(point) for point in points]
    assert stages == sorted(stages), f"from stage to stage, and never back: {points}"


def _check_beyond_the_line(way: list[Point], points: list[Point]) -> None:
    """`way` from the left of the figure to the right."""
    diagonal = [point for point in way if _stage(point) == 1]
    sizes = [point.cores for point in diagonal]
    assert diagonal == sorted(diagonal) and sizes == sorted(sizes), f"both grow between 2 and 4: {way}"
    assert sizes[-1] > 1.05 * sizes[0] and diagonal[-1].replicas > diagonal[0].replicas, f"and not by chance: {way}"
    assert len({point.cores for point in points if 5 <= point.replicas < 10}) == 1, f"only replicas from 5 on: {points}"


def _stage(point: Point) -> int:
    return next(number for number, (_, first, last) in enumerate(STAGES) if first <= point.replicas <= last)
