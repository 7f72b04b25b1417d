"""Memory counts by its peaks: one for each container of a pod and window, stamped with the window's end (VPA).

A higher sample within the window replaces the peak; the first sample after it opens the next window, which starts a
whole number of windows after the one before. An OOM kill counts as max(used + 100 MiB, 1.2 * used), where used is the
larger of the request and the peak of real samples, so that kill after kill does not compound.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trimtab.core.usage.bucket_edges import Indices
from trimtab.core.usage.settings import HistogramSettings
from trimtab.series import Floats

Sources = NDArray[np.void]

# One container of one pod. `high` and `high_before` are the working set's own peaks of this and the last window.
SOURCE = np.dtype(
    [("row", np.intp)]
    + [(name, float) for name in ("cpu_at", "memory_at", "window_end", "peak", "oom_peak", "high", "high_before")]
)


# The highest working set of each of the last windows of one container: `window` is a number since 1970, NaN: none.
KEPT = 16  # windows, more than the eight that are asked for
HIGHEST = np.dtype([("window", float, (KEPT,)), ("bytes", float, (KEPT,))])


def note_highest(highest: Sources, rows: Indices, values: Floats, times: Floats, window_s: float) -> None:
    """Keep the highest working set of each window, over all pods."""
    windows = np.floor(times / window_s)
    slots = windows.astype(np.intp) % KEPT
    opens = ~(highest["window"][rows, slots] >= windows)
    highest["bytes"][rows[opens], slots[opens]] = 0.0
    highest["window"][rows[opens], slots[opens]] = windows[opens]
    present = highest["window"][rows, slots] == windows
    np.maximum.at(highest["bytes"], (rows[present], slots[present]), values[present])


def highest_since(highest: Sources, since: float, window_s: float) -> Floats:
    """The highest working set of each row from `since` on; NaN where nothing was seen."""
    counts = highest["window"] >= np.floor(since / window_s)
    found: Floats = np.where(counts, highest["bytes"], -1.0).max(axis=1, initial=-1.0)
    return np.where(found >= 0.0, found, np.nan)


class SourceSamples(NamedTuple):
    """Values to add to or take from a histogram."""

    which: Indices
    values: Floats
    times: Floats

    def only(self, wanted: NDArray[np.bool_] | bool) -> SourceSamples:
        """The wanted ones that are samples at all: finite, dated and not negative."""
        kept = np.isfinite(self.values) & (self.values >= 0) & np.isfinite(self.times) & wanted
        return SourceSamples(self.which[kept], self.values[kept], self.times[kept])


def blank(rows: Indices) -> Sources:
    """New sources of these rows: nothing seen yet."""
    sources = np.zeros(len(rows), SOURCE)
    sources["row"] = rows
    for name in ("cpu_at", "memory_at", "window_end"):
        sources[name] = np.nan
    return sources


def record(
    sources: Sources, new: SourceSamples, window_s: float, oom: bool = False
) -> tuple[SourceSamples, SourceSamples]:
    """Note one sample for each of some sources; returns the peaks to take back and those to add."""
    which, values, times = new.only(oom | ~(new.times < sources["memory_at"][new.which]))
    was = sources[which]
    ends = np.where(np.isnan(was["window_end"]), times, was["window_end"])
    opens = times >= ends
    old_ends, old_peaks = ends, np.maximum(was["peak"], was["oom_peak"])
    ends = np.where(opens, ends + (np.floor((times - ends) / window_s) + 1) * window_s, ends)
    grows = ~opens & (values > old_peaks)
    _remember(sources, SourceSamples(which, values, times), ends, opens, opens | grows, oom)
    return (
        SourceSamples(which[grows], old_peaks[grows], old_ends[grows]),
        SourceSamples(which[opens | grows], values[opens | grows], ends[opens | grows]),
    )


def oom_need_bytes(source: np.void, request_bytes: float, settings: HistogramSettings) -> float:
    """How much memory would have saved a container that was killed."""
    used = max(request_bytes, float(source["peak"]))
    return max(used + settings.oom_least_bytes, used * settings.oom_ratio)


def oom_too_old(source: np.void, at: float, window_s: float) -> bool:
    """An OOM kill more than a window before the last sample says nothing about now."""
    return bool(at < source["memory_at"] - window_s)


def _remember(
    sources: Sources,
    new: SourceSamples,
    ends: Floats,
    opens: NDArray[np.bool_],
    changed: NDArray[np.bool_],
    oom: bool,
) -> None:
    now = sources[new.which]
    now["memory_at"] = np.fmax(now["memory_at"], new.times)
    now["window_end"] = ends
    now["high_before"] = np.where(opens, now["high"], now["high_before"])
    for name in ("peak", "oom_peak", "high"):
        now[name] = np.where(opens, 0.0, now[name])
    name = "oom_peak" if oom else "peak"
    now[name] = np.where(changed, new.values, now[name])
    if not oom:
        now["high"] = np.maximum(now["high"], new.values)
    sources[new.which] = now
