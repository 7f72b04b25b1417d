"""How good a run was: cost, violating load and churn, priced into J and set against the clairvoyant optimum.

J = billed pod-steps + lambda x violating load + 8 x pods started + 0.25 x pods resized; regret = J / optimum - 1.
A step violates when level x ready < load, or when a backlog is left: work = load + backlog, served = min(work,
capacity), backlog = min(work - served, capacity), capacity = limit x ready. All of the step's load counts. With a
bridge, ready pods count by their size.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trimtab.core.bridge import level_needed
from trimtab.core.figures import Figures
from trimtab.policy import SLO, Bridge
from trimtab.series import Floats
from trimtab.sim.compiled import compiled, shared
from trimtab.sim.grid import DAY_STEPS, MEAN_STEPS
from trimtab.sim.prices import RESIZE_PRICE, START_PRICE
from trimtab.sim.resize_in_place import empty_levels, hold, numbers_of
from trimtab.sim.sliding_windows import backward_min

Counts = NDArray[np.int32]

SLACK = 1e-6
EVERY_STEP: Floats = np.empty(0)
_LEAST_BACKLOG = 1e-9


class Actuator(NamedTuple):
    """How pods follow a policy: after how many steps a new one serves, and how ready ones may grow meanwhile."""

    delay_steps: int
    bridge: Bridge | None = None
    refused: float = 0.0  # the share of ready pods whose nodes have no room for a larger size
    ceiling: float = 1.0  # the most a ready pod serves, as a share of its request
    mean_steps: int = MEAN_STEPS  # that a metric is the mean of
    metric_delay_steps: int = 0


class Days(NamedTuple):
    """What each day cost, one value per day; sums of any choice of days are scores."""

    pods: Floats  # billed pod-steps
    violating: Floats  # load that met a violated service level
    starts: Floats
    churn: Floats  # pods started and removed
    load: Floats
    resized: Floats  # pods resized in place, each time

    def since(self, day: int) -> Days:
        return Days(*(column[day:] for column in self))

    def j(self, lam: float) -> Floats:
        return self.pods + lam * self.violating + START_PRICE * self.starts + RESIZE_PRICE * self.resized


def score(days: Days, optimum: float, lam: float, length: float) -> Figures:
    """Price a run; `optimum` is the cost of the clairvoyant run over the same days, in pod-steps.

    `length` is how many days it took: the last of `days` may have only begun.
    """
    load = float(days.load.sum())
    return Figures(
        cost=float(days.pods.sum()) / optimum,
        violations=100.0 * float(days.violating.sum()) / load if load > 0 else 0.0,
        churn_per_day=float(days.churn.sum()) / length,
        starts_per_day=float(days.starts.sum()) / length,
        resizes_per_pod_day=DAY_STEPS * float(days.resized.sum()) / max(1.0, float(days.pods.sum())),
        j=float(days.j(lam).sum()) / optimum,
        optimum=optimum,
    )


def serve(arriving: float, backlog: float, level: float, capacity: float) -> tuple[float, bool]:
    """One step of work: the backlog that is left, and whether the pods were overloaded.

    `level` is the load above which all ready pods together are overloaded, `capacity` the most that they serve.
    """
    work = arriving + backlog
    left = min(work - min(work, capacity), capacity)
    return left, level < arriving - SLACK or left > _LEAST_BACKLOG


def scored_steps(known: NDArray[np.bool_], delay_steps: int) -> Floats:
    """1 where a step counts, else 0: steps without a sample, and one start-up after them, are no load."""
    return backward_min(known.astype(np.int8), delay_steps).astype(np.float64)


def violates_without_backlog(load: Floats, ready: Counts, slo: float) -> NDArray[np.bool_]:
    """Steps whose own load is too much for the ready pods, of whole arrays."""
    return slo * ready < load - SLACK


shared(serve)


def measure(
    load: Floats,
    replicas: Counts,
    delay_steps: int,
    day_steps: int,
    slo: float = SLO,
    bridge: Bridge | None = None,
    seen: Floats | None = None,
    refused: float = 0.0,
    ceiling: float = 1.0,
    scored: Floats = EVERY_STEP,
) -> Days:
    """What these replicas, billed step by step, did with this load (in units of one pod's request).

    A bridge looks at `seen`, the load that each step shows at its end; the load itself where nothing else is given.
    A share of the pods may be `refused` every larger size. A pod serves at most `ceiling` of its request. Steps whose
    `scored` is 0 count nothing.
    """
    table = np.zeros((6, -(-len(load) // day_steps)))
    shown = load if seen is None else seen
    weights = scored if len(scored) else np.ones(len(load))
    arrays = load, shown, replicas, weights
    measure_into(*arrays, delay_steps, day_steps, slo, ceiling, *numbers_of(bridge), refused, table)
    return Days(*table)


@compiled
def measure_into(
    load: Floats,
    seen: Floats,
    replicas: Counts,
    scored: Floats,
    delay_steps: int,
    day_steps: int,
    slo: float,
    most: float,
    ceiling: float,
    max_factor: float,
    levels: int,
    refused: float,
    table: Floats,
) -> None:
    """The loop of `measure`: pods serve `delay_steps` after they are billed, the youngest are removed first."""
    mask = 1
    while mask < delay_steps + 1:
        mask *= 2
    arriving = np.zeros(mask, dtype=np.int64)
    mask -= 1
    ready = before = int(replicas[0])
    starting, backlog = 0, 0.0
    last_needed, factor, next_factor = empty_levels(levels), 1.0, 1.0
    for t in range(len(load)):
        now, day = int(replicas[t]), t // day_steps
        counts = scored[t]
        table[2, day] += counts * max(0, now - before)
        table[3, day] += counts * abs(now - before)
        if now > before:
            arriving[(t + delay_steps) & mask] += now - before
            starting += now - before
        elif now < before:
            surplus, slot = before - now, t + delay_steps
            while surplus > 0 and starting > 0:
                gone = min(surplus, arriving[slot & mask])
                arriving[slot & mask] -= gone
                starting, surplus, slot = starting - gone, surplus - gone, slot - 1
            ready -= surplus
        before = now
        if starting > 0:
            ready += arriving[t & mask]
            starting -= arriving[t & mask]
            arriving[t & mask] = 0
        factor = next_factor
        resizable = ready * (1.0 - refused)
        if levels > 0 and t > 0:
            level = level_needed(seen[t - 1], float(ready), ceiling, max_factor)
            next_factor = hold(last_needed, t, level, max_factor)
            if next_factor != factor:
                table[5, (t - 1) // day_steps] += scored[t - 1] * resizable
        pods = ready + resizable * (factor - 1.0)
        backlog, violates = serve(load[t], backlog, slo * pods, most * pods)
        table[0, day] += counts * (now + resizable * (max(factor, next_factor) - 1.0))
        table[4, day] += counts * load[t]
        if violates:
            table[1, day] += counts * load[t]


def violating_load(load: Floats, pods: Floats, slo: float = SLO, ceiling: float = 1.0) -> Floats:
    """The load of each step that met overloaded pods, else zero."""
    violating = np.zeros(len(load))
    violating_into(load, pods, slo, ceiling, violating)
    return violating


@compiled
def violating_into(load: Floats, pods: Floats, slo: float, ceiling: float, violating: Floats) -> None:
    backlog = 0.0
    for t in range(len(load)):
        backlog, violates = serve(load[t], backlog, slo * pods[t], ceiling * pods[t])
        if violates:
            violating[t] = load[t]


def ready_pods(replicas: Counts, delay_steps: int) -> Counts:
    """How many of the billed pods serve: those billed throughout the last `delay_steps`, for the youngest go first."""
    return backward_min(replicas, delay_steps)


class Provisioning(NamedTuple):
    """Diagnostics in percent (science of the SPEC cloud group): how far below and above demand, and how often below."""

    under: float
    over: float
    under_time: float


def provisioning(demand: Counts, ready: Counts) -> Provisioning:
    gap = (ready - demand) / demand
    return Provisioning(
        under=100.0 * float(np.maximum(-gap, 0).mean()),
        over=100.0 * float(np.maximum(gap, 0).mean()),
        under_time=100.0 * float((ready < demand).mean()),
    )


def slack(usage: Floats, request: Floats) -> float:
    """The share of what was requested that nobody used, in percent; use above the request is no negative slack."""
    return 100.0 * float(np.maximum(request - usage, 0).sum() / request.sum())


def oom_share(kills: int, pods: int) -> float:
    """Pods that were killed for memory, in percent of all that ran."""
    return 100.0 * kills / pods if pods else 0.0
