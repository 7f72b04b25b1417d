"""The learned forecast: demand in pods, minute by minute, becomes calibrated quantiles, or a reason for silence.

Two questions are answered at once: the demand when a pod that is ordered now begins to serve, and the highest until one
that is let go now could be back. It is silent where the past is too short, has holes, never moves, changed its unit, or
shows that "the same as now" knows more.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trimtab.core.forecast.batches import Flags, filled, unusable
from trimtab.core.forecast.forecaster import DAY_S, FINE_S, Dates, Forecaster, known_at, spell, unpredictable
from trimtab.core.forecast.learned import features as seen
from trimtab.core.forecast.learned.features import DAY, HOUR, SAMPLES, Habits, Ints, days_known, looked_at
from trimtab.core.forecast.learned.net import (
    KEEP,
    PROBABILITIES,
    START,
    hidden_of,
    probabilities_of,
    quantiles_of,
    shipped_weights,
)
from trimtab.core.forecast.learned.study import BASE_MINUTES, LEAST_LESSONS, Past, Study, due, studied
from trimtab.core.model import Forecast, Missing, Quantile, Reason
from trimtab.policy import Record
from trimtab.series import Floats, Frame

HISTORY_S = 8 * DAY_S
SHORTEST_S, LONGEST_S = 30.0, 600.0  # start-up times that it was trained for
LOSES = 0.05  # nats per lesson: what is less may be chance
_PROBABILITIES = PROBABILITIES.tolist()
STALE_MINUTES = 3
SAME_AGE = 10  # minutes: rows whose ages differ by less are studied together
_WEEK_HIGH, _WEEK_LOW = 2, 5  # among the levels of habits
UNIT_FACTOR = 8.0  # a level that moves by more than this, and never back, is counted in another unit
_LEAST_PODS = 0.1  # what is below says nothing about units
USUAL_NOISE = 0.015  # of a minute's mean, where nothing finer has been seen
_LEAST_MINUTES = 60  # that were seen as they are

Rows = NDArray[np.intp]


class LearnedOptions(Record, frozen=True):
    valid_s: float = 300.0


DEFAULT = LearnedOptions()


class Learned(NamedTuple):
    """An answer for each row, and what was learned on the way."""

    forecasts: list[Forecast | Missing]
    studies: list[Study | None]


def forecast(frame: Frame, horizon_s: float, at: float, options: LearnedOptions = DEFAULT) -> list[Forecast | Missing]:
    """Rows of minutes, in what one pod carries at 100 %."""
    rows = len(frame.names)
    return learn(frame, horizon_s, at, [None] * rows, np.ones(rows), options).forecasts


def learn(
    frame: Frame,
    horizon_s: float,
    at: float,
    known: Sequence[Study | None],
    carries: Floats,
    options: LearnedOptions = DEFAULT,
) -> Learned:
    """The same of rows in units of their own, of which one pod `carries` so much, with what earlier calls learned."""
    frame = known_at(frame, at).tail(round(HISTORY_S / FINE_S))
    answers: dict[int, Forecast | Missing] = dict(unusable(frame, at, DAY * FINE_S))
    rows = np.array([row for row in range(len(frame.names)) if row not in answers], dtype=np.intp)
    studies = _Studies(frame, rows, startup_of(horizon_s), known, carries)
    answers |= studies.silent
    speaking = [row for row in rows.tolist() if row not in answers]
    if speaking:
        places = frame.values.shape[1] + looked_at(lead_of(horizon_s))
        glimpse = np.where(places >= 0, frame.values[speaking][:, np.maximum(places, 0)], np.nan)
        found = [study for row in speaking if (study := studies.found[row]) is not None]
        answers |= dict(zip(speaking, say(glimpse, horizon_s, at, found, carries[speaking], options), strict=True))
    return Learned([answers[row] for row in range(len(frame.names))], studies.found)


def startup_of(horizon_s: float) -> float:
    """A start-up time that it was trained for."""
    return min(max(horizon_s, SHORTEST_S), LONGEST_S)


def lead_of(horizon_s: float) -> int:
    return seen.lead_minutes(startup_of(horizon_s))


class _Studies:
    """The rows of one frame, with what each has learned; those that cannot learn are silent with a reason."""

    def __init__(
        self, frame: Frame, rows: Rows, startup_s: float, known: Sequence[Study | None], carries: Floats
    ) -> None:
        self.found, self.silent = list(known), dict[int, Missing]()
        self.frame, self.carries, self.startup_s = frame, carries, startup_s
        self.first = round(frame.start / FINE_S)
        end = self.first + frame.values.shape[1]
        again = [row for row in rows.tolist() if due(known[row], end, seen.lead_minutes(startup_s))]
        leads = _leads(frame.values[again]) if again else []
        for (_, lead), group in _of_one_date(again, leads, known).items():
            self._study(group, lead)

    def _study(self, rows: list[int], lead: int) -> None:
        """Without the `lead` minutes before their first sample: the frame begins with the oldest of its rows."""
        first, values = self.first + lead, self.frame.values[rows, lead:] / self.carries[rows, None]
        demand, measured = filled(values), np.isfinite(values)
        odd = nothing_moves(demand)
        for index, minute in enumerate(other_unit_before(demand).tolist()):
            if minute and odd[index] is None:
                odd[index] = self._without_old_unit(demand[index], measured[index], minute)
        self.silent |= {row: why for row, why in zip(rows, odd, strict=True) if why is not None}
        good = np.array([why is None for why in odd], dtype=bool)
        chosen = [row for row in rows if row not in self.silent]
        for row in self.silent.keys() & set(rows):
            self.found[row] = None
        if chosen:
            past = Past(seen.logs(with_noise(demand[good], first)), measured[good], first)
            known = [study for row in chosen if (study := self.found[row]) is not None]
            for row, study in zip(chosen, studied(past, self.startup_s, shipped_weights(), known), strict=True):
                self.found[row] = study

    def _without_old_unit(self, demand: Floats, measured: Flags, minute: int) -> Missing | None:
        """Long enough in the new unit: what was before is as good as not known."""
        if len(demand) - minute < DAY:
            return other_unit(len(demand) - minute)
        demand[:minute], measured[:minute] = demand[minute], False
        return None


def _leads(values: Floats) -> list[int]:
    """The minutes before each row's first sample, and up to nine more: rows of about one age are studied together."""
    lengths = values.shape[1] - np.isfinite(values).argmax(axis=1)
    kept = np.maximum(lengths - lengths % SAME_AGE, np.minimum(lengths, DAY))
    return [int(lead) for lead in values.shape[1] - kept]


def _of_one_date(
    rows: list[int], leads: list[int], known: Sequence[Study | None]
) -> dict[tuple[int | None, int], list[int]]:
    """By the minute until which they have studied, and the minute they begin with."""
    groups: dict[tuple[int | None, int], list[int]] = {}
    for row, lead in zip(rows, leads, strict=True):
        study = known[row]
        groups.setdefault((None if study is None else study.until, lead), []).append(row)
    return groups


def say(
    glimpse: Floats,
    horizon_s: float,
    at: float,
    studies: Sequence[Study],
    carries: Floats,
    options: LearnedOptions = DEFAULT,
) -> list[Forecast | Missing]:
    """What is expected of workloads that have been studied, from the minutes that are looked at."""
    startup_s, lead = startup_of(horizon_s), lead_of(horizon_s)
    present = np.isfinite(glimpse)
    fresh: Flags = np.any(present[:, -STALE_MINUTES:], axis=1)
    minutes = seen.logs(_without_holes(glimpse / carries[:, None]))
    hour = minutes[:, -HOUR:]
    base = seen.base_of(hour[:, -SAMPLES:], BASE_MINUTES)
    season = _season(minutes, lead, days_known(present, lead))
    habit = Habits(np.stack([study.moves for study in studies]), np.stack([study.levels for study in studies]))
    now = seen.present(hour[:, -SAMPLES:], seen.summary_of(hour), base)
    inputs = seen.features(now, base, seen.Seasonal(*(part[:, 0] for part in season)), habit, startup_s)
    shares = probabilities_of(np.stack([study.last for study in studies]), hidden_of(shipped_weights(), inputs))
    start, keep = (
        (carries[:, None] * quantiles_of(shares[:, question], base.level)).tolist() for question in (START, KEEP)
    )
    dates = Dates(at, at + options.valid_s)
    note = f"looks {spell(LONGEST_S)} ahead: no start-up is known beyond" if horizon_s > LONGEST_S else ""
    return [
        _why_silent(study, float(level), bool(sampled)) or _forecast(serving, kept, one * _pods(level), dates, note)
        for study, level, sampled, serving, kept, one in zip(
            studies, base.level, fresh, start, keep, carries, strict=True
        )
    ]


def _season(minutes: Floats, lead: int, known: Flags) -> seen.Seasonal:
    places, end = looked_at(lead), round(HISTORY_S / FINE_S)

    def take(wanted: Ints) -> Floats:
        return minutes[:, np.minimum(np.searchsorted(places, wanted - end), len(places) - 1)]

    return seen.seasonal_of(take, np.array([end]), lead, known)


def _without_holes(values: Floats) -> Floats:
    """Each takes the value before it, the first ones the one after."""
    present = np.isfinite(values)
    if bool(present.all()):
        return values
    columns = np.arange(values.shape[1])
    before = np.maximum.accumulate(np.where(present, columns, -1), axis=1)
    first = np.where(present.any(axis=1), present.argmax(axis=1), 0)
    whole: Floats = np.take_along_axis(values, np.where(before < 0, first[:, None], before), axis=1)
    return np.nan_to_num(whole)


def _pods(level: float) -> float:
    return max(0.0, exp(level) - seen.OFFSET_PODS)


def _forecast(start: list[float], keep: list[float], level: float, dates: Dates, note: str) -> Forecast:
    demand = tuple(map(Quantile, _PROBABILITIES, start))
    kept = tuple(map(Quantile, _PROBABILITIES, keep))
    return Forecast(
        made_at=dates.made_at,
        expires_at=dates.expires_at,
        demand=demand,
        model="learned",
        keep=kept,
        level=float(level),
        note=note,
    )


def _why_silent(study: Study, level: float, fresh: bool) -> Missing | None:
    if not fresh:
        return Missing(reason=Reason.STALE, detail=f"no sample in the last {STALE_MINUTES} min")
    if study.lessons < LEAST_LESSONS:
        detail = f"{study.lessons:.0f} forecasts could be compared with what came, {LEAST_LESSONS} are needed"
        return Missing(reason=Reason.NOT_ENOUGH_HISTORY, detail=detail)
    if study.loses_by > LOSES:
        return unpredictable(f'"the same as now" was the better forecast, by {study.loses_by:.2f} nats')
    away = max(level - study.levels[_WEEK_HIGH], study.levels[_WEEK_LOW] - level)
    if away > np.log(UNIT_FACTOR):
        return unpredictable(
            f"the load is more than {UNIT_FACTOR:g} times off all of last week: nobody knows what follows"
        )
    return None


# Histories to refuse or repair before learning from them.


def nothing_moves(demand: Floats) -> list[Missing | None]:
    """For each row of minutes; None where there is something to learn."""
    highest, lowest = demand.max(axis=1), demand.min(axis=1)
    return [
        unpredictable("there is no load")
        if high <= 0.0
        else unpredictable("the load is constant: there is nothing to forecast")
        if high == low
        else None
        for high, low in zip(highest.tolist(), lowest.tolist(), strict=True)
    ]


def other_unit_before(demand: Floats) -> np.ndarray:
    """The minute of each row from which on it is counted in the present unit; 0 where it always was.

    All hours after it lie above all hours before it, or all below, by more than the factor.
    """
    hours = demand.shape[1] // HOUR
    cut = demand.shape[1] - hours * HOUR
    middle = np.median(demand[:, cut:].reshape(len(demand), hours, HOUR), axis=2)
    level = np.log(np.maximum(middle, 0.0) + _LEAST_PODS)
    highest, lowest = np.maximum.accumulate(level, axis=1), np.minimum.accumulate(level, axis=1)
    highest_after = np.maximum.accumulate(level[:, ::-1], axis=1)[:, ::-1]
    lowest_after = np.minimum.accumulate(level[:, ::-1], axis=1)[:, ::-1]
    up, down = lowest_after[:, 1:] - highest[:, :-1], lowest[:, :-1] - highest_after[:, 1:]
    moved = np.maximum(up, down) > np.log(UNIT_FACTOR)
    last = moved.shape[1] - moved[:, ::-1].argmax(axis=1)  # the hour after the last such border
    return np.where(moved.any(axis=1), cut + last * HOUR, 0)


def other_unit(minutes: int) -> Missing:
    return Missing(
        reason=Reason.NOT_ENOUGH_HISTORY,
        detail=f"{spell(60.0 * minutes)} ago the load moved more than {UNIT_FACTOR:g}-fold and stayed there, as if it "
        "were counted in another unit; a day of it is needed",
    )


def with_noise(demand: Floats, first: int) -> Floats:
    """Rows of minutes from minute `first` on; the same minute always gets the same noise."""
    same = demand[:, 1:] == demand[:, :-1]
    still = np.pad(same, ((0, 0), (1, 0))) | np.pad(same, ((0, 0), (0, 1)))
    noise = _noise(demand, still)[:, None] * _draws(first, demand.shape[1])
    noisy: Floats = np.where(still, demand * (1.0 + noise), demand)
    return noisy


def _noise(demand: Floats, still: np.ndarray) -> Floats:
    """The spread of neighbouring minutes where they differ; 1.05 x the median distance of two is one deviation."""
    with np.errstate(divide="ignore", invalid="ignore"):
        moved = np.abs(np.diff(np.log(demand), axis=1))
    seen = ~still[:, 1:] & ~still[:, :-1] & np.isfinite(moved)
    found = np.full(len(demand), USUAL_NOISE)
    for row in np.flatnonzero(seen.sum(axis=1) >= _LEAST_MINUTES):
        found[row] = min(1.05 * float(np.median(moved[row, seen[row]])), 0.1)
    return found


def _draws(first: int, count: int) -> Floats:
    """Nearly normal numbers that depend on the minute alone: twelve uniform ones, less six."""
    clock = first + np.arange(count, dtype=np.float64)
    mixed = np.sin(clock[None] * (12.9898 + 7.233 * np.arange(12.0)[:, None])) * 43758.5453
    draws: Floats = (mixed - np.floor(mixed)).sum(axis=0) - 6.0
    return draws


FORECASTER = Forecaster(forecast, LearnedOptions, bin_s=FINE_S, keep_s=HISTORY_S, cost=0.2, needs_training=True)
