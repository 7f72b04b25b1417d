"""What a workload's own past teaches: its last layer, its habits, and whether the forecast beats "the same as now".

Every seventh remembered minute is a lesson: forecast first, then learn from what came. Seven, so that lessons do not
always meet the same place within a source's interval. Each forecast is scored before it is learned from, beside a rival
that expects the present level with the spread that this workload usually has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from trimtab.core.forecast.batches import Flags
from trimtab.core.forecast.learned import features as seen
from trimtab.core.forecast.learned.features import BLOCK, DAY, HOUR, KEEP_MINUTES, SAMPLES, Habits, Ints
from trimtab.core.forecast.learned.net import BINS, NetWeights, Singles, bins_of, hidden_of, lesson, probabilities_of
from trimtab.series import Floats

SPACING = 7  # minutes between two lessons
BASE_MINUTES = 2  # that the present level is a mean of, at most
AGAIN = 120  # minutes between two studies
LEAST_LESSONS = 60  # before they say anything: seven hours
RATE, FADING = 0.25, 2e-4  # of a lesson
_SCORE_FADING = 0.5 ** (1.0 / 200.0)  # a day
_PRIOR = 0.2  # of each bin, for the rival
_CHUNK = 300  # lessons that are prepared together


class Study(NamedTuple):
    """One workload; `until` is the first minute (unix seconds // 60) that has been no lesson yet."""

    until: int
    last: Singles
    moves: Floats
    levels: Floats
    usual: Floats  # (2, bins): how often growth fell where, faded
    surprise: Floats  # (2,): of the forecast and of its rival, in nats, faded
    lessons: float  # faded too

    @property
    def loses_by(self) -> float:
        """By how many nats per lesson the rival is better."""
        return float(self.surprise[0] - self.surprise[1]) / max(self.lessons, 1.0)


class Past(NamedTuple):
    """Rows of minutes from minute `first` on, as logarithms; `measured` says which of them are no guesses."""

    minutes: Floats
    measured: Flags
    first: int

    def of(self, rows: NDArray[np.intp]) -> Past:
        return Past(self.minutes[rows], self.measured[rows], self.first)


def due(known: Study | None, end: int, lead: int) -> bool:
    """Whether there is enough to learn at minute `end`."""
    return known is None or end - known.until >= AGAIN + lead + KEEP_MINUTES


def studied(past: Past, startup_s: float, weights: NetWeights, known: Sequence[Study]) -> list[Study]:
    """The studies of all rows after what has come since; `known` are those of one date, or none at all."""
    lead, columns = seen.lead_minutes(startup_s), past.minutes.shape[1]
    begin = known[0].until - past.first if known else DAY
    ends = np.arange(max(begin, HOUR), columns - lead - KEEP_MINUTES, SPACING)
    halves, place = np.unique(np.append(ends, columns) // BLOCK, return_inverse=True)
    habit = seen.habits(past.minutes, halves, lead)
    class_room = _Lessons(len(past.minutes), weights, known)
    for first in range(0, len(ends), _CHUNK):
        some, halves_of = ends[first : first + _CHUNK], place[:-1][first : first + _CHUNK]
        inputs, level = _inputs(past.minutes, some, Habits(*(part[:, halves_of] for part in habit)), startup_s)
        class_room.teach(
            inputs, bins_of(_outcomes(past.minutes, some, lead) - level[..., None]), _known(past, some, lead)
        )
    until = past.first + (int(ends[-1]) + SPACING if len(ends) else begin)
    return class_room.studies(until, Habits(*(part[:, place[-1]] for part in habit)))


def _inputs(minutes: Floats, ends: Ints, habit: Habits, startup_s: float) -> tuple[Floats, Floats]:
    """What is seen at these moments (rows, ends, features), and the level that growth counts from (rows, ends)."""
    shape, lead = (len(minutes), len(ends)), seen.lead_minutes(startup_s)
    newest = sliding_window_view(minutes, SAMPLES, axis=1)[:, ends - SAMPLES].reshape(-1, SAMPLES)
    hour = sliding_window_view(minutes, HOUR, axis=1)[:, ends - HOUR].reshape(-1, HOUR)
    base, flat = seen.base_of(newest, BASE_MINUTES), shape[0] * shape[1]
    season = seen.Seasonal(*(part.reshape(flat, *part.shape[2:]) for part in seen.seasonal(minutes, ends, lead)))
    habits = Habits(*(part.reshape(flat, -1) for part in habit))
    found = seen.features(seen.present(newest, seen.summary_of(hour), base), base, season, habits, startup_s)
    return found.reshape(*shape, -1), base.level.reshape(shape)


def _outcomes(minutes: Floats, ends: Ints, lead: int) -> Floats:
    """(rows, ends, 2): the minute after a pod serves, and the highest until one could be back."""
    keep = sliding_window_view(minutes, lead + KEEP_MINUTES, axis=1)[:, ends].max(axis=-1)
    return np.stack([minutes[:, ends + lead], keep], axis=-1)


def _known(past: Past, ends: Ints, lead: int) -> Flags:
    known: Flags = past.measured[:, ends - 1] & past.measured[:, ends + lead]
    return known


class _Lessons:
    """Many workloads learning side by side."""

    def __init__(self, rows: int, weights: NetWeights, known: Sequence[Study]) -> None:
        self.weights = weights
        self.last = np.stack([each.last for each in known]) if known else np.repeat(weights.last[None], rows, axis=0)
        self.usual = np.stack([each.usual for each in known]) if known else np.zeros((rows, 2, BINS))
        self.surprise = np.stack([each.surprise for each in known]) if known else np.zeros((rows, 2))
        self.count = np.array([each.lessons for each in known]) if known else np.zeros(rows)

    def teach(self, inputs: Floats, outcomes: NDArray[np.intp], counts: Flags) -> None:
        """One lesson after the other: (rows, lessons, features), (rows, lessons, 2) bins, (rows, lessons)."""
        shape = inputs.shape
        hidden = hidden_of(self.weights, inputs.reshape(-1, shape[2])).reshape(*shape[:2], -1)
        for number in range(shape[1]):
            rows = np.flatnonzero(counts[:, number])
            if len(rows):
                self._learn(rows, hidden[rows, number], outcomes[rows, number])

    def _learn(self, rows: NDArray[np.intp], hidden: Singles, outcome: NDArray[np.intp]) -> None:
        place = rows[:, None], np.arange(2), outcome
        said = np.take_along_axis(probabilities_of(self.last[rows], hidden), outcome[:, :, None], axis=2)[:, :, 0]
        rival = (self.usual[place] + _PRIOR) / (self.usual[rows].sum(axis=2) + _PRIOR * BINS)
        surprise = -np.log(np.stack([said, rival], axis=1) + 1e-9).mean(axis=2)
        self.surprise[rows] = _SCORE_FADING * self.surprise[rows] + surprise
        self.count[rows] = _SCORE_FADING * self.count[rows] + 1.0
        self.usual[rows] *= _SCORE_FADING
        self.usual[place] += 1.0
        self.last[rows] = lesson(self.last[rows], self.weights.last, hidden, outcome, RATE, FADING)

    def studies(self, until: int, habit: Habits) -> list[Study]:
        parts = (self.last, habit.moves, habit.levels, self.usual, self.surprise)
        rows = zip(*parts, strict=True)
        return [
            Study(until, last.copy(), moves.copy(), levels.copy(), usual.copy(), surprise.copy(), lessons)
            for (last, moves, levels, usual, surprise), lessons in zip(rows, self.count.tolist(), strict=True)
        ]
