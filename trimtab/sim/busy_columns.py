"""`busy_pods` without a compiler: how busy the pods of many programs are, as columns of numpy arrays.

The same arithmetic, column by column; a test holds every column equal to it. There is no bridge here.
"""

from __future__ import annotations

import numpy as np

from trimtab.core.replica_calculator import GRAIN, MAX_REPLICAS
from trimtab.series import Floats
from trimtab.sim.busy_pods import PodsAtWork
from trimtab.sim.grid import MEAN_STEPS


class BusyColumns:
    """What is left of the last steps: pods, busy shares, work that was not done."""

    def __init__(self, pods: PodsAtWork, percents: Floats) -> None:
        limits = pods.limits
        assert limits.levels == 0 and limits.counts_after >= limits.delay_steps
        self._load, self._first_counts_after, self._percents = pods.load, limits.first_counts_after, percents
        self._past = np.full((limits.counts_after + 1, len(percents)), np.inf)
        self._serving = np.arange(limits.delay_steps + 1)
        self._shares = np.zeros((MEAN_STEPS, len(percents)))
        self._backlog = np.zeros(len(percents))

    def wish(self, step: int, current: Floats, low: Floats, high: Floats) -> Floats:
        """The replicas that every program asks for after one more step of work; NaN where no sample counts."""
        self._past[step % len(self._past)] = current
        self._serve(step)
        if step < self._first_counts_after:
            return np.full_like(current, np.nan)
        counted: Floats = self._past.min(axis=0)
        usage = counted * self._share(step)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.trunc(100.0 * usage / counted + GRAIN) / self._percents
            again = np.trunc(100.0 * usage / current + GRAIN) / self._percents
        plain = _unless_within(ratio, ratio * counted, low, high, current)
        damped = _unless_within(again, again * current, low, high, current)
        kept = (again < 1.0) | (damped < current)
        found = np.where((counted == current) | (ratio <= 1.0), plain, np.where(kept, current, damped))
        return np.where(counted > 0, found, np.nan)

    def _serve(self, step: int) -> None:
        ready: Floats = self._past[(step - self._serving) % len(self._past)].min(axis=0)
        work = self._load[step] + self._backlog
        served = np.minimum(work, ready)
        self._backlog = np.minimum(work - served, ready)
        self._shares[step % MEAN_STEPS] = np.divide(served, ready, out=np.zeros_like(served), where=ready > 0)

    def _share(self, step: int) -> Floats:
        """The mean of the last minute, added up from the newest on."""
        count, total = min(step + 1, MEAN_STEPS), np.zeros_like(self._backlog)
        for age in range(count):
            total = total + self._shares[(step - age) % MEAN_STEPS]
        return total / count


def _unless_within(ratio: Floats, replicas: Floats, low: Floats, high: Floats, current: Floats) -> Floats:
    wanted = np.minimum(np.ceil(replicas), MAX_REPLICAS)
    return np.where((ratio >= low) & (ratio <= high), current, wanted)
