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


class DemandFeatures:
    """What is seen of one load at the ends of its steps; what changes by the minute or half-hour is found once."""

    def __init__(self, load: Floats, startup_s: float) -> None:
        self.startup_s, lead = startup_s, seen.lead_minutes(startup_s)
        minutes = seen.logs(load[: len(load) // MINUTE * MINUTE].reshape(-1, MINUTE).mean(axis=1))
        halves = np.arange(len(minutes) // seen.BLOCK + 1)
        self._season = seen.Seasonal(*(part[0] for part in seen.seasonal_throughout(minutes[None], lead)))
        self._habit = seen.Habits(*(part[0] for part in seen.habits(minutes[None], halves, lead)))
        self._hour = seen.summary_of(_windows(minutes, seen.HOUR, seen.HOUR))
        self._newest = _windows(seen.logs(load), seen.SAMPLES, seen.SAMPLES - 1)

    def at(self, rows: Ints) -> tuple[Floats, Floats]:
        """The features of these steps, and the level that growth counts from."""
        ends, newest = (rows + 1) // MINUTE, self._newest[rows]
        season = seen.Seasonal(*(part[ends] for part in self._season))
        habit = seen.Habits(*(part[ends // seen.BLOCK] for part in self._habit))
        base = seen.base_of(newest)
        now = seen.present(newest, self._hour[ends], base)
        return seen.features(now, base, season, habit, self.startup_s), base.level


def _windows(values: Floats, width: int, before: int) -> Floats:
    """The last ones up to each moment; the first is repeated where there are fewer."""
    return sliding_window_view(np.pad(values, (before, 0), mode="edge"), width)


def outcomes(load: Floats, startup: int) -> Floats:
    """(steps, 2): the highest demand of the minute after a pod serves, and of all until one could be back, as logs."""
    samples = seen.logs(load)
    start = np.roll(forward_max(samples, MINUTE - 1), -(1 + startup))
    keep = np.roll(forward_max(samples, startup + KEEP_STEPS), -1)
    return np.stack([start, keep], axis=1)
