"""Backfill: whole series of many containers at once into new histograms, which then take the place of poorer rows.

Equal to observing every sample in the order of time: a container of a pod has one memory peak for each window that
starts a whole number of windows after its first sample, and the oldest sample of a row sets the reference of its decay.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from trimtab.core.usage import peaks
from trimtab.core.usage.bank import Bank
from trimtab.core.usage.bucket_edges import Indices
from trimtab.core.usage.histograms import UsageHistograms
from trimtab.series import Floats

Key = tuple[str, str, str]  # workload, pod, container


class ContainerSeries(NamedTuple):
    """One resource of some containers on a common grid: values[i, t] of keys[i] at times[t]; NaN is a hole."""

    keys: Sequence[Key]
    times: Floats
    values: Floats


class FlatSamples(NamedTuple):
    """The samples of a ContainerSeries in the order of time: which key, when, how much."""

    place: Indices
    times: Floats
    values: Floats


def observe_cpu(histograms: UsageHistograms, series: ContainerSeries) -> None:
    """Series of containers of which the histograms have seen no CPU yet."""
    flat = _flat(series)
    which = histograms.ensure_sources(series.keys, float(series.times[0]))[flat.place]
    rows = histograms.sources["row"][which]
    _add(histograms.cpu, rows, flat.values, histograms.settings.cpu_weight, flat.times)
    np.fmax.at(histograms.sources["cpu_at"], which, flat.times)
    _note_holes(histograms, rows, flat.times)
    np.fmin.at(histograms.rows["cpu_first"], rows, flat.times)
    np.fmax.at(histograms.rows["cpu_last"], rows, flat.times)
    np.add.at(histograms.rows["count"], rows, 1)


def observe_memory(histograms: UsageHistograms, series: ContainerSeries) -> None:
    """Series of containers of which the histograms have seen no memory yet."""
    flat, window_s = _flat(series), histograms.settings.memory_window_s
    if not len(flat.times):
        return
    which = histograms.ensure_sources(series.keys, float(series.times[0]))
    first = np.full(len(which), np.inf)
    np.fmin.at(first, flat.place, flat.times)
    window = ((flat.times - first[flat.place]) // window_s).astype(np.intp)
    highest = np.full((len(which), int(window.max()) + 1), np.nan)
    np.fmax.at(highest, (flat.place, window), flat.values)
    place, window = np.nonzero(np.isfinite(highest))
    ends = first[place] + (window + 1) * window_s
    order = np.argsort(ends, kind="stable")
    rows = histograms.sources["row"][which]
    _add(histograms.memory, rows[place][order], highest[place, window][order], 1.0, ends[order])
    _leave_windows(histograms, which, first, highest)
    np.fmax.at(histograms.sources["memory_at"], which[flat.place], flat.times)
    _watch(histograms, rows[flat.place], flat.times)
    peaks.note_highest(histograms.highest, rows[flat.place], flat.values, flat.times, window_s)


def adopt(histograms: UsageHistograms, other: UsageHistograms, since: float) -> set[str]:
    """Take rows of other histograms in the place of ours, unless ours were watched longer; whose they are.

    `since` is where the other's past begins. OOM kills that we know of stay known.
    """
    adopted: set[tuple[str, str]] = set()
    for theirs, (workload, container) in enumerate(other.keys()):
        if _watched_s(other, theirs, since) > _watched_s(histograms, histograms.row(workload, container), since):
            _take_row(histograms, histograms.ensure_row(workload, container, since), other, theirs)
            adopted.add((workload, container))
    _take_sources(histograms, other, [key for key in other.source_keys() if (key[0], key[2]) in adopted])
    return {workload for workload, _ in adopted}


def _flat(series: ContainerSeries) -> FlatSamples:
    good = (np.isfinite(series.values) & (series.values >= 0)).T
    step, place = np.nonzero(good)
    return FlatSamples(place, series.times[step], series.values.T[good])


def _add(bank: Bank, rows: Indices, values: Floats, weight: float, times: Floats) -> None:
    """Sorted by time; the oldest of each row first, for its reference."""
    oldest = np.zeros(len(rows), dtype=bool)
    oldest[np.unique(rows, return_index=True)[1]] = True
    for some in (oldest, ~oldest):
        bank.add(rows[some], values[some], weight, times[some])


def _leave_windows(histograms: UsageHistograms, which: Indices, first: Floats, highest: Floats) -> None:
    """Each source as its last sample leaves it, so that the next one goes on in the same window."""
    for source, start, found in zip(which.tolist(), first.tolist(), highest, strict=True):
        windows = np.flatnonzero(np.isfinite(found))
        if len(windows):
            state = histograms.sources[source]
            state["window_end"] = start + (int(windows[-1]) + 1) * histograms.settings.memory_window_s
            state["peak"] = state["high"] = found[windows[-1]]
            state["high_before"] = found[windows[-2]] if len(windows) > 1 else 0.0


def _note_holes(histograms: UsageHistograms, rows: Indices, times: Floats) -> None:
    """Within these series, and between them and what was there before: what another page fills is counted as well."""
    for row in np.unique(rows).tolist():
        known, seen = histograms.rows[row], np.unique(times[rows == row])
        between = (seen[0] - known["cpu_last"], known["cpu_first"] - seen[-1])
        silent_s = np.append(np.diff(seen), between)
        known["unseen_s"] += silent_s[silent_s > histograms.settings.fresh_s].sum()


def _watch(histograms: UsageHistograms, rows: Indices, times: Floats) -> None:
    """Each row has been watched since the end of its last hole."""
    for row in np.unique(rows).tolist():
        seen = np.unique(times[rows == row])
        holes = np.flatnonzero(np.diff(seen) > histograms.settings.fresh_s)
        since = seen[holes[-1] + 1] if len(holes) else seen[0]
        histograms.rows["watched_since"][row] = np.fmax(histograms.rows["watched_since"][row], since)
        histograms.rows["memory_last"][row] = np.fmax(histograms.rows["memory_last"][row], seen[-1])


def _watched_s(histograms: UsageHistograms, row: int | None, since: float) -> float:
    """How much of the time from `since` on was seen; -1 where there is no sample."""
    if row is None or np.isnan(histograms.rows["cpu_last"][row]):
        return -1.0
    known = histograms.rows[row]
    return float(max(0.0, known["cpu_last"] - np.fmax(known["cpu_first"], since) - known["unseen_s"]))


def _take_row(histograms: UsageHistograms, ours: int, other: UsageHistograms, theirs: int) -> None:
    for mine, bank in ((histograms.cpu, other.cpu), (histograms.memory, other.memory)):
        mine.put(ours, bank.weights[theirs], float(bank.totals[theirs]), float(bank.references[theirs]))
    kills = {name: np.fmax(histograms.rows[name][ours], other.rows[name][theirs]) for name in ("oom_at", "oom_need")}
    histograms.rows[ours] = other.rows[theirs]
    histograms.highest[ours] = other.highest[theirs]
    for name, value in kills.items():
        histograms.rows[name][ours] = value
    mine_too = np.flatnonzero(histograms.sources["row"] == ours)
    histograms.sources[mine_too] = peaks.blank(np.full(len(mine_too), ours, dtype=np.intp))


def _take_sources(histograms: UsageHistograms, other: UsageHistograms, keys: Sequence[Key]) -> None:
    if not keys:
        return
    mine, theirs = histograms.ensure_sources(keys, 0.0), other.ensure_sources(keys, 0.0)
    rows = histograms.sources["row"][mine]
    histograms.sources[mine] = other.sources[theirs]
    histograms.sources["row"][mine] = rows
