"""replay(): a run by the fastest way that gives the same answer: the compiled lane, or the virtual cluster."""

from __future__ import annotations

import numpy as np

from trimtab.policy import Policy
from trimtab.series import Floats
from trimtab.sim import fast
from trimtab.sim.foresight import foreseen
from trimtab.sim.program import NOTHING_AHEAD, program, uncovered
from trimtab.sim.protocol import MEAN_STEPS, STEP_S, delay_steps
from trimtab.sim.run import Run, run
from trimtab.sim.score import ready_pods, violating_load
from trimtab.sim.window import trailing_mean
from trimtab.sim.world import World

_PLAIN = World()


def why_slow(policy: Policy, world: World) -> str:
    """Why decide() itself has to be run; empty when the compiled lane gives the same."""
    return uncovered(policy) or ("the simulated cluster has faults or chance in it" if _unusual(world) else "")


def _unusual(world: World) -> bool:
    names = ("startup_jitter", "mean_s", "scrape_delay_s", "retry_share", "faults")
    return world.memory_load is not None or any(getattr(world, name) != getattr(_PLAIN, name) for name in names)


def replay(policy: Policy, load: Floats, world: World, *, first_pods: int, seed: int = 0, start: float = 0.0) -> Run:
    """The run of a load in its own unit; see `run`."""
    if why_slow(policy, world):
        return run(policy, load, world, first_pods=first_pods, seed=seed, start=start)
    signal, ahead = trailing_mean(load, MEAN_STEPS), NOTHING_AHEAD
    if policy.forecast is not None:
        (ahead,) = foreseen(policy.forecast, [policy.forecast.quantile], load, world.startup_s, start, STEP_S)
    replicas = fast.replay(signal, program(policy, STEP_S, ahead), first_pods)
    ready = ready_pods(replicas, delay_steps(world.startup_s))
    pods = load / world.pod_capacity
    return Run(
        load=pods,
        replicas=replicas,
        ready=ready,
        billed=replicas.astype(np.float64),
        requested=replicas.astype(np.float64),
        violating=violating_load(pods, ready, world.slo),
        killed=np.zeros(len(pods), dtype=np.int32),
        starts=int(np.maximum(np.diff(replicas), 0).sum()),
    )
