"""Traces become lessons: what a forecaster could see at a moment, and into which bins growth fell afterwards.

Traces are read by a memoryless hold: each step reads its source anew with probability step / interval, so that nothing
can be learned from the position within an interval. Peaks are drawn around 32 pods, so that no size is special.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.parquet as parquet

from trimtab.core.forecast.learned import features as seen
from trimtab.core.forecast.learned.features import BLOCK, KEEP_MINUTES, OFFSET_PODS
from trimtab.core.forecast.learned.model import minute_means, newest_places
from trimtab.core.forecast.learned.net import bins_of
from trimtab.core.forecast.learned.study import inputs, past_of
from trimtab.series import Floats, Series
from trimtab.sim.grid import DAY_STEPS, MEAN_STEPS, STEP_S
from trimtab.sim.sliding_windows import delayed, forward_max, trailing_mean

STARTUP_STEPS = (2, 4, 8, 18, 40)
TICKS = (1, 1, 2)  # steps from one to the next
REPEATED = 0.25  # so many more lessons of loads of which one day comes again
VIEWS, VIEW_SHARES = (MEAN_STEPS, 1), (0.75, 0.25)  # steps that a metric is the mean of
LEFT_OUT = ("alibaba", "lora", "uk_backbone")  # for research only, or without a licence for the data
SOURCES = (("google",), ("bitbrains",), ("azure",), ("svc_ms",))  # the folds of the cross-validation; the rest is one


class Lessons(NamedTuple):
    features: np.ndarray  # (rows, features), half precision
    outcomes: np.ndarray  # (rows, 2): bins
    weights: np.ndarray  # the load that was at stake
    folds: np.ndarray


def lessons_of(folder: Path, seed: int) -> Lessons:
    draw = np.random.default_rng(seed)
    parts = []
    for name, trace, rows, steps in _plan(folder, draw):
        load = _load(trace, draw)
        if load is not None:
            parts += [_lessons(load, each, rows, fold_of(name), draw) for each in steps]
            again, few = _repeated(load, draw), max(1, round(REPEATED * rows))
            parts.append(_lessons(again, int(draw.choice(STARTUP_STEPS)), few, fold_of(name), draw))
    return Lessons(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def fold_of(name: str) -> int:
    """Traces of one source are in one fold: a model is judged on sources it has never seen."""
    return next((index for index, words in enumerate(SOURCES) if any(w in name for w in words)), len(SOURCES))


def _plan(folder: Path, draw: np.random.Generator) -> Iterator[tuple[str, Series, int, tuple[int, ...]]]:
    """Name, trace, lessons for each start-up time, start-up times: single series get several, members of fleets one."""
    for file in sorted(folder.glob("*.parquet")):
        if any(word in file.stem for word in LEFT_OUT):
            continue
        table = parquet.read_table(file)
        if "series" not in table.column_names:
            trace = _series(table)
            if np.median(np.diff(trace.times)) <= 300:
                days = (trace.times[-1] - trace.times[0]) / 86400
                native = np.median(np.diff(trace.times)) <= 60
                rows = int((12000 if native else 4500) * min(1.0, days / 20))
                yield file.stem, trace, rows, (2, 8, 40, int(draw.choice([4, 18])))
        elif "_cpu_" in file.stem:
            names = table["series"].combine_chunks().cast("string").to_numpy(zero_copy_only=False)
            whole, cuts = _series(table, ordered=False), np.flatnonzero(names[1:] != names[:-1]) + 1
            for times, values in zip(np.split(whole[0], cuts), np.split(whole[1], cuts), strict=True):
                rows = 3000 if "azure" in file.stem else 1500
                yield file.stem, Series(times, values), rows, (int(draw.choice(STARTUP_STEPS)),)


def _series(table, ordered: bool = True):
    times = table["timestamp"].to_numpy().astype(np.float64)
    values = table["value"].to_numpy().astype(np.float64)
    return Series(times, values) if ordered else (times, values)


def _load(trace: Series, draw: np.random.Generator) -> Floats | None:
    interval_s = max(float(STEP_S), float(np.median(np.diff(trace.times))))
    steps = int((trace.times[-1] + interval_s - trace.times[0]) // STEP_S)
    if steps < 3 * DAY_STEPS:
        return None
    at = np.searchsorted(trace.times, trace.times[0] + STEP_S * np.arange(steps), side="right") - 1
    if interval_s > 60:
        anew = draw.random(steps) < STEP_S / interval_s
        anew[0] = True
        at = at[np.maximum.accumulate(np.where(anew, np.arange(steps), 0))]
    values = np.maximum(trace.values[at], 0.0)
    peak = float(np.quantile(values, 0.995)) or float(values.max())
    if peak <= 0:
        return None
    pods = 32.0 * np.exp(draw.normal(0.0, 0.35)) / peak
    noisy: Floats = np.maximum(values * pods * (1.0 + 0.03 * draw.standard_normal(steps)), 0.0)
    return noisy


def _repeated(load: Floats, draw: np.random.Generator) -> Floats:
    """One of its days again and again, each a little larger or smaller, earlier or later: loads of some services."""
    day = int(draw.integers(len(load) // DAY_STEPS))
    profile = load[day * DAY_STEPS : (day + 1) * DAY_STEPS]
    days = int(draw.integers(3, 12))
    rolled = [np.roll(profile, int(draw.integers(-8, 9))) * np.exp(draw.normal(0.0, 0.05)) for _ in range(days)]
    noise = 1.0 + 0.03 * draw.standard_normal(days * DAY_STEPS)
    return np.maximum(np.concatenate(rolled) * noise, 0.0)


def _lessons(load: Floats, startup: int, count: int, fold: int, draw: np.random.Generator) -> tuple[np.ndarray, ...]:
    """What an operator sees of a load at some of its ticks, and what came of it.

    Most see the mean of a minute, some the newest 15 s; both one step late, at ticks of 15 s or 30 s.
    """
    mean_steps = int(draw.choice(VIEWS, p=VIEW_SHARES))
    shown = delayed(trailing_mean(load, mean_steps), 1)
    every = int(draw.choice(TICKS))
    times = STEP_S * np.arange(1, len(load) + 1, every, dtype=np.float64)
    observed = shown[::every]
    ends = (times // 60.0).astype(np.int64)
    past = past_of(minute_means(ends, observed), int(ends[0]), 1.0)
    assert past is not None
    blocks = seen.blocks_of(past.minutes[: len(past.minutes) // BLOCK * BLOCK], seen.lead_minutes(startup * STEP_S))
    last = (len(load) - startup - 70) // every
    rows = np.sort(draw.integers(DAY_STEPS // every, last, count))
    samples = seen.logs(observed)[newest_places(times, rows)]
    features, base = inputs(past, blocks, past.first // BLOCK, ends[rows] - past.first, startup * STEP_S, samples)
    steps = rows * every
    growth = outcomes(load, startup)[steps] - base.level[:, None]
    weight = np.minimum((load[steps] + OFFSET_PODS) / 10.0, 5.0)
    return features.astype(np.float16), bins_of(growth).astype(np.int8), weight, np.full(count, fold, np.int8)


def outcomes(load: Floats, startup: int) -> Floats:
    """(steps, 2): the highest load of the minute after a pod serves, and of all until one could be back, as logs."""
    logs = seen.logs(load)
    start = np.roll(forward_max(logs, MEAN_STEPS - 1), -(1 + startup))
    keep = np.roll(forward_max(logs, startup + KEEP_MINUTES * MEAN_STEPS), -1)
    return np.stack([start, keep], axis=1)
