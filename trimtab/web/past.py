"""The time a journal does not reach, from the operator's own metrics in Prometheus: a change of leader is no hole.

Queries are few and bounded: one per week of the past, of one workload, by the minute; a week that is over is kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from math import ceil, inf
from time import time

import numpy as np

from trimtab.errors import TrimtabError
from trimtab.history.query_pages import read_row
from trimtab.history.source import TimeGrid
from trimtab.journal import DAY_S, ObjectName
from trimtab.minutes import MINUTE_S
from trimtab.series import Floats
from trimtab.web.packing import Column, PageTable
from trimtab.web.sources import Found, PageSource, days_of, name_of
from trimtab.wire.access import Access
from trimtab.wire.prometheus import Prometheus, RangeSeries

WEEK_S = 7 * DAY_S  # 10,080 minutes: Prometheus answers at most 11,000 points
FRESH_S = 600.0
MOST_WEEKS = 100  # kept, of all workloads that were looked at
METRICS = {
    "trimtab_load": "load",
    "trimtab_capacity": "capacity",
    "trimtab_current_replicas": "replicas",
    "trimtab_desired_replicas": "planned",
    "trimtab_ready_replicas": "ready",
    "trimtab_bridge_factor": "bridge",
}
Curves = dict[str, Floats]  # by column


class PastSource:
    """Another source, whose workloads are filled up; what Prometheus cannot say stays a hole."""

    def __init__(self, source: PageSource, prometheus: Access) -> None:
        self.source, self.prometheus = source, prometheus
        self._weeks: dict[tuple[ObjectName, float], tuple[float, Curves]] = {}  # with when it was asked

    def version(self) -> float:
        return self.source.version()

    def answer(self, question: str, query: Mapping[str, str]) -> Found:
        found = self.source.answer(question, query)
        return self._filled(found, query) if question == "workload" and isinstance(found, PageTable) else found

    def _filled(self, known: PageTable, query: Mapping[str, str]) -> PageTable:
        """Nothing that the journal knows is changed, only what it does not know is added."""
        times = known.columns["at"]
        end = float(times[-1]) + MINUTE_S if len(times) else time()
        first = end - ceil(days_of(query) * DAY_S / MINUTE_S) * MINUTE_S
        try:
            past = self._past(name_of(query), TimeGrid(first, MINUTE_S, round((end - first) / MINUTE_S)))
        except TrimtabError as error:
            return known._replace(about={**known.about, "past": str(error)})
        return known._replace(columns=_joined(known.columns, past, first, float(times[0]) if len(times) else end))

    def _past(self, name: ObjectName, span: TimeGrid) -> Curves:
        """By whole weeks, so that the same ones are asked once."""
        found = {column: np.full(span.steps, np.nan) for column in METRICS.values()}
        week = span.start // WEEK_S * WEEK_S
        while week < span.end:
            for column, values in self._week(name, week).items():
                _put(values, week, found[column], span.start)
            week += WEEK_S
        return found

    def _week(self, name: ObjectName, start: float) -> Curves:
        """What was asked a moment ago is not asked again; the newest minutes are in the journal anyway."""
        asked_at, found = self._weeks.get((name, start), (-inf, {}))
        if asked_at < start + WEEK_S and time() - asked_at > FRESH_S:
            found = asyncio.run(self._ask(name, start))
            if len(self._weeks) >= MOST_WEEKS:
                self._weeks.pop(next(iter(self._weeks)))
            self._weeks[name, start] = time(), found
        return found

    async def _ask(self, name: ObjectName, start: float) -> Curves:
        grid = TimeGrid(start, MINUTE_S, round(WEEK_S / MINUTE_S))
        async with Prometheus(self.prometheus) as prometheus:
            rows = await prometheus.query_range(expression(name), start, start + WEEK_S - MINUTE_S, MINUTE_S)
        return {METRICS[row.metric["__name__"]]: _curve(row, grid) for row in rows}


def expression(name: ObjectName) -> str:
    """One series per metric, whichever pod told it; Prometheus may have put our namespace label aside."""
    metrics = "|".join(METRICS)

    def selected(namespace: str) -> str:
        labels = {"kind": name.kind, namespace: name.namespace, "name": name.name}
        return f'{{__name__=~"{metrics}",' + ",".join(f"{key}={_quoted(text)}" for key, text in labels.items()) + "}"

    return f"max by (__name__) ({selected('namespace')} or {selected('exported_namespace')})"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return f'"{escaped}"'


def _curve(row: RangeSeries, grid: TimeGrid) -> Floats:
    values = np.full(grid.steps, np.nan)
    read_row(bytes(row.values), grid, values)
    return values


def _put(values: Floats, start: float, into: Floats, into_start: float) -> None:
    """The part of a curve by the minute that lies in another."""
    shift = round((start - into_start) / MINUTE_S)
    first, last = max(0, shift), min(len(into), shift + len(values))
    if first < last:
        into[first:last] = values[first - shift : last - shift]


def _joined(columns: Mapping[str, Column], past: Curves, first: float, start: float) -> dict[str, Column]:
    """One grid from the first minute that either of them knows."""
    known = np.flatnonzero(np.isfinite(past["load"]) | np.isfinite(past["replicas"]))
    begin = min(start, first + known[0] * MINUTE_S) if len(known) else start
    before = round((start - begin) / MINUTE_S)
    joined: dict[str, Column] = {}
    for column, values in columns.items():
        whole = np.concatenate((np.full(before, np.nan), values.astype(np.float64)))
        if column in past:
            old = np.full(len(whole), np.nan)
            _put(past[column], first, old, begin)
            whole = np.where(np.isnan(whole), old, whole)
        joined[column] = whole if values.dtype == np.float64 else whole.astype(np.float32)
    return joined | {"at": begin + MINUTE_S * np.arange(len(joined["at"]), dtype=np.float64)}
