"""simulate(): a run by the fastest way that gives the same answer: the compiled lane, or the virtual cluster."""

from __future__ import annotations

import numpy as np

from trimtab.policy import Policy
from trimtab.series import Floats
from trimtab.sim.cluster import Run, run
from trimtab.sim.cluster_spec import ClusterSpec
from trimtab.sim.demand_forecast import forecast_demand
from trimtab.sim.grid import MEAN_STEPS, STEP_S, delay_steps
from trimtab.sim.numba_engine import run_on
from trimtab.sim.program import NOTHING_AHEAD, bounds_by_step, program, uncovered
from trimtab.sim.resize_in_place import shown_load, size_factors
from trimtab.sim.score import Actuator, ready_pods, violating_load
from trimtab.sim.sliding_windows import trailing_mean

_PLAIN = ClusterSpec()


def why_slow(policy: Policy, cluster: ClusterSpec) -> str:
    """Why decide() itself has to be run; empty when the compiled lane gives the same."""
    return uncovered(policy) or ("the simulated cluster has faults or chance in it" if _unusual(cluster) else "")


def _unusual(cluster: ClusterSpec) -> bool:
    names = ("startup_jitter", "burst", "mean_s", "scrape_delay_s", "retry_share", "faults")
    return cluster.memory_load is not None or any(getattr(cluster, name) != getattr(_PLAIN, name) for name in names)


def simulate(
    policy: Policy, load: Floats, cluster: ClusterSpec, *, first_pods: int, seed: int = 0, start: float = 0.0
) -> Run:
    """The run of a load in its own unit; see `run`."""
    if why_slow(policy, cluster):
        return run(policy, load, cluster, first_pods=first_pods, seed=seed, start=start)
    signal, ahead = trailing_mean(load, MEAN_STEPS), NOTHING_AHEAD
    if policy.forecast is not None:
        (ahead,) = forecast_demand(policy.forecast, [policy.forecast.quantile], load, cluster.startup_s, start)
    by_step = bounds_by_step(policy.bounds, start, len(load), STEP_S)
    pods, actuator = load / cluster.pod_capacity, Actuator(delay_steps(cluster.startup_s), policy.bridge)
    shown = shown_load(pods)
    replicas = run_on(pods, signal, shown, program(policy, STEP_S, ahead, by_step), first_pods, actuator)
    ready = ready_pods(replicas, actuator.delay_steps)
    factors = size_factors(shown, ready, policy.bridge) if policy.bridge else np.ones(len(pods) + 1)
    now, after = factors[:-1], factors[1:]
    requested = replicas + ready * (np.maximum(now, after) - 1.0)
    return Run(
        load=pods,
        replicas=replicas,
        ready=ready,
        billed=requested,
        requested=requested,
        violating=violating_load(pods, ready * now, cluster.slo),
        killed=np.zeros(len(pods), dtype=np.int32),
        resized=np.where(now != after, ready, 0),
        starts=int(np.maximum(np.diff(replicas), 0).sum()),
    )
