"""A queue in the simulator: work arrives, waits in the order of its arrival, and is served at the pods' rate.

Work is a fluid, counted in what one pod serves in one step. A ready pod serves 1 in each step, and what it cannot serve
waits: nothing is lost. Work that waits longer than `WorkQueue.wait_s` counts as violated. Items that arrive in a burst
within a step are not simulated; the reserve that `targetUtilization` leaves is for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np

from trimtab.series import Floats
from trimtab.sim.grid import DAY_STEPS, STEP_S
from trimtab.sim.sliding_windows import forward_max

FINE = 5  # moments of each step at which waits are measured
_LEAST_LATE = 1e-6


@dataclass(frozen=True)
class WorkQueue:
    """Work waits here until a pod takes it up. A pod works on `pod_capacity` x `service_time_s` items at once."""

    service_time_s: float
    wait_s: float  # no item shall wait longer


def late_load(load: Floats, pods: Floats, wait_s: float) -> Floats:
    """Return the load of each step that waits longer than `wait_s`.

    With A(t) the work that has arrived and C(t) what the pods could have served, S(t) = C(t) + min over s <= t of
    (A(s) - C(s)) is what they did serve (Reich's formula). What arrives at t is late if S(t + wait) < A(t).
    """
    more = ceil(wait_s / STEP_S) + 1  # after the end the pods stay as they are
    arrived = _cumulated(np.concatenate((load, np.zeros(more))))
    capacity = _cumulated(np.concatenate((pods, np.full(more, pods[-1]))))
    served = capacity + np.minimum.accumulate(arrived - capacity)
    points = np.arange(len(load) * FINE) + 0.5  # the middle of each part of a step
    at = np.arange(len(arrived))
    due = np.interp(points, at, arrived)
    late = due - np.interp(points + FINE * wait_s / STEP_S, at, served) > _LEAST_LATE * np.maximum(1.0, due)
    shares: Floats = late.reshape(-1, FINE).mean(axis=1)
    return load * shares


def _cumulated(values: Floats) -> Floats:
    """The integral at FINE points in each step, 0 at the beginning."""
    return np.concatenate(([0.0], np.cumsum(np.repeat(values / FINE, FINE))))


def fewest_pods(load: Floats, wait_s: float, delay_steps: int, least: int = 1) -> Floats:
    """Return a lower bound of the billed pods of each step under any schedule that keeps the promise.

    What arrives in n steps has to be served in these and `wait_s`, so some step in between has at least the work
    divided by that time, rounded up, of ready pods; and a ready pod has been billed for `delay_steps` before. Beside
    that no day is billed less than its work, without what may be served after midnight.
    """
    wait = wait_s / STEP_S
    edge, total = ceil(wait - 1e-9), np.concatenate(([0.0], np.cumsum(load)))
    best = np.full(len(load), float(least))
    for steps in range(1, delay_steps - edge + 2):
        work = np.zeros(len(load))
        work[: max(0, len(load) - steps + 1)] = total[steps:] - total[:-steps]
        needed = np.ceil(work / (steps + wait) - 1e-6)
        np.maximum(best, forward_max(needed, delay_steps - edge + 1 - steps), out=best)
    for first in range(0, len(load), DAY_STEPS):
        day = slice(first, first + DAY_STEPS)
        mean = load[day][: max(0, len(load[day]) - edge)].sum() / len(load[day])
        if mean > best[day].mean():
            best[day] = mean
    return best
