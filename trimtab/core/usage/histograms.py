"""The histograms of usage: samples of every container of every pod, kept by container of a workload, all batched.

Containers of one name in all pods of a workload share one row of each bank. Samples that are not newer than the last,
negative or not finite are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import nan
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trimtab.core.usage import bucket_edges, peaks
from trimtab.core.usage.bank import Bank
from trimtab.core.usage.bucket_edges import Indices
from trimtab.core.usage.peaks import SourceSamples
from trimtab.core.usage.settings import HistogramSettings
from trimtab.series import Floats


class ContainerSample(NamedTuple):
    """What one container used; NaN where that resource was not measured."""

    workload: str
    pod: str
    container: str
    at: float
    cpu_cores: float = nan
    memory_bytes: float = nan


# One container of a workload; `carried` is a peak from before a restart, `watched_since` the end of the last hole of
# memory, `unseen_s` how long all holes of CPU were together, `oom_need` what would have survived the OOM kills.
_TIMES = ("created_at", "cpu_first", "cpu_last", "memory_last", "watched_since", "oom_at", "carried_at")
_AMOUNTS = ("carried_peak", "oom_need")
ROW = np.dtype([("count", np.int64), ("unseen_s", float)] + [(name, float) for name in (*_AMOUNTS, *_TIMES)])


class UsageHistograms:
    """Two banks, and what is known of each row and of each source (a container of a pod)."""

    def __init__(self, settings: HistogramSettings | None = None) -> None:
        self.settings = settings or HistogramSettings()
        self.cpu = Bank(bucket_edges.CPU, 0, self.settings.half_life_s)
        self.memory = Bank(bucket_edges.MEMORY, 0, self.settings.half_life_s)
        self.rows: NDArray[np.void] = np.zeros(0, ROW)
        self.highest: NDArray[np.void] = np.zeros(0, peaks.HIGHEST)
        self.sources = peaks.blank(np.zeros(0, dtype=np.intp))
        self._row_of: dict[tuple[str, str], int] = {}
        self._source_of: dict[tuple[str, str, str], int] = {}

    def row(self, workload: str, container: str) -> int | None:
        """Where a container's histograms are; None when it has never been seen."""
        return self._row_of.get((workload, container))

    def ensure_row(self, workload: str, container: str, at: float) -> int:
        """The same, made if need be."""
        return self._rows([(workload, container)], at)[0]

    def ensure_sources(self, keys: Sequence[tuple[str, str, str]], at: float) -> Indices:
        """Where containers of pods are (workload, pod, container), made if need be."""
        new = [key for key in dict.fromkeys(keys) if key not in self._source_of]
        if new:
            rows = np.array(self._rows([(workload, container) for workload, _, container in new], at))
            self._source_of |= {key: len(self.sources) + place for place, key in enumerate(new)}
            self.sources = np.concatenate([self.sources, peaks.blank(rows)])
        return np.array([self._source_of[key] for key in keys], dtype=np.intp)

    def keys(self) -> list[tuple[str, str]]:
        """(workload, container) of each row, in order."""
        return list(self._row_of)

    def source_keys(self) -> list[tuple[str, str, str]]:
        """(workload, pod, container) of each source, in order."""
        return list(self._source_of)

    def observe(self, samples: Sequence[ContainerSample]) -> None:
        """Samples of any number of containers, in any order."""
        if not samples:
            return
        keys = [sample[:3] for sample in samples]
        which = self.ensure_sources(keys, min(sample.at for sample in samples))
        numbers = np.array([sample[3:] for sample in samples])
        for turn in _turns(which, numbers[:, 0]):
            times, cores, sizes = numbers[turn].T
            self._observe_cpu(SourceSamples(which[turn], cores, times))
            self._observe_memory(SourceSamples(which[turn], sizes, times))

    def observe_oom(self, workload: str, pod: str, container: str, at: float, request_bytes: float) -> bool:
        """Note an OOM kill; False when it is too old to be a sample. What it taught counts for the whole history."""
        which = self.ensure_sources([(workload, pod, container)], at)
        source = self.sources[which[0]]
        need, row = peaks.oom_need_bytes(source, request_bytes, self.settings), self.rows[source["row"]]
        row["oom_need"] = np.fmax(need, row["oom_need"] if row["oom_at"] > at - self.settings.history_s else nan)
        row["oom_at"] = np.fmax(row["oom_at"], at)
        if peaks.oom_too_old(source, at, self.settings.memory_window_s):
            return False
        self._observe_memory(SourceSamples(which, np.array([need]), np.array([at])), oom=True)
        return True

    def knows_oom(self, workload: str, container: str, at: float) -> bool:
        """Whether this OOM kill, or a later one, was noted already."""
        row = self.row(workload, container)
        return row is not None and bool(self.rows["oom_at"][row] >= at)

    def memory_peaks(self, at: float) -> Floats:
        """The working set's peak of at least the last window; NaN where that was not watched without a hole."""
        window_s, rows = self.settings.memory_window_s, self.rows
        recent = self.sources[self.sources["memory_at"] >= at - window_s]
        highest = np.where(rows["carried_at"] >= at - window_s, rows["carried_peak"], nan)
        np.fmax.at(highest, recent["row"], np.maximum(recent["high"], recent["high_before"]))
        return np.where(at - rows["watched_since"] >= window_s, highest, nan)

    def highest_working_sets(self, at: float) -> Floats:
        """The highest of the whole history (8 days), which has every weekly peak; NaN where none was seen."""
        return peaks.highest_since(self.highest, at - self.settings.history_s, self.settings.memory_window_s)

    def forget(self, at: float) -> None:
        """Drop containers unseen for the whole history, and pods that are long gone."""
        keep = np.flatnonzero(~self.expired(at))
        renumbered = np.full(len(self.rows), -1, dtype=np.intp)
        renumbered[keep] = np.arange(len(keep))
        self.rows, self.highest = self.rows[keep], self.highest[keep]
        self.cpu.keep(keep)
        self.memory.keep(keep)
        self._row_of = {key: int(renumbered[old]) for key, old in self._row_of.items() if renumbered[old] >= 0}
        self._forget_sources(at, renumbered)

    def expired(self, at: float) -> NDArray[np.bool_]:
        """Rows whose last CPU sample, or whose creation where there is none, is older than the history."""
        last: Floats = np.fmax(self.rows["cpu_last"], self.rows["created_at"])
        return last + self.settings.history_s <= at

    def _forget_sources(self, at: float, renumbered: Indices) -> None:
        last = np.fmax(self.sources["cpu_at"], self.sources["memory_at"])
        alive = (renumbered[self.sources["row"]] >= 0) & (last > at - 2 * self.settings.memory_window_s)
        new_place = np.cumsum(alive) - 1
        self._source_of = {key: int(new_place[old]) for key, old in self._source_of.items() if alive[old]}
        self.sources = self.sources[alive]
        self.sources["row"] = renumbered[self.sources["row"]]

    def _observe_cpu(self, new: SourceSamples) -> None:
        which, values, times = new.only(~(new.times <= self.sources["cpu_at"][new.which]))
        self.sources["cpu_at"][which] = times
        rows = self.sources["row"][which]
        self.cpu.add(rows, values, self.settings.cpu_weight, times)
        self._note_holes(rows, times)
        np.fmin.at(self.rows["cpu_first"], rows, times)
        np.fmax.at(self.rows["cpu_last"], rows, times)
        np.add.at(self.rows["count"], rows, 1)

    def _note_holes(self, rows: Indices, times: Floats) -> None:
        """A silence that was too long to count as seen: nobody asked for its usage, or nobody answered."""
        next_at = np.full(len(self.rows), np.inf)
        np.fmin.at(next_at, rows, times)
        silent_s = next_at - self.rows["cpu_last"]
        holes = np.isfinite(next_at) & (silent_s > self.settings.fresh_s)
        self.rows["unseen_s"][holes] += silent_s[holes]

    def _observe_memory(self, new: SourceSamples, oom: bool = False) -> None:
        gone, come = peaks.record(self.sources, new, self.settings.memory_window_s, oom)
        self.memory.subtract(self.sources["row"][gone.which], gone.values, 1.0, gone.times)
        self.memory.add(self.sources["row"][come.which], come.values, 1.0, come.times)
        if not oom:
            seen = new.only(True)
            rows = self.sources["row"][seen.which]
            self._watch(rows, seen.times)
            peaks.note_highest(self.highest, rows, seen.values, seen.times, self.settings.memory_window_s)

    def _watch(self, rows: Indices, times: Floats) -> None:
        """A watch without holes: it starts again after a silence."""
        last = self.rows["memory_last"][rows]
        holes = ~(times - last <= self.settings.fresh_s)
        self.rows["watched_since"][rows[holes]] = times[holes]
        np.fmax.at(self.rows["memory_last"], rows, times)

    def _rows(self, keys: Sequence[tuple[str, str]], at: float) -> list[int]:
        new = [key for key in dict.fromkeys(keys) if key not in self._row_of]
        if new:
            self._row_of |= {key: len(self.rows) + place for place, key in enumerate(new)}
            extra = np.zeros(len(new), ROW)
            for name in (*_TIMES, *_AMOUNTS):
                extra[name] = nan
            extra["created_at"] = at
            self.rows = np.concatenate([self.rows, extra])
            more = np.zeros(len(new), peaks.HIGHEST)
            more["window"] = nan
            self.highest = np.concatenate([self.highest, more])
            self.cpu.resize(len(self.rows))
            self.memory.resize(len(self.rows))
        return [self._row_of[key] for key in keys]


def _turns(which: Indices, times: Floats) -> Iterator[Indices]:
    """Split samples so that each source comes once in a turn, in the order of time."""
    order = np.lexsort((times, which))
    starts = np.append(True, np.diff(which[order]) != 0)
    turn = np.arange(len(order)) - np.maximum.accumulate(np.where(starts, np.arange(len(order)), 0))
    by_turn = np.argsort(turn, kind="stable")
    yield from np.split(order[by_turn], np.flatnonzero(np.diff(turn[by_turn])) + 1)
