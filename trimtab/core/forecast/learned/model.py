"""The learned forecast: demand in pods becomes calibrated quantiles at every tick, or a reason for silence.

Two questions are answered at once: the demand when a pod that is ordered now begins to serve, and the highest until one
that is removed now could be back. It is silent where the past is too short, has holes, never moves, changed its unit,
or shows that "the same as now" knows more.

`say` answers for many workloads at one tick, as an operator asks; `throughout` for every tick of one workload, as a
backtest does. Both look at the newest observations as they were observed, at whole minutes before them, and at what has
been studied; both give the same numbers, bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from trimtab.core.demand.log import codes_of, values_of
from trimtab.core.forecast.forecaster import DAY_S, FINE_S, Dates, Forecaster, known_at, spell, unpredictable
from trimtab.core.forecast.learned import features as seen
from trimtab.core.forecast.learned.features import (
    BLOCK,
    HOUR,
    SAMPLE_S,
    SAMPLES,
    UNIT_FACTOR,
    WEEK_HIGH,
    WEEK_LOW,
    Flags,
    Habits,
    Ints,
    Seasonal,
)
from trimtab.core.forecast.learned.net import (
    BINS,
    KEEP,
    PROBABILITIES,
    START,
    NetWeights,
    hidden_of,
    powers_of,
    quantiles_of,
    shipped_weights,
)
from trimtab.core.forecast.learned.study import Study, minutes_of, past_of, studied
from trimtab.core.model import Forecast, Missing, Quantile, Reason
from trimtab.policy import Record
from trimtab.series import Floats, Frame

HISTORY_S = 9 * DAY_S
SHORTEST_S, LONGEST_S = 30.0, 600.0  # start-up times that it was trained for
STALE_S = 180.0
HOUR_BEFORE = HOUR + 2  # minutes that a tick looks at: two more say whether the first ones repeat an older value
NOT_STUDIED = Missing(reason=Reason.NOT_ENOUGH_HISTORY, detail="the first forecast is being made")
_PROBABILITIES = PROBABILITIES.tolist()
_HAIR_S = 1e-6
_CHUNK, _TOGETHER = 64, 8  # last layers and half-hours at a time: what fits the cache


class LearnedOptions(Record, frozen=True):
    valid_s: float = 300.0


DEFAULT = LearnedOptions()


class Moment(NamedTuple):
    """What one workload shows at a tick."""

    study: Study | None
    startup_s: float
    newest: Floats | None  # observations every 15 s, in its own unit, the newest last; None: they are old
    valid_s: float = DEFAULT.valid_s
    note: str = ""


def startup_of(horizon_s: float) -> float:
    """A start-up time that it was trained for, in whole steps of 15 s: alike are studied alike."""
    return min(max(SAMPLE_S * ceil(horizon_s / SAMPLE_S), SHORTEST_S), LONGEST_S)


def note_of(horizon_s: float) -> str:
    return f"looks {spell(LONGEST_S)} ahead: no start-up is known beyond" if horizon_s > LONGEST_S else ""


def newest_of(times: Floats, values: Floats, at: float) -> Floats | None:
    """What was known at each of the last steps of 15 s; None where nothing was observed lately."""
    if not len(times) or at - times[-1] >= STALE_S:
        return None
    wanted = at + _HAIR_S - SAMPLE_S * np.arange(SAMPLES - 1, -1, -1)
    return values[np.maximum(np.searchsorted(times, wanted, side="right") - 1, 0)]


def study(
    values: Floats, first: int, carries: float, startup_s: float, known: Study | None, halves: range
) -> list[Study]:
    """The studies of one workload for these half-hours, from its minutes, NaN where nothing was measured."""
    past = past_of(values, first, known.carries if known else carries)
    return [] if past is None else list(studied(past, startup_s, shipped_weights(), known, halves))


def say(moments: Sequence[Moment], hours: Floats, at: float) -> list[Forecast | Missing]:
    """What is expected of workloads at one tick; `hours` are rows of the last whole minutes, `HOUR_BEFORE` of them."""
    answers: list[Forecast | Missing] = [_why_silent(moment) or NOT_STUDIED for moment in moments]
    speaking = [row for row, moment in enumerate(moments) if _why_silent(moment) is None]
    for first in range(0, len(speaking), 16 * _CHUNK):
        some = speaking[first : first + 16 * _CHUNK]
        for row, answer in zip(some, _said([moments[row] for row in some], hours[some], at), strict=True):
            answers[row] = answer
    return answers


def _said(moments: Sequence[Moment], hours: Floats, at: float) -> list[Forecast | Missing]:
    end, studies = int(at // FINE_S), [moment.study for moment in moments if moment.study is not None]
    carries = np.array([one.carries for one in studies])
    samples = seen.logs(np.stack([moment.newest for moment in moments if moment.newest is not None]) / carries[:, None])
    hour = minutes_of(hours, end - HOUR_BEFORE, carries)[1][:, -HOUR:]
    base = seen.base_of(samples, seen.noise_of(hour))
    places = [min(end - one.half * BLOCK, BLOCK - 1) for one in studies]
    season = Seasonal(
        *(np.stack([one.season[part][place] for one, place in zip(studies, places, strict=True)]) for part in range(3))
    )
    habit = Habits(*(np.concatenate([one.habits[part] for one in studies]) for part in range(2)))
    startups = np.array([moment.startup_s for moment in moments])
    found = seen.features(samples, seen.summary_of(hour), base, season, habit, startups)
    below = powers_of(_scores(studies, hidden_of(shipped_weights(), found)))
    start, keep = (carries[:, None] * quantiles_of(below[:, question], base.level) for question in (START, KEEP))
    far = _too_far(base.level, habit)
    loads = carries * np.maximum(np.exp(base.level) - seen.OFFSET_PODS, 0.0)
    rows = zip(moments, loads.tolist(), far.tolist(), start.tolist(), keep.tolist(), strict=True)
    return [
        _FAR_OFF if away else _forecast(serving, kept, load, Dates(at, at + moment.valid_s), moment.note)
        for moment, load, away, serving, kept in rows
    ]


def _scores(studies: Sequence[Study], hidden: Floats) -> Floats:
    """Each row by its own last layer."""
    found = np.empty((len(hidden), 2 * BINS))
    room = np.empty((min(_CHUNK, len(hidden)), hidden.shape[1], 2 * BINS))
    for first in range(0, len(hidden), _CHUNK):
        some = studies[first : first + _CHUNK]
        lasts = np.stack([one.last for one in some], out=room[: len(some)])
        found[first : first + len(some)] = np.matmul(hidden[first : first + len(some), None, :], lasts)[:, 0]
    return found


class Throughout(NamedTuple):
    """Every tick of one workload; demand is in its own unit."""

    silent: Flags
    start: Floats  # (ticks, probabilities)
    keep: Floats


def throughout(
    times: Floats, demand: Floats, carries: float, startup_s: float, weights: NetWeights | None = None
) -> Throughout:
    """What `say` answers at each of these ticks, each of which observes this demand; all before is unknown."""
    weights = weights or shipped_weights()
    ends = (times // FINE_S).astype(np.int64)
    first, minutes = int(ends[0]), minute_means(ends, demand)
    past = past_of(minutes, first, carries)
    assert past is not None
    halves = range(first // BLOCK, int(ends[-1]) // BLOCK + 1)
    # The first minute is over before anybody studies; what is not yet over is never looked at.
    studies = list(studied(past, startup_s, weights, None, halves))
    logs, hours = seen.logs(demand / carries), sliding_window_view(past.minutes, HOUR)
    place = ends // BLOCK - halves.start
    seasons = Seasonal(*(np.concatenate([one.season[part] for one in studies]) for part in range(3)))
    habits = Habits(*(np.concatenate([one.habits[part] for one in studies]) for part in range(2)))
    quantiles, too_far = np.empty((2, len(times), len(PROBABILITIES))), np.empty(len(times), dtype=bool)
    edges = np.searchsorted(place, np.arange(len(studies) + 1)).tolist()
    for group in range(0, len(studies), _TOGETHER):  # the features of all ticks would fill a night's memory
        some = slice(edges[group], edges[min(group + _TOGETHER, len(studies))])
        samples, hour = logs[newest_places(times, some)], hours[np.maximum(ends[some] - past.first - HOUR, 0)]
        base = seen.base_of(samples, seen.noise_of(hour))
        season = Seasonal(*(part[ends[some] - halves.start * BLOCK] for part in seasons))
        habit = Habits(*(part[place[some]] for part in habits))
        startups_s = np.full(len(samples), startup_s)
        hidden = hidden_of(weights, seen.features(samples, seen.summary_of(hour), base, season, habit, startups_s))
        too_far[some] = _too_far(base.level, habit)
        scores = np.empty((len(hidden), 2 * BINS))
        for number, one in enumerate(studies[group : group + _TOGETHER], start=group):
            rows = slice(edges[number] - some.start, edges[number + 1] - some.start)
            scores[rows] = hidden[rows] @ one.last.astype(np.float64)
        below = powers_of(scores)
        for question in (START, KEEP):
            quantiles[question, some] = quantiles_of(below[:, question], base.level)
    quantiles *= carries
    silent = np.array([one.silence is not None for one in studies])[place]
    return Throughout(silent | too_far, quantiles[START], quantiles[KEEP])


def minute_means(ends: Ints, demand: Floats) -> Floats:
    """As the demand log keeps them: a minute without a tick is a hole."""
    numbers = ends - ends[0]
    count = np.bincount(numbers)
    total = np.bincount(numbers, weights=demand)
    means = np.full(len(count), np.nan)
    means[count > 0] = values_of(codes_of(total[count > 0] / count[count > 0]))
    return means


def newest_places(times: Floats, rows: Ints | slice = slice(None)) -> Ints:
    """For each of these ticks, which observations are its newest ones."""
    wanted = times[rows, None] + _HAIR_S - SAMPLE_S * np.arange(SAMPLES - 1, -1, -1)
    places: Ints = np.maximum(np.searchsorted(times, wanted.ravel(), side="right") - 1, 0).reshape(wanted.shape)
    return places


def _forecast(start: list[float], keep: list[float], level: float, dates: Dates, note: str) -> Forecast:
    return Forecast(
        made_at=dates.made_at,
        expires_at=dates.expires_at,
        demand=tuple(map(Quantile, _PROBABILITIES, start)),
        model="learned",
        keep=tuple(map(Quantile, _PROBABILITIES, keep)),
        level=level,
        note=note,
    )


_STALE = Missing(reason=Reason.STALE, detail=f"no sample in the last {spell(STALE_S)}")
_FAR_OFF = unpredictable(f"the load is more than {UNIT_FACTOR:g} times off all of last week: nobody knows what follows")


def _why_silent(moment: Moment) -> Missing | None:
    if moment.study is None:
        return NOT_STUDIED
    return _STALE if moment.newest is None else moment.study.silence


def _too_far(level: Floats, habit: Habits) -> Flags:
    away = np.maximum(level - habit.levels[:, WEEK_HIGH], habit.levels[:, WEEK_LOW] - level)
    far: Flags = away > np.log(UNIT_FACTOR)
    return far


def forecast(frame: Frame, horizon_s: float, at: float, options: LearnedOptions = DEFAULT) -> list[Forecast | Missing]:
    """Rows of minutes, in what one pod carries at 100 %, as if nothing finer had been observed."""
    assert frame.step_s == FINE_S
    frame = known_at(frame, at).tail(round(HISTORY_S / FINE_S))
    first, end, startup_s = round(frame.start / FINE_S), int(at // FINE_S), startup_of(horizon_s)
    moments, half = [], range(end // BLOCK, end // BLOCK + 1)
    for values in frame.values:
        studies = study(values[: end - first], first, 1.0, startup_s, None, half)
        newest = newest_of(frame.times[np.isfinite(values)], values[np.isfinite(values)], at)
        moments.append(Moment(studies[-1] if studies else None, startup_s, newest, options.valid_s, note_of(horizon_s)))
    padded = np.concatenate([np.full((len(frame.names), HOUR_BEFORE), np.nan), frame.values[:, : end - first]], axis=1)
    return say(moments, padded[:, -HOUR_BEFORE:], at)


FORECASTER = Forecaster(forecast, LearnedOptions, bin_s=FINE_S, keep_s=HISTORY_S, needs_training=True)
