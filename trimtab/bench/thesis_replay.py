"""Predictive HPA's evaluation replayed: its traffic, pods, windows and statistics; and the test that was missing.

A request costs 0.083 core-seconds, a pod has 0.1 core and is ready after 135 s; HPA at 60 % of CPU every 30 s, from 1
to 30 pods, rests after each scaling. Idle = 100 (1 - used / 4 cores); response = 5.5 ms x max(1, load / capacity).
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from trimtab.bench.thesis import PROFILES, Comparison, compare, duration_s, rate_at, scores, upper_tail
from trimtab.kinds.horizontal import LINE
from trimtab.policy import SLO, Bounds, Cooldown, ForecastChoice, Metric, MetricKind, PodRules, Policy, Utilization
from trimtab.series import Floats
from trimtab.sim.cluster import Run, run
from trimtab.sim.cluster_spec import ClusterSpec
from trimtab.sim.score import serve

SYNC_S, MINUTE = 30.0, 2  # steps of a minute
CORE_S_PER_REQUEST, NODE_CORES, UNLOADED_S = 0.083, 4.0, 0.0055
CLUSTER = ClusterSpec(startup_s=135.0, pod_capacity=0.1, pod_cores=0.1)
FIRST_PODS = 5
OF_ITS_TIME = PodRules(cpu_init_s=0.0, readiness_delay_s=0.0)  # Kubernetes 1.2: a pod counts from its start on


class Windows(NamedTuple):
    """How long nothing happens after a scaling: the first version had Kubernetes' own, the second 30 s."""

    up_s: float
    down_s: float


VERSIONS = {"v1": Windows(180.0, 300.0), "v2": Windows(30.0, 30.0)}


class Published(NamedTuple):
    mean: float
    std: float
    z: float
    p: float


PUBLISHED: dict[tuple[str, str], Published | None] = {
    ("step-ladder", "v2"): Published(0.522, 1.084, 0.482, 0.315),
    ("jagged-edge", "v2"): Published(0.340, 1.062, 0.320, 0.374),
    ("increase-decrease", "v2"): Published(-0.239, 0.680, -0.352, 0.638),
    ("flash-crowd-short", "v2"): Published(-0.591, 0.695, -0.850, 0.802),
    ("increase-decrease", "v1"): Published(-0.185, 0.803, -0.230, 0.591),
    ("flash-crowd", "v1"): Published(-0.130, 1.056, -0.123, 0.549),
    ("load-tester", "v2"): None,  # only used to calibrate
}


# What is drawn through the past: the thesis' own line in the place of the present, with no rest but the windows above,
# or the line that an annotated HPA gets by default, which only adds.
LINES = {"document": ForecastChoice(model="linear", exact=True, options={"rest_s": 0.0}), "default": LINE}


class Replayed(NamedTuple):
    """One pattern: means over seeds of the published statistics, and the paired test over seeds."""

    pattern: str
    version: str
    line: str
    published: Published | None
    mean: float
    std: float
    z: float
    p: float
    seeds: int
    paired_t: float
    paired_p: float

    @property
    def same_sign(self) -> bool | None:
        """Whether it goes the way that was published, for or against the prediction; None: nothing was."""
        return None if self.published is None else (self.mean > 0) == (self.published.mean > 0)


def replay_pattern(pattern: str, version: str, seeds: int, line: str = "document") -> Replayed:
    """Both policies under the same requests, once for each seed."""
    trials = [_trial(pattern, version, line, seed) for seed in range(seeds)]
    means = np.array([trial.mean for trial in trials])
    spread = float(means.std(ddof=1)) if seeds > 1 else 0.0
    t = float(means.mean()) / (spread / sqrt(seeds)) if spread else 0.0
    z = float(np.mean([trial.z for trial in trials]))
    return Replayed(
        pattern=pattern,
        version=version,
        line=line,
        published=PUBLISHED[pattern, version],
        mean=float(means.mean()),
        std=float(np.mean([trial.std for trial in trials])),
        z=z,
        p=upper_tail(z),
        seeds=seeds,
        paired_t=t,
        paired_p=upper_tail(t),
    )


def _trial(pattern: str, version: str, line: str, seed: int) -> Comparison:
    load = _load(pattern, seed)
    predictive, reactive = (
        _minutes(run(policy, load, CLUSTER, first_pods=FIRST_PODS, step_s=SYNC_S)) for policy in _pair(version, line)
    )
    return compare(*scores(predictive, reactive))


def _pair(version: str, line: str) -> tuple[Policy, Policy]:
    """The predictive policy and the reactive one."""
    up_s, down_s = VERSIONS[version]
    reactive = Policy(
        signals=(Utilization(metric=Metric(kind=MetricKind.RESOURCE, name="cpu"), percent=60),),
        settle=(Cooldown(up_s=up_s, down_s=down_s, any_direction=True),),
        bounds=Bounds(min_replicas=1, max_replicas=30),
        pods=OF_ITS_TIME,
    )
    return replace(reactive, forecast=LINES[line]), reactive


def _load(pattern: str, seed: int) -> Floats:
    """Cores needed in each step: requests arrive by chance around the planned rate."""
    profile = PROFILES[pattern]
    seconds = np.arange(0.0, duration_s(profile), SYNC_S) + SYNC_S / 2
    rates = np.array([rate_at(profile, second) for second in seconds.tolist()])
    requests = np.random.default_rng(seed).poisson(rates * SYNC_S)
    return requests / SYNC_S * CORE_S_PER_REQUEST


def _minutes(found: Run) -> Floats:
    """(idle percent, response seconds) of each whole minute."""
    backlog, rows = 0.0, []
    for arriving, ready in zip(found.load.tolist(), found.ready.tolist(), strict=True):
        work = arriving + backlog
        used = min(work, float(ready)) * CLUSTER.pod_cores
        busy = work / ready if ready else 2.0
        backlog, _ = serve(arriving, backlog, SLO * ready, float(ready))
        rows.append((100.0 * (1.0 - used / NODE_CORES), UNLOADED_S * max(1.0, busy)))
    whole = len(rows) // MINUTE * MINUTE
    minutes: Floats = np.array(rows[:whole]).reshape(-1, MINUTE, 2).mean(axis=1)
    return minutes
