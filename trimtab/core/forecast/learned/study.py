"""What a workload's own past teaches: its last layer, its habits, and whether the forecast beats "the same as now".

A study holds for one half-hour of the clock. It is made of whole minutes that were over a quarter of an hour before it
begins, so it can be made in that quarter, whenever there is time, and is the same whoever makes it: an operator step by
step, a backtest at once, a new leader from what was read back.

Every other remembered minute is a lesson: forecast first, then learn from what came, a half-hour at a time. Each
forecast is scored before it is learned from, beside a rival that expects the present level with the spread that this
workload usually has.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from trimtab.core.forecast.forecaster import spell, too_short, unpredictable
from trimtab.core.forecast.learned import features as seen
from trimtab.core.forecast.learned.features import (
    BLOCK,
    DAY,
    HOUR,
    KEEP_MINUTES,
    UNIT_FACTOR,
    Base,
    Flags,
    Habits,
    Ints,
    Seasonal,
)
from trimtab.core.forecast.learned.net import BINS, NetWeights, Singles, bins_of, hidden_of, lessons
from trimtab.core.model import Missing, Reason
from trimtab.series import Floats

MINUTE_S = 60.0
SPACING = 2  # minutes between two lessons
AHEAD = BLOCK // 2  # minutes before its half-hour at which a study can be made
HABITS_AGE, LESSONS_AGE = 1, 3  # half-hours before the study's own that are left out
HISTORY = 8 * DAY  # minutes that a study looks back, its lessons apart
LEAST_LESSONS = 60  # before they say anything
LOSES = 0.05  # nats per lesson: what is less may be chance
LEAST_SHARE = 0.7  # of the minutes that must be measured
_LEAST_PODS = 0.1  # what is below says nothing about units
_SCORE_FADING = 0.5 ** (SPACING / DAY)  # half after a day
_PRIOR = 0.2  # of each bin, for the rival
_KEPT_BLOCKS = 337
_STILL_NOISE = 0.015  # the spread within one coarse value


class Past(NamedTuple):
    """The minutes of one workload from minute `first` (unix seconds // 60, on the hour) on, in pods, without holes."""

    carries: float  # what one pod carries at 100 %
    demand: Floats
    minutes: Floats  # logarithms; where a coarse value was repeated, with the noise that it hides
    measured: Flags
    first: int

    def since(self, minute: int) -> Past:
        """The same without what was before."""
        cut = minute - self.first
        if cut <= 0:
            return self
        demand, minutes, measured = self.demand.copy(), self.minutes.copy(), self.measured.copy()
        demand[:cut], minutes[:cut], measured[:cut] = demand[cut], minutes[cut], False
        return Past(self.carries, demand, minutes, measured, self.first)


class Study(NamedTuple):
    """One workload in one half-hour (unix seconds // 1800)."""

    half: int
    lead: int  # minutes until a pod serves
    carries: float  # what one pod was taken to carry at 100 %
    begin: int  # the minute since which demand is counted in the present unit
    last: Singles
    blocks: Floats  # summaries of half-hours, the newest last
    habits: Habits  # one row
    season: Seasonal  # a row for each minute of the half-hour
    usual: Floats  # (2, bins): how often growth fell where, faded
    surprise: Floats  # (2,): of the forecast and of its rival, in nats, faded
    lessons: float  # faded too
    silence: Missing | None = None  # why it says nothing


def past_of(values: Floats, first: int, carries: float) -> Past | None:
    """Return minutes from minute `first` on, NaN where nothing was measured; None if nothing was at all.

    It begins two hours or more before them, as if the first measured minute had held until then.
    """
    if not np.isfinite(values).any():
        return None
    lead = 2 * HOUR + first % HOUR
    whole = np.concatenate([np.full(lead, np.nan), values])[None]
    demand, minutes = minutes_of(whole, first - lead, np.array([carries]))
    return Past(carries, demand[0], minutes[0], np.isfinite(whole[0]), first - lead)


def minutes_of(values: Floats, first: int, carries: Floats) -> tuple[Floats, Floats]:
    """Return rows of minutes from minute `first` on in pods, and their logarithms.

    A hole repeats the minute before it; what is before the first measured minute repeats that one. The third of equal
    minutes and those after it are one coarse value: their logarithms get the noise that it hides, the same minute
    always the same (twelve uniform numbers less six are nearly normal).
    """
    known, columns = np.isfinite(values), np.arange(values.shape[1])
    place = np.maximum.accumulate(np.where(known, columns, -1), axis=1)
    place = np.where(place < 0, known.argmax(axis=1)[:, None], place)
    demand = np.nan_to_num(np.take_along_axis(values, place, axis=1)) / carries[:, None]
    equal = demand[:, 1:] == demand[:, :-1]
    still = np.zeros(demand.shape, dtype=bool)
    still[:, 2:] = equal[:, 1:] & equal[:, :-1] & known[:, 2:]
    noisy, (rows, places) = demand.copy(), np.nonzero(still)
    mixed = np.sin((first + places) * (12.9898 + 7.233 * np.arange(12.0)[:, None])) * 43758.5453
    draws = np.cumsum(mixed - np.floor(mixed), axis=0)[-1] - 6.0
    noisy[rows, places] *= 1.0 + _STILL_NOISE * draws
    return demand, seen.logs(noisy)


def halves_due(known: Study | None, minute: int) -> range:
    """The half-hours to study for after `minute` minutes (unix seconds // 60) have passed."""
    until = (minute + AHEAD) // BLOCK + 1
    return range(minute // BLOCK if known is None else min(known.half + 1, until), until)


def studied(past: Past, startup_s: float, weights: NetWeights, known: Study | None, halves: range) -> Iterator[Study]:
    """Yield the study of each half-hour; `known` is the one before the first of them, if there is one."""
    for begin, some in _by_unit(past, halves, known.begin if known else 0):
        if known is not None and known.begin != begin:
            known = None
        for study in _studied(past.since(begin), begin, startup_s, weights, known, some):
            known = study
            yield study


# --- one unit --------------------------------------------------------------------------------------------------------


def _studied(
    past: Past, begin: int, startup_s: float, weights: NetWeights, known: Study | None, halves: range
) -> Iterator[Study]:
    lead = seen.lead_minutes(startup_s)
    blocks = _blocks(past, lead, known, halves.stop - 1 - HABITS_AGE)
    end = halves.stop - 1 - HABITS_AGE  # of the blocks that are known
    ends = np.arange(halves.start * BLOCK, halves.stop * BLOCK) - past.first
    season = seen.seasonal(past.minutes, past.measured, ends, lead)
    numbers = np.array(halves)
    habit = seen.habits(blocks, np.maximum(numbers - HABITS_AGE - (end - len(blocks)), 1))
    silences = _silences(past, begin, numbers)
    start = int(past.first + past.measured.argmax()) // BLOCK + 1 + DAY // BLOCK
    first = start if known is None else max(start, known.half + 1 - LESSONS_AGE)
    course = _Course(past, startup_s, weights, known, range(first, max(first, halves.stop - LESSONS_AGE)))
    course.prepare(blocks, end - len(blocks))
    for number, half in enumerate(halves):
        course.learn_until(half - LESSONS_AGE)
        rows, kept = slice(number * BLOCK, (number + 1) * BLOCK), max(1, len(blocks) - (halves.stop - 1 - half))
        yield Study(
            half,
            lead,
            past.carries,
            begin,
            course.last.astype(np.float32),
            blocks[max(0, kept - _KEPT_BLOCKS) : kept],
            Habits(*(part[number : number + 1] for part in habit)),
            Seasonal(*(part[rows] for part in season)),
            course.usual.copy(),
            course.surprise.copy(),
            course.count,
            silences[number] or course.silence(),
        )


def _blocks(past: Past, lead: int, known: Study | None, end: int) -> Floats:
    """The summaries of half-hours up to `end`: of all that is there, or those known and the ones since."""
    offset = past.first // BLOCK
    if known is None:
        return seen.blocks_of(past.minutes[: max(1, end - offset) * BLOCK], lead)
    since = known.half - HABITS_AGE
    if since >= end:
        return known.blocks
    part = past.minutes[(since - 1 - offset) * BLOCK : (end - offset) * BLOCK]
    return np.concatenate([known.blocks, seen.blocks_of(part, lead)[1:]])


def inputs(
    past: Past, blocks: Floats, first_block: int, ends: Ints, startup_s: float, samples: Floats | None = None
) -> tuple[Floats, Base]:
    """Return what is seen after `ends` minutes of a past, and the level that growth counts from.

    `samples` are the logarithms observed lately at each of these moments; without them, minutes are all there is.
    """
    hour = sliding_window_view(past.minutes, HOUR)[ends - HOUR]
    samples = seen.samples_of_minutes(hour) if samples is None else samples
    base = seen.base_of(samples, seen.noise_of(hour))
    halves = (past.first + ends) // BLOCK - HABITS_AGE - first_block
    habit = seen.habits(blocks, np.maximum(halves, 1))
    season = seen.seasonal(past.minutes, past.measured, ends, seen.lead_minutes(startup_s))
    startups_s = np.full(len(ends), startup_s)
    return seen.features(samples, seen.summary_of(hour), base, season, habit, startups_s), base


class _Course:
    """One workload learning half-hour after half-hour."""

    def __init__(self, past: Past, startup_s: float, weights: NetWeights, known: Study | None, halves: range) -> None:
        self.past, self.startup_s, self.weights, self.halves = past, startup_s, weights, halves
        self.last = weights.last if known is None else known.last.astype(np.float64)
        self.usual = np.zeros((2, BINS)) if known is None else known.usual.copy()
        self.surprise = np.zeros(2) if known is None else known.surprise.copy()
        self.count = 0.0 if known is None else known.lessons
        self._next = 0

    def prepare(self, blocks: Floats, first_block: int) -> None:
        """Compute what every lesson saw and what came of it."""
        past, lead = self.past, seen.lead_minutes(self.startup_s)
        halves = np.repeat(np.array(self.halves, dtype=np.int64), BLOCK // SPACING)
        ends = halves * BLOCK + SPACING * (np.arange(len(halves)) % (BLOCK // SPACING)) - past.first
        if not len(ends):
            return
        found, base = inputs(past, blocks, first_block, ends, self.startup_s)
        self.hidden = hidden_of(self.weights, found)
        keep = sliding_window_view(past.minutes, lead + KEEP_MINUTES)[ends].max(axis=1)
        came = np.stack([past.minutes[ends + lead], keep], axis=1) + seen.PEAK_NOISE * base.noise[:, None]
        self.outcomes = bins_of(came - base.level[:, None])
        self.counts = past.measured[ends - 1] & past.measured[ends + lead]

    def learn_until(self, half: int) -> None:
        """Learn from the half-hours up to this one, it included."""
        while self._next < len(self.halves) and self.halves[self._next] <= half:
            each = BLOCK // SPACING
            self._learn(np.arange(self._next * each, (self._next + 1) * each))
            self._next += 1

    def _learn(self, rows: NDArray[np.intp]) -> None:
        rows = rows[self.counts[rows]]
        if not len(rows):
            return
        outcomes, questions = self.outcomes[rows], np.arange(2)
        self.last, likely = lessons(self.last, self.weights.last, self.hidden[rows], outcomes)
        rival = (self.usual[questions, outcomes] + _PRIOR) / (self.usual.sum(axis=1) + _PRIOR * BINS)
        surprise = -np.log(np.stack([likely, rival], axis=2) + 1e-9).sum(axis=1) / 2.0
        kept = _SCORE_FADING ** len(rows)
        self.surprise = kept * self.surprise + np.cumsum(surprise, axis=0)[-1]
        self.count = kept * self.count + len(rows)
        self.usual = kept * self.usual
        np.add.at(self.usual, (questions[None], outcomes), 1.0)

    def silence(self) -> Missing | None:
        if self.count < LEAST_LESSONS:
            detail = f"{self.count:.0f} forecasts could be compared with what came, {LEAST_LESSONS} are needed"
            return Missing(reason=Reason.NOT_ENOUGH_HISTORY, detail=detail)
        loses_by = float(self.surprise[0] - self.surprise[1]) / max(self.count, 1.0)
        if loses_by > LOSES:
            return unpredictable(f'"the same as now" was the better forecast, by {loses_by:.2f} nats')
        return None


# --- histories to refuse or repair before learning from them ---------------------------------------------------------


def _silences(past: Past, begin: int, halves: NDArray[np.int64]) -> list[Missing | None]:
    """Why nothing can be said in these half-hours, by what was known half an hour before each."""
    known = np.concatenate([[0], np.cumsum(past.measured)])
    start = int(past.measured.argmax())
    ends = [(half - HABITS_AGE) * BLOCK - past.first for half in halves.tolist()]
    return [_silence(past, known, begin, max(start, end - HISTORY), end) for end in ends]


def _silence(past: Past, known: NDArray[np.int64], begin: int, first: int, end: int) -> Missing | None:
    if end - first < DAY:
        return _other_unit(end - first) if begin else too_short(max(0, end - first) * MINUTE_S, DAY * MINUTE_S)
    share = float(known[end] - known[first]) / (end - first)
    if share < LEAST_SHARE:
        text = f"only {share:.0%} of the last {spell((end - first) * MINUTE_S)} has samples, {LEAST_SHARE:.0%} needed"
        return Missing(reason=Reason.NOT_ENOUGH_HISTORY, detail=text)
    highest = float(past.demand[first:end].max())
    if highest <= 0.0:
        return unpredictable("there is no load")
    if highest == float(past.demand[first:end].min()):
        return unpredictable("the load is constant: there is nothing to forecast")
    return None


def _other_unit(minutes: int) -> Missing:
    return Missing(
        reason=Reason.NOT_ENOUGH_HISTORY,
        detail=f"{spell(MINUTE_S * minutes)} ago the load moved more than {UNIT_FACTOR:g}-fold and stayed there, as if "
        "it were counted in another unit; a day of it is needed",
    )


def _by_unit(past: Past, halves: range, begin: int) -> Iterator[tuple[int, range]]:
    """Yield the minute since which demand is counted in its present unit, with the half-hours that go by it."""
    levels, first = _hour_levels(past.demand[: len(past.demand) // HOUR * HOUR]), halves.start
    for half in halves:
        end = ((half - HABITS_AGE) * BLOCK - past.first) // HOUR
        oldest = max(0, end - HISTORY // HOUR)
        border = _border(levels[oldest:end])
        since = past.first + (oldest + border) * HOUR if border else 0
        if since > begin:
            if half > first:
                yield begin, range(first, half)
            begin, first = since, half
    yield begin, range(first, halves.stop)


def other_unit_before(demand: Floats) -> int:
    """Return the minute from which on demand in pods is counted in its present unit; 0 where it always was."""
    cut = len(demand) % HOUR
    border = _border(_hour_levels(demand[cut:]))
    return cut + border * HOUR if border else 0


def _hour_levels(demand: Floats) -> Floats:
    """Of whole hours of minutes."""
    levels: Floats = np.log(np.maximum(np.median(demand.reshape(-1, HOUR), axis=1), 0.0) + _LEAST_PODS)
    return levels


def _border(levels: Floats) -> int:
    """The place of the last hour that began more than eightfold above or below all before it, and stayed so; else 0."""
    if len(levels) < 2 or levels.max() - levels.min() <= np.log(UNIT_FACTOR):
        return 0
    highest, lowest = np.maximum.accumulate(levels), np.minimum.accumulate(levels)
    highest_after = np.maximum.accumulate(levels[::-1])[::-1]
    lowest_after = np.minimum.accumulate(levels[::-1])[::-1]
    moved = np.maximum(lowest_after[1:] - highest[:-1], lowest[:-1] - highest_after[1:]) > np.log(UNIT_FACTOR)
    return int(np.flatnonzero(moved)[-1]) + 1 if moved.any() else 0
