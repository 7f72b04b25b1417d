"""What another autoscaler did while ours watched, and what ours would have done with the same load, from a journal."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from trimtab.policy import Admit
from trimtab.sim.cluster_spec import ClusterSpec
from trimtab.sim.grid import DAY_STEPS, HOUR_STEPS, delay_steps
from trimtab.sim.score import Counts, Score, measure, score
from trimtab.tune.policy_backtest import backtest
from trimtab.web.journal_history import STEPS, unpack_history
from trimtab.web.packing import Column, unpacked


class JudgedSide(NamedTuple):
    """One of the two, on the same load, start-up and price; cost and J are ratios to the optimum of that load."""

    pod_hours: float
    score: Score


class BesideEachOther(NamedTuple):
    did: JudgedSide
    would: JudgedSide
    days: float
    notes: tuple[str, ...]


def beside(known: bytes, minutes: bytes, lam: float) -> BesideEachOther:
    """From a journal's answers to the questions `known` and `workload`."""
    history = unpack_history(known)
    demand, cluster = (
        history.demand,
        ClusterSpec(startup_s=history.startup_s, pod_capacity=history.capacity, pod_cores=history.capacity),
    )
    policy = replace(history.policy, admit=Admit())  # it only watches; asked is what it would do
    ours = backtest(str(history.name), policy, demand, cluster, lam)
    _, columns = unpacked(minutes)
    replicas = _by_step(columns["at"], columns["replicas"], demand.start, len(demand.values))
    days = measure(demand.values / history.capacity, replicas, delay_steps(history.startup_s), DAY_STEPS)
    theirs = score(days, ours.score.j_oracle, lam, demand.days)
    return BesideEachOther(
        JudgedSide(float(days.pods.sum()) / HOUR_STEPS, theirs),
        JudgedSide(ours.pod_hours, ours.score),
        demand.days,
        demand.notes,
    )


def _by_step(times: Column, replicas: Column, start: float, steps: int) -> Counts:
    """Minutes as steps of the simulation; where nobody looked, as before."""
    part = replicas[np.searchsorted(times, start) :]
    known = np.maximum.accumulate(np.where(np.isfinite(part), np.arange(len(part)), 0))
    return np.repeat(part[known], STEPS)[:steps].astype(np.int32)
