"""The rolling backtest: every candidate is simulated on every day, and each morning the best of the past may take over.

score = score x 0.5^(1 / 7) + J of the day; the best candidate takes over if its score is below 0.98 of the present
one's. A day is only ever judged by the days before it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from trimtab.series import Floats
from trimtab.sim.score import Days

HALF_LIFE_DAYS = 7.0
SILENT_DAYS = 1  # in which a learned forecast has too little history to say anything: the target decides
GAIN = 0.02  # a smaller gain is not worth a change

Choices = NDArray[np.intp]


def choose(j: Floats, first_day: int, incumbent: int, told: int = 0) -> Choices:
    """Which candidate runs on each day, from j[candidate, day]; before `first_day` it is the incumbent.

    Days before `told` say nothing of one of them and count for none.
    """
    chosen = np.full(j.shape[1], incumbent)
    scores = np.zeros(j.shape[0])
    current = incumbent
    for day in range(j.shape[1]):
        if day >= first_day:
            current = takeover(scores, current)
        chosen[day] = current
        scores = fade(scores, j[:, day]) if day >= told else scores
    return chosen


def fade(scores: Floats, j: Floats) -> Floats:
    """Scores after one more day."""
    after: Floats = scores * 0.5 ** (1.0 / HALF_LIFE_DAYS) + j
    return after


def faded(j: Floats) -> Floats:
    """The scores after all of these days, from j[candidate, day]."""
    scores = np.zeros(j.shape[0])
    for day in range(j.shape[1]):
        scores = fade(scores, j[:, day])
    return scores


def day_weights(days: int, told: int = 0) -> Floats:
    """What each of so many days counts in the scores after them; those before `told` do not."""
    weights: Floats = 0.5 ** (np.arange(days - 1, -1, -1) / HALF_LIFE_DAYS)
    return np.where(np.arange(days) < told, 0.0, weights)


def takeover(scores: Floats, current: int) -> int:
    """The best candidate if it is better by enough, else the present one."""
    best = int(np.argmin(scores))
    return best if scores[best] < (1.0 - GAIN) * scores[current] else current


def picked(family: Sequence[Days], chosen: Choices) -> Days:
    """The days of whoever was chosen for each; nothing else is carried over at a switch."""
    each = np.arange(len(chosen))
    return Days(*(np.array(column)[chosen, each] for column in zip(*family, strict=True)))
