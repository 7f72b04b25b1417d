"""One interface for past load, whoever remembers it: ask for a selection, get Frames page by page.

Rows are named namespace/Kind/name, with /container for containers and /container/pod for pods. A Frame covers
[start, end) on a grid whose times are multiples of step_s; NaN is a hole.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from typing import Literal, Protocol

import msgspec
import numpy as np

from trimtab.errors import InvalidInput, NotEnoughData
from trimtab.series import Frame

Metric = Literal["cpu", "memory"]  # cores used; bytes of the working set
Level = Literal["workload", "container", "pod"]  # sum over pods; largest pod; each container of each pod


class Selection(msgspec.Struct, frozen=True):
    """What is asked for; no namespaces means all of them, no workloads (namespace/Kind/name) all of those."""

    metric: Metric
    level: Level = "workload"
    namespaces: tuple[str, ...] = ()
    workloads: frozenset[str] = frozenset()


class HistorySource(Protocol):
    """Anything that remembers usage. Pages keep memory flat: analyse one, drop it, take the next."""

    def pages(self, selection: Selection, start: float, end: float, step_s: float) -> AsyncIterator[Frame]: ...


class TimeGrid(msgspec.Struct, frozen=True):
    """The grid of an answer: `steps` points from `start` on, aligned to multiples of the step."""

    start: float
    step_s: float
    steps: int

    @property
    def end(self) -> float:
        return self.start + self.step_s * self.steps

    @property
    def last(self) -> float:
        return self.end - self.step_s


def time_grid(start: float, end: float, step_s: float) -> TimeGrid:
    if not step_s > 0:
        raise InvalidInput("step", step_s, "the step must be positive")
    first, after = math.ceil(start / step_s), math.ceil(end / step_s)
    if after <= first:
        raise InvalidInput(
            "time range", f"{start:.0f} to {end:.0f}", "its end must come a step or more after its start"
        )
    return TimeGrid(first * step_s, step_s, after - first)


async def fetch(source: HistorySource, selection: Selection, start: float, end: float, step_s: float) -> Frame:
    """All pages as one Frame, for who has the memory: rows x steps x 8 bytes."""
    frames = [frame async for frame in source.pages(selection, start, end, step_s)]
    if not frames:
        raise NotEnoughData(f"no {selection.metric} history: check the namespaces and the time range")
    names = tuple(name for frame in frames for name in frame.names)
    return Frame(names, frames[0].start, frames[0].step_s, np.concatenate([frame.values for frame in frames]))
