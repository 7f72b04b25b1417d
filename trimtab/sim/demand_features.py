"""What the learned forecast sees of a simulated load, step by step, and what came of it."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from trimtab.core.forecast.learned import features as seen
from trimtab.core.forecast.learned.features import Ints
from trimtab.series import Floats
from trimtab.sim.grid import MEAN_STEPS as MINUTE
from trimtab.sim.sliding_windows import forward_max

KEEP_STEPS = seen.KEEP_MINUTES * MINUTE


def features_at(load: Floats, startup_s: float, rows: Ints) -> tuple[Floats, Floats]:
    """What is seen of one load at the ends of these steps (ascending), and the level that growth counts from."""
    samples, lead = seen.logs(load), seen.lead_minutes(startup_s)
    minutes = seen.logs(load[: len(load) // MINUTE * MINUTE].reshape(-1, MINUTE).mean(axis=1))
    ends = (rows + 1) // MINUTE
    known, place = np.unique(ends, return_inverse=True)
    halves, half = np.unique(known // seen.BLOCK, return_inverse=True)
    season = seen.Seasonal(*(part[0][place] for part in seen.seasonal(minutes[None], known, lead)))
    habit = seen.Habits(*(part[0][half[place]] for part in seen.habits(minutes[None], halves, lead)))
    newest = sliding_window_view(np.pad(samples, (seen.SAMPLES - 1, 0), mode="edge"), seen.SAMPLES)[rows]
    hour = sliding_window_view(np.pad(minutes, (seen.HOUR, 0), mode="edge"), seen.HOUR)[ends]
    base = seen.base_of(newest)
    return seen.features(seen.present(newest, hour, base), base, season, habit, startup_s), base.level


def outcomes(load: Floats, startup: int) -> Floats:
    """(steps, 2): the highest demand of the minute after a pod serves, and of all until one could be back, as logs."""
    samples = seen.logs(load)
    start = np.roll(forward_max(samples, MINUTE - 1), -(1 + startup))
    keep = np.roll(forward_max(samples, startup + KEEP_STEPS), -1)
    return np.stack([start, keep], axis=1)
