"""The protocol of the benchmark: how a trace becomes a load.

Zero-order hold onto 15 s from the first timestamp to the last plus one step; the 99.5th percentile becomes 32 pods at
100 %; 3 % noise seeded by the trace's name; whole days. The signal is the mean of the last four steps.
"""

from __future__ import annotations

import zlib
from math import ceil
from typing import NamedTuple

import numpy as np

from trimtab.core.requests import USUAL_TARGET
from trimtab.errors import NotEnoughData
from trimtab.series import Floats, Series
from trimtab.sim.grid import DAY_STEPS, MEAN_STEPS, STEP_S
from trimtab.sim.sliding_windows import trailing_mean

PEAK_PODS = 40 * 0.8  # what the 99.5th percentile is scaled to
NOISE = 0.03
MIN_PODS, MAX_PODS = 2, 200
LONG_TRACE_DAYS = 28


class Load(NamedTuple):
    """A demand on the 15 s grid in units of one pod's capacity, with the signal that a policy sees of it."""

    name: str
    values: Floats
    signal: Floats
    start: float = 0.0

    @property
    def days(self) -> int:
        return len(self.values) // DAY_STEPS

    @property
    def warmup_days(self) -> int:
        """Days that are simulated and not scored."""
        return 7 if self.days >= LONG_TRACE_DAYS else 3

    @property
    def first_pods(self) -> int:
        return max(MIN_PODS, ceil(float(self.values[0]) / USUAL_TARGET))


def load_of(name: str, trace: Series) -> Load:
    """The load of the protocol, exactly."""
    values = hold(trace)
    level = float(np.quantile(values, 0.995))
    if level <= 0:
        raise NotEnoughData(f"{name}: 99.5 % of its values are zero, so there is no load to scale for")
    noise = np.random.default_rng(zlib.crc32(name.encode())).standard_normal(len(values))
    values = np.maximum(values * (PEAK_PODS / level) * (1.0 + NOISE * noise), 0.0)
    values = values[: len(values) // DAY_STEPS * DAY_STEPS]
    return Load(name, values, trailing_mean(values, MEAN_STEPS), float(trace.times[0]))


def hold(trace: Series) -> Floats:
    """The last value known at each 15 s; holes repeat it, negative values are zero."""
    step_s = float(np.median(np.diff(trace.times)))
    first, last = float(trace.times[0]), float(trace.times[-1]) + step_s
    grid = first + STEP_S * np.arange(int((last - first) // STEP_S))
    return np.maximum(trace.values[np.searchsorted(trace.times, grid, side="right") - 1], 0.0)
