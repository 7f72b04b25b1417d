"""Runs one seed to its end, or to the first thing that must not happen."""

from __future__ import annotations

import logging
from typing import NamedTuple

from tests.virtual.chaos.checks import BYSTANDER, CHECKERS, FIRST_REPLICAS, Checker, news
from tests.virtual.chaos.scenario import FORGED, SETTLED_S, SIZED, Scenario, last_fault_s, scenario
from tests.virtual.cluster import Cluster, autoscaler

STEP_S = 30.0


class Survived(NamedTuple):
    """A seed, which faults it brought, and what went wrong: checker, time, words."""

    seed: int
    faults: tuple[str, ...]
    hours: float
    wrong: tuple[str, ...]


def run(seed: int) -> Survived:
    given = scenario(seed)
    end_s = last_fault_s(given.faults) + SETTLED_S + STEP_S
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)  # there is much of it, and errors are looked at
    try:
        wrong = _wrong(given, end_s)
    finally:
        logging.disable(before)
    return Survived(seed, tuple(type(fault).__name__ for fault in given.faults), end_s / 3600, wrong)


def _wrong(given: Scenario, end_s: float) -> tuple[str, ...]:
    checkers: list[Checker] = [kind(given) for kind in CHECKERS]
    with Cluster(given.seed, operators=given.operators) as cluster:
        _furnish(cluster, given)
        seen = 0
        while cluster.now() - cluster.start < end_s:
            try:
                cluster.run(seconds=STEP_S)
            except Exception as error:
                return (f"Alive: {error!r}",)
            told = news(cluster, seen)
            seen += len(told.calls)
            at = f"{told.now_s:.0f} s"
            wrong = [f"{type(each).__name__} at {at}: {text}" for each in checkers for text in each.look(cluster, told)]
            if wrong:
                return tuple(wrong)
    return ()


def _furnish(cluster: Cluster, given: Scenario) -> None:
    cluster.deploy(BYSTANDER, replicas=FIRST_REPLICAS, load=1.0)
    cluster.deploy("evil/bad", replicas=1, load=0.5)
    for honest in given.honest:
        cluster.deploy(honest.name, replicas=FIRST_REPLICAS, load=honest.load, startup_s=30.0)
        cluster.apply(honest.manifest())
    cluster.deploy(SIZED, replicas=2, load=0.5, memory="256Mi")
    cluster.apply(autoscaler(SIZED, minReplicas=2, maxReplicas=2, vertical={"apply": "InPlace"}))
    for hostile in given.hostile:
        resource = cluster.resource(hostile["apiVersion"], hostile["kind"])
        cluster.server.put(resource.path("evil", hostile["metadata"]["name"]), hostile | {"status": FORGED})
    cluster.faults(*given.faults)
