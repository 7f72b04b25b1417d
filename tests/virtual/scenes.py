"""Policies, loads and pods drawn from a seed: what the operator and the simulator are both given."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import numpy as np

from tests.virtual.cluster import START, autoscaler
from trimtab.kinds import Scaler, read
from trimtab.policy import Policy
from trimtab.quantity import GIB
from trimtab.series import Floats

CORES = 1_000_000.0  # Kubernetes counts in thousandths of a core: of such a pod that is nothing
NAME = "shop/web"
DAY_S = 86400.0
TICKS_S = (1, 5, 15, 30, 60)
STARTUPS_S = (5, 15, 40, 60, 185, 600, 1800)
CYCLES = ("seasonal", "holtWinters")  # they speak after two days


class Scene(NamedTuple):
    manifest: dict[str, Any]
    policy: Policy
    load: Floats  # cores of all pods together, by step
    memory: Floats  # bytes that they share
    first_pods: int
    startup_s: float
    step_s: float


def scene(seed: int) -> Scene:
    """Of any kind that acts by itself, on any metric, with a forecast or without."""
    draw = random.Random(seed)
    step_s, model = draw.choice(TICKS_S), draw.choice(("none", "none", "linear", "linear", *CYCLES, "dsp"))
    if model in (*CYCLES, "dsp"):
        step_s = 60
    steps = round(2.6 * DAY_S / step_s) if model in (*CYCLES, "dsp") else draw.choice((240, 480))
    low = draw.randint(1, 3)
    spec: dict[str, Any] = {"minReplicas": low, "maxReplicas": draw.randint(8, 30)}
    spec["metrics"] = metrics(draw, queries=model != "dsp")
    if behavior := _behavior(draw):
        spec["behavior"] = behavior
    manifest = _manifest(draw, model, spec)
    first_pods, startup_s = draw.randint(low, 8), float(draw.choice(STARTUPS_S))
    load, memory = _load(draw, seed, steps, step_s), _memory(draw, steps, step_s)
    return Scene(manifest, policy_of(manifest), load, memory, first_pods, startup_s, float(step_s))


def annotated(seed: int) -> Scene:
    """An annotated HPA, with our line or the predictive HPA's own."""
    draw = random.Random(seed)
    step_s, startup_s = draw.choice(TICKS_S), float(draw.choice(STARTUPS_S))
    manifest = autoscaler(NAME, minReplicas=1, maxReplicas=40)
    notes = {"predictive": "true"} | ({"trimtab.dev/exact": "true"} if seed % 3 == 2 else {})
    manifest |= {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}
    manifest["metadata"]["annotations"] = notes
    steps = round((2 * startup_s + 900) / step_s)
    memory = np.zeros(steps)
    return Scene(manifest, policy_of(manifest), _load(draw, seed, steps, step_s), memory, 12, startup_s, float(step_s))


def policy_of(manifest: dict[str, Any]) -> Policy:
    kind = read(manifest)
    assert isinstance(kind, Scaler)
    return kind.to_policy(START)


def _manifest(draw: random.Random, model: str, spec: dict[str, Any]) -> dict[str, Any]:
    """An Autoscaler, or an EffectiveHPA, whose only forecast is Crane's."""
    if model != "dsp":
        horizon = draw.choice(("startup", "300s", "1h"))
        forecast = {} if model == "none" else {"forecast": {"model": model, "horizon": horizon}}
        return autoscaler(NAME, **(spec | forecast))
    algorithm = {"algorithmType": "dsp", "dsp": {"sampleInterval": "60s", "historyLength": "7d"}}
    made = autoscaler(NAME, **spec)
    made["spec"]["prediction"] = {"predictionWindowSeconds": 3600, "predictionAlgorithm": algorithm}
    return made | {"apiVersion": "autoscaling.crane.io/v1alpha1", "kind": "EffectiveHorizontalPodAutoscaler"}


def metrics(draw: random.Random, queries: bool) -> list[dict[str, Any]]:
    """One or two of everything that the simulated pods can be measured by; an EffectiveHPA has no queries."""
    share = draw.choice((40, 50, 70, 80))
    part = {"type": "AverageValue", "averageValue": f"{share * CORES / 100:.0f}"}
    percent = {"type": "Utilization", "averageUtilization": share}
    known: list[dict[str, Any]] = [
        {"type": "Resource", "resource": {"name": "cpu", "target": percent}},
        {"type": "Resource", "resource": {"name": "cpu", "target": part}},
        {"type": "Resource", "resource": {"name": "memory", "target": percent}},
        {"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "main", "target": percent}},
        {"type": "Pods", "pods": {"metric": {"name": "load"}, "target": part}},
        {"type": "External", "external": {"metric": {"name": "web"}, "target": part}},
        {"type": "Prometheus", "prometheus": {"query": NAME, "target": part}},
    ]
    return draw.sample(known if queries else known[:-1], draw.choice((1, 1, 2)))


def _behavior(draw: random.Random) -> dict[str, Any]:
    behavior: dict[str, Any] = {}
    if draw.random() < 0.7:
        behavior["scaleDown"] = {"stabilizationWindowSeconds": draw.choice([0, 60, 300, 600])}
    if draw.random() < 0.5:
        kind, value = draw.choice(["Pods", "Percent"]), draw.choice([1, 2, 50, 100])
        policies = [{"type": kind, "value": value, "periodSeconds": 60}]
        behavior["scaleUp"] = {"policies": policies, "stabilizationWindowSeconds": draw.choice([0, 45])}
    return behavior


def _load(draw: random.Random, seed: int, steps: int, step_s: float) -> Floats:
    """Waves and noise, and now and then a crowd; a wave of a day where there are days."""
    seconds, noise = np.arange(steps) * step_s, np.random.default_rng(seed)
    turns = draw.uniform(1, 4) if steps * step_s < DAY_S else 2 * np.pi / 24
    load = 3 + 2.5 * np.sin(seconds / 3600 * turns) + noise.normal(0, draw.uniform(0, 0.6), steps)
    if draw.random() < 0.5:
        load[steps // 2 : steps // 2 + draw.randint(4, steps // 3)] *= draw.uniform(2, 5)
    return np.maximum(load, 0.05) * CORES


def _memory(draw: random.Random, steps: int, step_s: float) -> Floats:
    """Less than the limit of a single pod, beside what each of them uses idle."""
    waves = np.sin(np.arange(steps) * step_s / draw.uniform(600, 3600))
    return np.round((0.403 + 0.3 * waves) * GIB)  # however many share it: no whole percent, which bytes would miss


def blended(seed: int, blend: str) -> Scene:
    """An Autoscaler that writes sizes and replicas; its metric does not depend on the sizes."""
    draw = random.Random(seed)
    every = {"containerName": "*", "minAllowed": {"cpu": _cores(1)}, "maxAllowed": {"cpu": _cores(16)}}
    vertical = {"apply": "InPlace", "resourcePolicy": {"containerPolicies": [every]}}
    target = {"type": "AverageValue", "averageValue": _cores(1)}
    metric = draw.choice(
        [
            {"type": "Pods", "pods": {"metric": {"name": "load"}, "target": target}},
            {"type": "External", "external": {"metric": {"name": "web"}, "target": target}},
        ]
    )
    spec: dict[str, Any] = {
        "minReplicas": 1,
        "maxReplicas": 12,
        "metrics": [metric],
        "vertical": vertical,
        "blend": BLENDS[blend],
    }
    manifest, steps, step_s = autoscaler(NAME, **spec), 240, 15.0
    load, memory = _load(draw, seed, steps, step_s), _memory(draw, steps, step_s)
    return Scene(manifest, policy_of(manifest), load, memory, draw.randint(1, 6), 60.0, step_s)


def _cores(pods: int) -> str:
    return f"{pods * CORES:.0f}"


def _bucket(first: int, last: int, size: int) -> dict[str, Any]:
    ends = {
        "replicas": (first, last),
        "cpu": (_cores(size), _cores(2 * size)),
        "memory": (f"{size}Gi", f"{2 * size}Gi"),
    }
    return {name: dict(zip(("min", "max"), pair, strict=True)) for name, pair in ends.items()}


BLENDS: dict[str, dict[str, Any]] = {
    "capacity": {"capacity": {"preferred": {"cpu": _cores(2), "memory": "2Gi"}}},
    "buckets": {"buckets": {"buckets": [_bucket(1, 3, 1), _bucket(4, 12, 2)]}},
    "weights": {"weights": {"intervals": [{"vpaWeight": 0.5, "startReplicaCount": 1, "lastReplicaCount": 12}]}},
}
