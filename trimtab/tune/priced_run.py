"""The priced policy on a demand, as the operator would run it: what the learned forecast is worth at every step.

Rates and windows that are written beside an objective are not simulated; who does worse for it goes back by itself.
"""

from __future__ import annotations

import numpy as np

from trimtab.core.forecast.learned.weights import shipped_weights
from trimtab.policy import Bridge, Objective
from trimtab.sim.grid import DAY_STEPS, MEAN_STEPS, delay_steps
from trimtab.sim.priced_levels import PricedLevels, band_path, priced_levels
from trimtab.sim.resize_in_place import shown_load
from trimtab.sim.score import Counts, Days, measure
from trimtab.sim.sliding_windows import trailing_mean
from trimtab.tune.candidate_runs import CandidateRuns


def priced_path(runs: CandidateRuns, objective: Objective) -> Counts:
    """The billed pods of every step: never fewer than the load needs now, always within the bounds."""
    prices = objective.price * objective.start_share, objective.price * objective.keep_share
    found = priced_levels(runs.load, runs.cluster.startup_s, shipped_weights(), prices, objective.service_level)
    need = np.ceil(trailing_mean(runs.load, MEAN_STEPS) / objective.service_level - 1e-9).astype(np.int32)
    bounds = runs.policy.bounds
    least, most = bounds.min_replicas, bounds.max_replicas
    if runs.by_step.shape[1]:
        least, most = runs.by_step[0].astype(np.int32), runs.by_step[1].astype(np.int32)
    start = np.clip(np.maximum(found.start, need), least, most).astype(np.int32)
    keep = np.clip(found.keep, least, most).astype(np.int32)
    return band_path(PricedLevels(start, keep), 0, 1, runs.first_pods, 1, bounds.max_replicas)


def priced_days(runs: CandidateRuns, path: Counts, bridge: Bridge | None) -> Days:
    delay, load = delay_steps(runs.cluster.startup_s), runs.load
    return measure(load, path, delay, DAY_STEPS, runs.cluster.slo, bridge, shown_load(load))
