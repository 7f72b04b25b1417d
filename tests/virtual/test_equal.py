"""What was tested is what runs: the operator and the simulator decide the same, tick by tick, on the same load."""

from __future__ import annotations

import random
from contextlib import closing
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.virtual.cluster import START, Cluster, autoscaler
from trimtab.core.model import Decision, Memory, Observation
from trimtab.core.remember import first_sight
from trimtab.kinds import Scaler, read
from trimtab.policy import Policy
from trimtab.sim.cluster import run
from trimtab.sim.cluster_spec import ClusterSpec
from trimtab.sim.grid import STEP_S

HOURS = 2
CORES = 1_000_000.0  # Kubernetes counts in thousandths of a core: of such a pod that is nothing
NAME = "shop/web"


class Row(NamedTuple):
    """One tick as both tell it."""

    at: float
    replicas: int
    planned: int
    ready: int
    value: float | None


class Scene(NamedTuple):
    manifest: dict[str, Any]
    policy: Policy
    load: np.ndarray[Any, np.dtype[np.float64]]
    first_pods: int
    startup_s: float


def scene(seed: int) -> Scene:
    """A policy and a load drawn from a seed; startup times on and off the grid of ticks."""
    draw = random.Random(seed)
    behavior: dict[str, Any] = {}
    if draw.random() < 0.7:
        behavior["scaleDown"] = {"stabilizationWindowSeconds": draw.choice([0, 60, 300, 600])}
    if draw.random() < 0.5:
        policies = [
            {"type": draw.choice(["Pods", "Percent"]), "value": draw.choice([1, 2, 50, 100]), "periodSeconds": 60}
        ]
        behavior["scaleUp"] = {"policies": policies, "stabilizationWindowSeconds": draw.choice([0, 45])}
    low = draw.randint(1, 3)
    spec: dict[str, Any] = {"minReplicas": low, "maxReplicas": draw.randint(8, 30)}
    if behavior:
        spec["behavior"] = behavior
    manifest = autoscaler(NAME, draw.choice([40, 50, 70, 80]), **spec)
    kind = read(manifest)
    assert isinstance(kind, Scaler)
    steps = HOURS * 3600 // STEP_S
    hours = np.arange(steps) * STEP_S / 3600
    noise = np.random.default_rng(seed)
    load = 3 + 2.5 * np.sin(hours * draw.uniform(1, 4)) + noise.normal(0, draw.uniform(0, 0.6), steps)
    if draw.random() < 0.5:
        load[steps // 2 : steps // 2 + draw.randint(4, 200)] *= draw.uniform(2, 5)
    startup_s = float(draw.choice([0, 15, 40, 60, 185, 600]))
    return Scene(manifest, kind.to_policy(START), np.maximum(load, 0.05) * CORES, draw.randint(low, 8), startup_s)


def by_the_operator(given: Scene, seed: int) -> tuple[list[Row], dict[float, tuple[Memory, Decision]]]:
    with Cluster(seed=seed) as cluster:
        values = given.load.tolist()
        cluster.deploy(
            NAME,
            replicas=given.first_pods,
            cpu=f"{CORES:.0f}",
            startup_s=given.startup_s,
            load=lambda seconds: values[min(int(seconds / STEP_S), len(values) - 1)],
        )
        cluster.apply(given.manifest)
        rows: dict[float, Row] = {}
        for _ in range(HOURS * 3600 // STEP_S):  # before the journal folds them into minutes
            cluster.run(seconds=STEP_S)
            with closing(cluster.journal()) as journal:
                rows |= {tick.at: Row(*tick[1:6]) for tick in journal.ticks("shop", "web")}
        with closing(cluster.journal()) as journal:
            acted = [act for act in journal.acts("shop", "web") if act.decision.change]
    return list(rows.values()), {act.seen.at: (act.memory, act.decision) for act in acted}


def by_the_simulator(given: Scene) -> tuple[list[Row], dict[float, tuple[Memory, Decision]]]:
    rows: list[Row] = []
    decisions: dict[float, tuple[Memory, Decision]] = {}

    def watch(seen: Observation, memory: Memory, decision: Decision) -> None:
        ready = sum(1 for pod in seen.pods if pod.ready)
        values = [proposal.value for proposal in decision.proposals if not proposal.forecast]
        rows.append(Row(seen.at, seen.spec_replicas, decision.plan.replicas, ready, values[0]))
        decisions[seen.at] = (memory, decision)

    spec = ClusterSpec(startup_s=given.startup_s, pod_capacity=CORES, pod_cores=CORES, burst=2.0)
    first = first_sight(START + STEP_S, given.first_pods)
    run(given.policy, given.load, spec, first_pods=given.first_pods, start=START, watch=watch, memory=first)
    return rows, decisions


@pytest.mark.parametrize("seed", range(4))
def test_the_journal_equals_the_simulators_decisions(seed: int) -> None:
    given = scene(seed)
    rows, acts = by_the_operator(given, seed)
    expected, decisions = by_the_simulator(given)
    assert len(rows) == len(expected) == HOURS * 3600 // STEP_S
    for row, wanted in zip(rows, expected, strict=True):
        assert row == wanted, f"the first tick that differs: {row.at - START:.0f} s"
    changes = {at: both for at, both in decisions.items() if both[1].change is not None}
    assert acts.keys() == changes.keys() and len(acts) >= 2
    for at, (memory, decision) in acts.items():
        assert memory == changes[at][0]
        assert (decision.change, decision.plan, decision.steps) == (
            changes[at][1].change,
            changes[at][1].plan,
            changes[at][1].steps,
        )
