"""What the learned forecast looks at: logarithms of demand, relative to its present level, so that scale is no matter.

Three kinds, by how often they change. `present`: the newest samples and the last hour. `seasonal`: the same minute of
the last seven days and hours. `habits`: how this workload uses to move, from half-hour summaries of two weeks.

Rows are workloads, `ends` are moments: how many whole minutes are known. The operator asks for one moment of many
workloads, training and the benchmark for many moments of one. Nothing here reads a minute at or after its end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from trimtab.series import Floats

Ints = NDArray[np.int64]

OFFSET_PODS = 1.5  # log(demand + this): below about a pod, differences stop to matter
DAY, HOUR, BLOCK = 1440, 60, 30  # minutes
HISTORY = 14 * DAY
SAMPLES = 24  # newest ones, of any spacing
KEEP_MINUTES = 3  # a pod that is let go is missed for its start-up and this much longer
THRESHOLDS = (0.05, 0.1, 0.2, 0.35, 0.6, 1.0)  # growth that is counted
_WIDTHS = (12, 48, 336)  # half-hours: six hours, a day, a week
_FADING = 0.8  # the weight of a day against the one after it


def logs(demand: Floats) -> Floats:
    """Of demand in pods: what one pod carries at 100 % is 1."""
    return np.log(np.maximum(demand, 0.0) + OFFSET_PODS)


def lead_minutes(startup_s: float) -> int:
    """From now until a pod that is ordered now serves, in whole minutes."""
    return max(1, round(startup_s / 60.0))


# --- the present -----------------------------------------------------------------------------------------------------


class Base(NamedTuple):
    level: Floats  # of the newest samples that do not differ by more than noise
    noise: Floats


def base_of(samples: Floats, most: int = 6) -> Base:
    """The mean of up to so many of the newest samples, stopping at the first that noise does not explain."""
    noise = 1.05 * np.median(np.abs(np.diff(samples, axis=1)), axis=1) + 0.003
    level, count, going = samples[:, -1].copy(), np.ones(len(samples)), np.ones(len(samples), dtype=bool)
    for back in range(2, most + 1):
        sample = samples[:, -back]
        going &= np.abs(sample - level) <= 3.5 * noise * np.sqrt(1.0 + 1.0 / count)
        level = np.where(going, (level * count + sample) / (count + 1.0), level)
        count += going
    return Base(level, noise)


def summary_of(hour: Floats) -> Floats:
    """Of the minutes of the last hour (rows, 60), newest last: means, single ones, the highest and the lowest."""
    means = [hour[:, -width:].mean(axis=1) for width in (2, 5, 20, HOUR)]
    lags = [hour[:, -back] for back in (1, 2, 5, 10, 20, HOUR)]
    highest = [hour[:, -width:].max(axis=1) for width in (5, 20, HOUR)]
    lowest = [hour[:, -width:].min(axis=1) for width in (5, 20, HOUR)]
    return np.stack([*means, *lags, *highest, *lowest], axis=1)


def present(samples: Floats, hour: Floats, base: Base) -> Floats:
    """Samples (rows, 24), newest last, and the summary of the last hour."""
    level = base.level[:, None]
    newest = np.stack([samples[:, -1], samples[:, -4:].mean(axis=1)], axis=1)
    noise = np.log(base.noise)[:, None] + 3.5
    return np.concatenate([newest - level, hour - level, level - 3.0, noise], axis=1)


# --- the same minute of other days and hours -------------------------------------------------------------------------


class Seasonal(NamedTuple):
    growth: Floats  # relative to the level of that moment
    levels: Floats  # to be compared with the level of this one
    days: Floats


def seasonal(minutes: Floats, ends: Ints, lead: int) -> Seasonal:
    """Growth over the lead time, and the levels around it, at the same minute of the last seven days and six hours."""
    return seasonal_of(_taken_from(minutes), ends, lead, _days_behind(ends))


def seasonal_throughout(minutes: Floats, lead: int) -> Seasonal:
    """The same after each minute from none to all of them: each is looked around once, not for every day and hour."""
    first = -int(_around_offsets(lead)[-1])  # around it and before, every minute is taken for the first one
    around = _around(_taken_from(minutes), np.arange(first, minutes.shape[1] + 1), lead)
    ends = np.arange(minutes.shape[1] + 1)
    return _seasonal(lambda moments: around[:, np.maximum(moments, first) - first], ends, _days_behind(ends))


def _taken_from(minutes: Floats) -> Callable[[Ints], Floats]:
    last = minutes.shape[1] - 1
    return lambda places: minutes[:, np.clip(places, 0, last)]


def _days_behind(ends: Ints) -> NDArray[np.bool_]:
    """(days, 1, ends)"""
    return np.stack([ends - day * DAY >= HOUR for day in range(1, 8)])[:, None]


def seasonal_of(take: Callable[[Ints], Floats], ends: Ints, lead: int, known: NDArray[np.bool_]) -> Seasonal:
    """The same of minutes that only `take` can give: those at places (ends, width) of all rows.

    Days (days, rows or 1, ends) that are not known count for nothing.
    """
    return _seasonal(lambda moments: _around(take, moments, lead), ends, known)


def _seasonal(around: Callable[[Ints], Floats], ends: Ints, known: NDArray[np.bool_]) -> Seasonal:
    found = [around(ends - day * DAY) for day in range(1, 8)]
    known = known[..., None]
    days = np.where(known, np.stack(found), 0.0)
    weights = _FADING ** np.arange(7.0)[:, None, None, None] * known
    mean = (weights * days).sum(axis=0) / np.maximum(weights.sum(axis=0), 1e-9)
    highest = np.where(known, np.stack(found), -np.inf).max(axis=0)
    highest = np.where(known[0], highest, 0.0)
    views = np.stack([days[0], mean, highest, days[6]], axis=2)
    hours = np.stack([around(ends - back * HOUR)[..., 1] for back in range(1, 7)], axis=2)
    hours = np.where((ends >= 7 * HOUR)[None, :, None], hours, 0.0)
    growth = np.concatenate(
        [_flat(views[..., :2]), hours.mean(axis=2)[..., None], hours.max(axis=2)[..., None]], axis=2
    )
    count = np.broadcast_to(known.sum(axis=0)[..., 0], days.shape[1:3])
    return Seasonal(growth, _flat(views[..., 2:]), count.astype(np.float64))


def _around(take: Callable[[Ints], Floats], moments: Ints, lead: int) -> Floats:
    """(rows, moments, 4): growth after the lead time, the highest until a bit later, the highest level, the level."""
    window = take(moments[:, None] + _around_offsets(lead))
    level = window[..., 1:5].mean(axis=-1)
    later = window[..., 3 + lead : 5 + lead].mean(axis=-1)
    highest = window[..., 3 : 3 + lead + KEEP_MINUTES].max(axis=-1)
    return np.stack([later - level, highest - level, window.max(axis=-1), level], axis=-1)


def _around_offsets(lead: int) -> Ints:
    return np.arange(-3, lead + KEEP_MINUTES + 3)


def looked_at(lead: int) -> Ints:
    """All minutes that a forecast at minute 0 looks at, ascending: the last hour, and around it the days and hours."""
    moments = -np.concatenate([DAY * np.arange(1, 8), HOUR * np.arange(1, 7)])
    around = (moments[:, None] + _around_offsets(lead)).ravel()
    places: Ints = np.unique(np.concatenate([around[around < 0], np.arange(-HOUR, 0)]))
    return places


def days_known(present: NDArray[np.bool_], lead: int) -> NDArray[np.bool_]:
    """(days, rows, 1): whether most of the minutes around the same one of each day are there, of those looked at."""
    places, offsets = looked_at(lead), _around_offsets(lead)
    windows = [present[:, np.searchsorted(places, offsets - day * DAY)] for day in range(1, 8)]
    return np.stack([window.mean(axis=1) > 0.5 for window in windows])[..., None]


def _flat(views: Floats) -> Floats:
    return views.reshape(*views.shape[:2], -1)


# --- how this workload uses to move ----------------------------------------------------------------------------------


class Habits(NamedTuple):
    moves: Floats  # volatility, and how often growth exceeds each threshold
    levels: Floats  # highest, lowest and mean of hours, a day and a week


def habits(minutes: Floats, ends: Ints, lead: int) -> Habits:
    """As known after `ends` whole half-hours."""
    blocks = minutes.shape[1] // BLOCK
    whole = minutes[:, : blocks * BLOCK]
    halves = whole.reshape(len(whole), blocks, BLOCK)
    moved = np.pad(np.abs(whole[:, 5:] - whole[:, :-5]), ((0, 0), (5, 0))).reshape(halves.shape).mean(axis=2)
    volatility = [np.log(_last(moved, ends, width).mean(axis=2) + 0.005) + 2.5 for width in (2, *_WIDTHS)]
    rates = [
        0.5 * np.log(_last(exceeded, ends, width).mean(axis=2) + 0.002) + 2.5
        for exceeded in _exceedances(whole, lead, halves.shape)
        for width in _WIDTHS[1:]
    ]
    highest = [_last(halves.max(axis=2), ends, width).max(axis=2) for width in _WIDTHS]
    lowest = [_last(halves.min(axis=2), ends, width).min(axis=2) for width in _WIDTHS]
    means = [_last(halves.mean(axis=2), ends, width).mean(axis=2) for width in _WIDTHS]
    return Habits(np.stack([*volatility, *rates], axis=2), np.stack([*highest, *lowest, *means], axis=2))


def _exceedances(whole: Floats, lead: int, shape: tuple[int, ...]) -> list[Floats]:
    """The share of each half-hour's minutes after which demand grew by more than each threshold, as known at its end.

    A minute's growth is known only when its window is over, so every minute is counted that much later.
    """
    later = lead + KEEP_MINUTES
    windows = sliding_window_view(whole, later + 1, axis=1)
    found = []
    for highest in (windows[..., lead : lead + 2].max(axis=-1), windows[..., 1:].max(axis=-1)):
        grown = highest - windows[..., 0]
        for threshold in THRESHOLDS:
            exceeded = np.pad((grown > threshold).astype(np.float64), ((0, 0), (later, 0)))
            found.append(exceeded.reshape(shape).mean(axis=2))
    return found


def _last(blocks: Floats, ends: Ints, width: int) -> Floats:
    """The last `width` half-hours before each end (rows, ends, width); the first one repeated where there are fewer."""
    window: Floats = blocks[:, np.clip(ends[:, None] + np.arange(-width, 0), 0, blocks.shape[1] - 1)]
    return window


# --- all of them -----------------------------------------------------------------------------------------------------


def features(now: Floats, base: Base, season: Seasonal, habit: Habits, startup_s: float) -> Floats:
    """(rows, features) for one moment of each row: every level relative to the present one."""
    level = base.level[:, None]
    rest = np.stack([season.days / 7.0, np.full(len(level), np.log(startup_s / 180.0))], axis=1)
    parts = [now, season.growth, season.levels - level, habit.moves, habit.levels - level, rest]
    together = np.concatenate(parts, axis=1)
    return np.clip(together, -4.0, 4.0, out=together)
