"""What the learned forecast looks at: logarithms of demand, relative to its present level, so that scale is no matter.

Three kinds, by how often they change. `present`: the newest observations and the last hour, at every tick. `seasonal`:
the same minute of the last seven days and hours, every minute. `habits`: how this workload usually moves, from
summaries of half-hours of the last week, every half-hour.

Logarithms lie on a grid (`on_grid`), so their sums are exact: whoever adds them, in whatever order, gets the same bits.
That is why one moment of many workloads and many moments of one workload give identical forecasts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from trimtab.series import Floats

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

OFFSET_PODS = 1.5  # log(demand + this): below about a pod, differences stop to matter
LOG_GRID = 4096.0
DAY, HOUR, BLOCK = 1440, 60, 30  # minutes
UNIT_FACTOR = 8.0  # who moves by more than this, and never back, is counted in another unit
SAMPLES, SAMPLE_S = 24, 15.0  # how many of the newest observations are looked at, and how far apart
KEEP_MINUTES = 3  # a pod that is removed is missed for its start-up and this much longer
THRESHOLDS = (0.05, 0.1, 0.2, 0.35, 0.6, 1.0)  # growth that is counted
NOISE_MINUTES, LEAST_NOISE = 20, 0.003
PEAK_NOISE = 2.8  # the highest quarter of a minute lies so many times `noise` above the minute's mean
_LAGS = (1, 2, 3, 4, 5, 6, 8, 12)  # of the newest observations
_WIDTHS = (12, 48, 336)  # half-hours: six hours, a day, a week
_FADING = 0.8  # the weight of a day against the one after it
_BEFORE = 3  # minutes before a moment that belong to what is looked at around it


def on_grid(values: Floats, per_unit: float) -> Floats:
    """Return the nearest multiples of 1 / per_unit, a power of two: sums of few enough of them never round."""
    rounded: Floats = values * per_unit
    np.rint(rounded, out=rounded)
    rounded *= 1.0 / per_unit
    return rounded


def logs(demand: Floats) -> Floats:
    """Return logarithms of demand in pods: what one pod carries at 100 % is 1."""
    return on_grid(np.log(np.maximum(demand, 0.0) + OFFSET_PODS), LOG_GRID)


def lead_minutes(startup_s: float) -> int:
    """From now until a pod that is ordered now serves, in whole minutes."""
    return max(1, round(startup_s / 60.0))


# --- the present -----------------------------------------------------------------------------------------------------


class Base(NamedTuple):
    level: Floats  # of the newest observations that do not differ by more than noise
    noise: Floats


def noise_of(hour: Floats) -> Floats:
    """Return how much neighboring minutes usually differ, from the minutes of the last hour (rows, 60), newest last."""
    moved = np.sort(np.abs(np.diff(hour[:, -NOISE_MINUTES - 1 :], axis=1)), axis=1)
    middle: Floats = (moved[:, NOISE_MINUTES // 2 - 1] + moved[:, NOISE_MINUTES // 2]) / 2.0
    return 1.05 * middle + LEAST_NOISE


def base_of(samples: Floats, noise: Floats, most: int = 6) -> Base:
    """The mean of up to so many of the newest samples, stopping at the first that noise does not explain."""
    level, count, going = samples[:, -1].copy(), np.ones(len(samples)), np.ones(len(samples), dtype=bool)
    for back in range(2, most + 1):
        sample = samples[:, -back]
        going &= np.abs(sample - level) <= 3.5 * noise * np.sqrt(1.0 + 1.0 / count)
        level = np.where(going, (level * count + sample) / (count + 1.0), level)
        count += going
    return Base(level, noise)


def summary_of(hour: Floats) -> Floats:
    """Of the minutes of the last hour (rows, 60), newest last: means, single ones, the highest and the lowest."""
    means = [hour[:, -width:].sum(axis=1) / width for width in (2, 5, 20, HOUR)]
    lags = [hour[:, -back] for back in (1, 2, 5, 10, 20, HOUR)]
    highest = [hour[:, -width:].max(axis=1) for width in (5, 20, HOUR)]
    lowest = [hour[:, -width:].min(axis=1) for width in (5, 20, HOUR)]
    return np.stack([*means, *lags, *highest, *lowest, np.log(noise_of(hour))], axis=1)


def samples_of_minutes(hour: Floats) -> Floats:
    """Return what a tick of one minute would have observed: each minute's mean four times."""
    return np.repeat(hour[:, -(SAMPLES // 4) :], 4, axis=1)


# --- the same minute of other days and hours -------------------------------------------------------------------------


class Seasonal(NamedTuple):
    growth: Floats  # relative to the level of that moment
    levels: Floats  # to be compared with the level of this one
    days: Floats


def seasonal(minutes: Floats, known: Flags, ends: Ints, lead: int) -> Seasonal:
    """Return what happened at the same minute of the last seven days and six hours.

    `minutes` are those of one workload without holes, `known` says which were measured, `ends` how many have passed. A
    day counts when most of the minutes around that moment were measured. Nothing after `ends - 45` is looked at.
    """
    width = _BEFORE + lead + KEEP_MINUTES + 3
    usual = _without_nonsense(minutes)
    padded = np.concatenate([np.full(7 * DAY + _BEFORE, usual[0]), usual, np.full(width, usual[-1])])
    windows = sliding_window_view(padded, width)
    measured = np.concatenate([np.zeros(7 * DAY + _BEFORE + 1), np.cumsum(known), np.full(width, known.sum())])

    def around(moments: Ints) -> Floats:
        """Growth after the lead time, the highest until a bit later, the highest level, the level."""
        window = windows[moments + 7 * DAY]
        level = (window[:, 1] + window[:, 2] + window[:, 3] + window[:, 4]) / 4.0
        later = (window[:, 3 + lead] + window[:, 4 + lead]) / 2.0
        highest = window[:, 3 : 3 + lead + KEEP_MINUTES].max(axis=1)
        return np.stack([later - level, highest - level, window.max(axis=1), level], axis=1)

    days, counts = [], []
    for day in range(1, 8):
        places = ends - day * DAY + 7 * DAY
        counts.append(measured[places + width] - measured[places] > 0.5 * width)
        days.append(np.where(counts[-1][:, None], around(ends - day * DAY), 0.0))
    views = _views(days, counts)
    hours = [around(ends - back * HOUR)[:, 1] for back in range(1, 7)]
    ahead = measured[ends + 7 * DAY + _BEFORE - 7 * HOUR] > 0.0  # the hours before were measured
    mean = sum(hours[1:], hours[0]) / 6.0
    highest = np.max(hours, axis=0)
    growth = [views[..., :2].reshape(len(ends), -1), np.where(ahead, mean, 0.0)[:, None]]
    growth.append(np.where(ahead, highest, 0.0)[:, None])
    levels = views[..., 2:].reshape(len(ends), -1)
    return Seasonal(np.concatenate(growth, axis=1), levels, np.sum(counts, axis=0).astype(np.float64))


def _without_nonsense(minutes: Floats) -> Floats:
    """Minutes that are more than eightfold what the three before and after them were are taken for those."""
    padded = np.concatenate([np.full(3, minutes[0]), minutes, np.full(3, minutes[-1])])
    sides = sliding_window_view(padded, 3).max(axis=1)
    around = np.maximum(sides[: len(minutes)], sides[4:])
    return np.where(minutes > around + np.log(UNIT_FACTOR), around, minutes)


def _views(days: list[Floats], counts: list[Flags]) -> Floats:
    """(moments, 4 views, 4): yesterday, the mean of the days, their highest, and a week ago."""
    total, weight, highest = np.zeros_like(days[0]), np.zeros(len(days[0])), np.full_like(days[0], -np.inf)
    for number, (day, counted) in enumerate(zip(days, counts, strict=True)):
        share = _FADING**number * counted
        total, weight = total + share[:, None] * day, weight + share
        highest = np.where(counted[:, None], np.maximum(highest, day), highest)
    mean = total / np.maximum(weight, 1e-9)[:, None]
    highest = np.where(counts[0][:, None], highest, 0.0)
    return np.stack([days[0], mean, highest, days[6]], axis=1)


# --- how this workload usually moves ---------------------------------------------------------------------------------


class Habits(NamedTuple):
    moves: Floats  # volatility, and how often growth exceeds each threshold
    levels: Floats  # highest, lowest and mean of hours, a day and a week


WEEK_HIGH, WEEK_LOW = 2, 5  # among the levels of habits


def blocks_of(minutes: Floats, lead: int) -> Floats:
    """Return a row for each half-hour of whole half-hours of one workload: sums, counts and extremes of its minutes.

    A minute's growth is known only when its window is over, so every minute is counted that much later.
    """
    later, shape = lead + KEEP_MINUTES, (-1, BLOCK)
    moved = np.concatenate([np.zeros(5), np.abs(minutes[5:] - minutes[:-5])])
    windows = sliding_window_view(minutes, later + 1)
    rows = [moved]
    for highest in (windows[:, lead : lead + 2].max(axis=1), windows[:, 1:].max(axis=1)):
        grown = np.concatenate([np.zeros(later), highest - windows[:, 0]])
        rows += [(grown > threshold).astype(np.float64) for threshold in THRESHOLDS]
    sums = [row.reshape(shape).sum(axis=1) for row in (*rows, minutes)]
    halves = minutes.reshape(shape)
    return np.stack([*sums, halves.max(axis=1), halves.min(axis=1)], axis=1)


def habits(blocks: Floats, ends: Ints) -> Habits:
    """Return the habits as known after `ends` half-hours; where there are too few, the first stands for the others."""
    padded = np.concatenate([np.repeat(blocks[:1], _WIDTHS[-1], axis=0), blocks])
    sums = np.concatenate([np.zeros((1, blocks.shape[1])), np.cumsum(padded, axis=0)])
    at = ends + _WIDTHS[-1]

    def mean(column: int, width: int) -> Floats:
        share: Floats = (sums[at, column] - sums[at - width, column]) / (width * BLOCK)
        return share

    def extreme(column: int, width: int) -> Floats:
        windows = sliding_window_view(padded[:, column], width)[at - width]
        found: Floats = windows.max(axis=1) if column == len(padded[0]) - 2 else windows.min(axis=1)
        return found

    count = 2 * len(THRESHOLDS)
    moves = [np.log(mean(0, width) + 0.005) + 2.5 for width in (2, *_WIDTHS)]
    moves += [
        0.5 * np.log(mean(column, width) + 0.002) + 2.5 for column in range(1, count + 1) for width in _WIDTHS[1:]
    ]
    highest, lowest = ([extreme(count + 2 + which, width) for width in _WIDTHS] for which in (0, 1))
    means = [mean(count + 1, width) for width in _WIDTHS]
    return Habits(np.stack(moves, axis=1), np.stack([*highest, *lowest, *means], axis=1))


# --- all of them -----------------------------------------------------------------------------------------------------


def features(
    samples: Floats, summary: Floats, base: Base, season: Seasonal, habit: Habits, startups_s: Floats
) -> Floats:
    """(rows, features) for one moment of each row: every level relative to the present one."""
    level = base.level[:, None]
    lags = [samples[:, -lag] for lag in _LAGS]
    newest = np.stack([*lags, samples[:, -4:].sum(axis=1) / 4.0], axis=1)
    noise = summary[:, -1:] + 3.5
    rest = np.stack([season.days / 7.0, np.log(startups_s / 180.0)], axis=1)
    parts = [newest - level, summary[:, :-1] - level, level - 3.0, noise, season.growth, season.levels - level]
    together = np.concatenate([*parts, habit.moves, habit.levels - level, rest], axis=1)
    return np.clip(together, -4.0, 4.0, out=together)
