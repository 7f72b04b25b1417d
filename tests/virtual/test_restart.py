"""A restart forgets nothing: every kind, killed in the middle of a window and back, decides as the simulator says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.virtual.cluster import autoscaler
from tests.virtual.scenes import CORES, NAME, Scene, policy_of
from tests.virtual.test_equal import Down, Silent, assert_same, by_the_operator, by_the_simulator
from trimtab.policy import Cooldown, Rate, Stabilise

STEP_S = 15.0
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
CPU = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}


def rush(steps: int = 240) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Quiet, half an hour of six pods' work with a dent in it, quiet again."""
    load = np.full(steps, 1.0)
    load[40:160] = 6.0
    load[90:96] = 1.0
    return load * CORES


def of_kind(api_version: str, kind: str, **spec: Any) -> dict[str, Any]:
    bounds = {"minReplicas": 1, "maxReplicas": 20, "scaleTargetRef": TARGET}
    meta = {"name": "web", "namespace": "shop"}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, "spec": bounds | spec}


METRICS = [{"type": "Resource", "resource": CPU}]
MANIFESTS = {
    "stabilisation": autoscaler(NAME, behavior={"scaleDown": {"stabilizationWindowSeconds": 600}}),
    "stabilisation upwards": autoscaler(
        NAME, behavior={"scaleUp": {"stabilizationWindowSeconds": 120}, "scaleDown": {"stabilizationWindowSeconds": 60}}
    ),
    "cooldown": autoscaler(
        NAME,
        behavior={
            "scaleUp": {"cooldownSeconds": 300, "maxFactor": 0.5, "stabilizationWindowSeconds": 0},
            "scaleDown": {"cooldownSeconds": 450, "stabilizationWindowSeconds": 0},
        },
    ),
    "rates": autoscaler(NAME, behavior={"scaleUp": {"policies": [{"type": "Pods", "value": 2, "periodSeconds": 300}]}}),
    "metrics fail": autoscaler(NAME, onMetricFailure={"holdSeconds": 300, "then": {"replicas": 6}}),
    "a line": autoscaler(NAME, forecast={"model": "linear", "horizon": "120s"}),
    "EffectiveHPA": of_kind("autoscaling.crane.io/v1alpha1", "EffectiveHorizontalPodAutoscaler", metrics=METRICS),
    "Hvpa": of_kind("autoscaling.k8s.io/v1alpha1", "Hvpa"),
}
MANIFESTS["Hvpa"]["spec"] = {
    "replicas": 1,
    "targetRef": TARGET,
    "weightBasedScalingIntervals": [{"vpaWeight": 0, "startReplicaCount": 1, "lastReplicaCount": 20}],
    "hpa": {
        "deploy": True,
        "scaleUp": {"updatePolicy": {"updateMode": "Auto"}, "stabilizationDuration": "4m"},
        "scaleDown": {"updatePolicy": {"updateMode": "Auto"}, "stabilizationDuration": "9m"},
        "template": {
            "spec": {
                "minReplicas": 1,
                "maxReplicas": 20,
                "metrics": [{"type": "Resource", "resource": {"name": "cpu", "targetAverageUtilization": 50}}],
            }
        },
    },
}


def scene_of(kind: str) -> Scene:
    return Scene(MANIFESTS[kind], policy_of(MANIFESTS[kind]), rush(), np.zeros(240), 2, 60.0, STEP_S)


@pytest.mark.parametrize(
    "killed_at, steps_down",
    [
        pytest.param(165, 9, id="before it shrinks"),
        pytest.param(165, 1, id="before it shrinks, briefly", marks=pytest.mark.many),
        pytest.param(55, 9, id="after it has grown", marks=pytest.mark.many),
    ],
)
@pytest.mark.parametrize("kind", MANIFESTS)
def test_an_operator_that_comes_back_decides_as_one_that_was_told_all(
    kind: str, killed_at: int, steps_down: int
) -> None:
    given, down = scene_of(kind), Down(killed_at * STEP_S, (killed_at + 1 + steps_down) * STEP_S)
    found, expected = by_the_operator(given, 1, down), by_the_simulator(given, down)
    assert len(expected.ticks) == len(given.load) - steps_down
    assert_same(found, expected)
    assert any(at > down.back_s for at in found.seconds_of_acts()), "it had something left to do"


def test_minutes_without_metrics_are_counted_on() -> None:
    """Two pass before the operator is killed, two without it: after five the replicas for this case are there."""
    given = scene_of("metrics fail")
    silent, down = Silent(100 * STEP_S, 160 * STEP_S), Down(108 * STEP_S, 116 * STEP_S)
    found, expected = by_the_operator(given, 1, down, silent), by_the_simulator(given, down, silent)
    assert_same(found, expected)


def test_these_have_the_rules_that_remember() -> None:
    policies = [policy_of(manifest) for manifest in MANIFESTS.values()]
    rules = {type(rule) for policy in policies for rule in policy.settle}
    assert rules >= {Stabilise, Cooldown, Rate} and any(policy.gates for policy in policies)
