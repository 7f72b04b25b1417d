"""What another autoscaler did while ours watched, and what ours would have done with the same load, from a journal."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from trimtab.core.figures import Figures
from trimtab.policy import Admit
from trimtab.sim.grid import DAY_STEPS, HOUR_STEPS, delay_steps
from trimtab.sim.score import Counts, measure, score
from trimtab.tune.case import Case
from trimtab.tune.judge import cluster_of
from trimtab.web.packing import Column, PageTable
from trimtab.web.whatif import STEPS, history_of


class JudgedSide(NamedTuple):
    """One of the two, on the same load, start-up and price; cost and J are ratios to the optimum of that load."""

    pod_hours: float
    figures: Figures


class BesideEachOther(NamedTuple):
    did: JudgedSide
    would: JudgedSide
    days: float
    notes: tuple[str, ...]


def beside(known: PageTable, lam: float) -> BesideEachOther:
    """From a journal's answer to the question `workload`."""
    history = history_of(known)
    demand, capacity = history.demand, history.capacity
    cluster = cluster_of(history.pod, startup_s=history.startup_s)
    policy = replace(history.policy, admit=Admit())  # it only watches; asked is what it would do
    case = Case(demand, policy, cluster, lam)
    ours = case.outcome(str(history.name))
    replicas = _by_step(known.columns["at"], known.columns["replicas"], demand.start, len(demand.values))
    level, ceiling = cluster.level_share, cluster.ceiling_share
    delay = delay_steps(history.startup_s)
    days = measure(demand.values / capacity, replicas, delay, DAY_STEPS, level, ceiling=ceiling, scored=case.scored)
    theirs = score(days, ours.figures.optimum, lam, demand.days)
    return BesideEachOther(
        JudgedSide(float(days.pods.sum()) / HOUR_STEPS, theirs),
        JudgedSide(ours.pod_hours, ours.figures),
        demand.days,
        tuple(filter(None, (*demand.notes, case.gap_note))),
    )


def _by_step(times: Column, replicas: Column, start: float, steps: int) -> Counts:
    """Minutes as steps of the simulation; where nobody looked, as before."""
    part = replicas[np.searchsorted(times, start) :]
    known = np.maximum.accumulate(np.where(np.isfinite(part), np.arange(len(part)), 0))
    return np.repeat(part[known], STEPS)[:steps].astype(np.int32)
