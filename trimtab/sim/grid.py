"""The grid of every simulation: steps of 15 s, metrics that are means of the last minute."""

from __future__ import annotations

from math import ceil

STEP_S = 15
HOUR_STEPS = 3600 // STEP_S
DAY_STEPS = 86400 // STEP_S
MEAN_S = 60
MEAN_STEPS = MEAN_S // STEP_S


def delay_steps(startup_s: float) -> int:
    """How many steps a new pod is billed before it serves."""
    return ceil(startup_s / STEP_S)
