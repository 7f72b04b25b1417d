"""How busy pods are shown to be, step by step beside the decisions that depend on it: the virtual cluster's own rules.

Ready pods share the load up to their limit; metrics are means of a minute and as old as the cluster says. A pod's
sample counts when its minute began after the pod was ready, or from `cpuInitializationPeriod` after its start on,
whichever comes first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trimtab.core.bridge import level_needed
from trimtab.core.replica_calculator import keeps, utilization_percent, whole, within
from trimtab.series import Floats
from trimtab.sim.compiled import compiled, shared
from trimtab.sim.resize_in_place import empty_levels, hold, numbers_of
from trimtab.sim.rings import ENDS, Ints, front, push, ring
from trimtab.sim.score import Actuator, serve

shared(within, whole, utilization_percent, keeps)


class WorkLimits(NamedTuple):
    """Steps until a pod serves and until its sample counts, and how far a bridge lets it grow meanwhile."""

    delay_steps: int
    counts_after: int
    first_counts_after: int  # of the pods that were there before
    ceiling: float
    max_factor: float
    levels: int
    refused: float
    most: float  # that a ready pod serves, as a share of its request
    mean_steps: int  # that a metric is the mean of
    metric_delay_steps: int


class PodsAtWork(NamedTuple):
    """What the shown usage depends on besides the replicas; loads in units of one pod's capacity."""

    load: Floats
    shown: Floats  # of the load, at the end of each step: what a bridge looks at
    limits: WorkLimits


def at_work(load: Floats, shown: Floats, old_after: int, actuator: Actuator) -> PodsAtWork:
    """`old_after`: steps after which every ready pod's sample counts."""
    delay, sampled_after = actuator.delay_steps, actuator.mean_steps - 1 + actuator.metric_delay_steps
    counts_after, first = min(delay + sampled_after, max(delay, old_after)), min(sampled_after, old_after)
    bridge, view = numbers_of(actuator.bridge), (actuator.mean_steps, actuator.metric_delay_steps)
    return PodsAtWork(
        load, shown, WorkLimits(delay, counts_after, first, *bridge, actuator.refused, actuator.ceiling, *view)
    )


NOBODY = PodsAtWork(np.empty(0), np.empty(0), WorkLimits(0, 0, 0, 0.0, 1.0, 0, 0.0, 1.0, 1, 0))
BACKLOG, FACTOR, SHARES = 0, 1, 2  # places of what is left of a step


@compiled
def empty_work(limits: WorkLimits) -> tuple[Ints, Ints, Ints, Floats]:
    """Who serves, who counts, when each level of the bridge was needed; the backlog, the next factor and the busy
    shares of the last minute."""
    serving, counting = ring(limits.delay_steps + 3), ring(limits.counts_after + 3)
    serving[ENDS, 2], counting[ENDS, 2] = limits.delay_steps, limits.counts_after
    left = np.zeros(SHARES + limits.mean_steps + limits.metric_delay_steps)
    left[FACTOR] = 1.0
    return serving, counting, empty_levels(limits.levels), left


@compiled
def work(
    load: float,
    shown: float,
    limits: WorkLimits,
    t: int,
    current: int,
    serving: Ints,
    counting: Ints,
    levels: Ints,
    left: Floats,
) -> tuple[float, int]:
    """One step of serving: the busy share of a pod that is shown at its end, and how many pods count for it.

    `shown` is what the step before showed of the load.
    """
    push(serving, t, current, False)
    push(counting, t, current, False)
    ready, factor = int(front(serving, t, float(current), False)), left[FACTOR]
    if limits.levels > 0 and t > 0:
        level = level_needed(shown, float(ready), limits.ceiling, limits.max_factor)
        left[FACTOR] = hold(levels, t, level, limits.max_factor)
    capacity = limits.most * (ready + ready * (1.0 - limits.refused) * (factor - 1.0))
    served = min(load + left[BACKLOG], capacity)
    left[BACKLOG] = serve(load, left[BACKLOG], 0.0, capacity)[0]
    room, newest = len(left) - SHARES, max(0, t - limits.metric_delay_steps)
    left[SHARES + t % room] = served / ready if ready > 0 else 0.0
    count, total = min(newest + 1, limits.mean_steps), 0.0
    for age in range(count):
        total += left[SHARES + (newest - age) % room]
    counted = int(front(counting, t, float(current), False)) if t >= limits.first_counts_after else 0
    return total / count, counted


@compiled
def wish_of_share(
    share: float, counted: int, percent: float, up: float, down: float, current: int
) -> tuple[float, float]:
    """Kubernetes' `by_utilization` where pods are alike and each has a sample: wanted replicas and their ratio."""
    usage = counted * share
    ratio = utilization_percent(usage, float(counted)) / percent
    if counted == current or ratio <= 1.0:
        if within(ratio, up, down):
            return float(current), 1.0
        return float(whole(ratio * counted)), ratio if counted == current else ratio * counted / current
    again = utilization_percent(usage, float(current)) / percent
    wanted = whole(again * current)
    return (float(current), 1.0) if keeps(ratio, again, wanted, up, down, current) else (float(wanted), again)
