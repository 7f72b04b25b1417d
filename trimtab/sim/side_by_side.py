"""Without a compiler: many programs on one demand, all stepped at once as columns of numpy arrays.

The same arithmetic as `fast.run_into`, column by column; a test holds every column equal to it. Rules that a column
cannot follow (document 002's factors and cooldowns) are left to the plain loop, one program after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimtab.core.replica_calculator import MAX_REPLICAS, in_thousandths
from trimtab.series import Floats
from trimtab.sim.busy_columns import BusyColumns
from trimtab.sim.busy_pods import NOBODY, PodsAtWork
from trimtab.sim.program import (
    BETWEEN,
    BY_SHARE,
    BY_TOTAL,
    DISABLED,
    FARTHEST,
    HIGHEST,
    RATE,
    RATE_WIDTH,
    UP_LIMIT,
    Program,
)
from trimtab.sim.score import Counts, Days, ready_pods, violates_without_backlog

_BY_COLUMN = (BETWEEN, HIGHEST, RATE, UP_LIMIT)
_HAIR = 1e-9


def alike(programs: Sequence[Program]) -> list[list[int]]:
    """Which can be stepped together: the same rules in the same order, rates, forecast and schedules."""
    groups: dict[Any, list[int]] = {}
    for number, program in enumerate(programs):
        codes = program.rules[:, 0]
        together = program.signal[0] in (BY_TOTAL, BY_SHARE) and np.isin(codes, _BY_COLUMN).all()
        rates = program.rules[np.isin(codes, (RATE, UP_LIMIT))]
        kind, count_old = program.signal[0], program.signal[6]
        same = (kind, count_old, codes.tobytes(), rates.tobytes(), id(program.ahead), id(program.bounds))
        key = same if together else number
        groups.setdefault(key, []).append(number)
    return list(groups.values())


def run_side_by_side(signal: Floats, programs: Sequence[Program], first_pods: int, pods: PodsAtWork = NOBODY) -> Counts:
    """The billed pods of every step (row) under every program (column); the programs are `alike`."""
    columns = _Columns(signal, programs, first_pods, pods)
    replicas = np.empty((len(signal), len(programs)), dtype=np.int32)
    for step in range(len(signal)):
        replicas[step] = columns.current
        columns.step(step)
    return replicas


class _Columns:
    """The state of all programs at one step."""

    def __init__(self, signal: Floats, programs: Sequence[Program], first_pods: int, pods: PodsAtWork) -> None:
        heads = np.array([program.signal for program in programs])
        self._least, self._most, self._bounds = heads[:, 4], heads[:, 5], programs[0].bounds
        self.current = np.full(len(programs), float(first_pods))
        self._low, self._high = 1.0 - heads[:, 3], 1.0 + heads[:, 2]
        self._busy = BusyColumns(pods, heads[:, 1]) if heads[0, 0] == BY_SHARE else None
        self._set_demand(signal, programs[0].ahead, heads[:, 1])
        rules = np.array([program.rules for program in programs])
        self._rules = [_rule(rules[:, index]) for index in range(rules.shape[1])]

    def _set_demand(self, signal: Floats, ahead: Floats, targets: Floats) -> None:
        """What each different target makes of every step's demand, before any rule."""
        different, self._column = np.unique(targets, return_inverse=True)
        self._targets = np.array([in_thousandths(target) for target in targets.tolist()])
        self._demand = np.array([in_thousandths(value) for value in signal.tolist()])
        rounded = np.array([in_thousandths(target) for target in different.tolist()])
        self._wishes = np.minimum(np.ceil(self._demand[:, None] / rounded), MAX_REPLICAS)
        self._coming = np.minimum(np.ceil(ahead[:, None] / different - _HAIR), MAX_REPLICAS)

    def step(self, step: int) -> None:
        """One decision of every program."""
        current = self.current
        raw = self._wish(step)
        wish = raw if self._busy is None else np.where(np.isnan(raw), current, raw)
        for rule in self._rules:
            wish = rule.settle(wish, current, step)
        least, most = self._bounds[:, step] if self._bounds.shape[1] else (self._least, self._most)
        wanted = np.minimum(np.maximum(np.ceil(wish - _HAIR), least), most)
        if self._busy is not None:  # no sample holds: it wishes for what there is
            unseen = np.isnan(raw)
            wanted, raw = np.where(unseen, current, wanted), np.where(unseen, current, raw)
        if step == 0 or self._bounds.shape[1]:  # fixed bounds hold once they are reached
            outside = (current > most) | (current < least)  # that needs no metrics, and leaves no wish behind
            wanted = np.where(outside, np.minimum(np.maximum(current, least), most), wanted)
            raw = np.where(outside, np.nan, raw)
        for rule in self._rules:
            rule.remember(raw, wanted - current, step)
        self.current = wanted

    def _wish(self, step: int) -> Floats:
        """Before any rule."""
        current = self.current
        if self._busy is not None:
            return self._busy.wish(step, current, self._low, self._high)
        ratio = self._demand[step] / (self._targets * current)
        calm = (ratio >= self._low) & (ratio <= self._high)
        wish: Floats = np.where(calm, current, self._wishes[step][self._column])
        if len(self._coming):  # a forecast may only add
            wish = np.maximum(wish, self._coming[step][self._column])
        return wish


class _Rule:
    """One rule of all programs: what it makes of their wishes, and what it remembers of a step."""

    def settle(self, wish: Floats, current: Floats, step: int) -> Floats:
        raise NotImplementedError

    def remember(self, raw: Floats, change: Floats, step: int) -> None:
        """Nothing, unless it looks back."""


def _rule(rows: Floats) -> _Rule:
    """`rows`: the numbers of one rule, one row per program."""
    code = int(rows[0, 0])
    if code == RATE:
        return _RateRule(rows[0])
    if code == UP_LIMIT:
        return _UpLimitRule(rows[0])
    return _WindowRule(rows, between=code == BETWEEN)


class _UpLimitRule(_Rule):
    def __init__(self, row: Floats) -> None:
        self._factor, self._minimum = row[1], row[2]

    def settle(self, wish: Floats, current: Floats, step: int) -> Floats:
        most: Floats = np.trunc(np.maximum(self._factor * current, self._minimum))
        return np.minimum(wish, most)


class _WindowRule(_Rule):
    """Stabilisation, with `behavior` (`between`) or without: the highest and lowest wishes of the windows."""

    def __init__(self, rows: Floats, between: bool) -> None:
        self._between = between
        self._highs = _windows(rows[:, 1], np.maximum, -np.inf)
        self._lows = _windows(rows[:, 2], np.minimum, np.inf) if between else []

    def settle(self, wish: Floats, current: Floats, step: int) -> Floats:
        high = self._edge(self._highs, wish)
        if not self._between:
            return high
        low = self._edge(self._lows, wish) if self._lows else wish
        return np.minimum(np.maximum(current, low), high)

    def _edge(self, windows: list[tuple[NDArray[np.intp], _SlidingExtreme]], wish: Floats) -> Floats:
        edge = wish.copy()
        for columns, window in windows:
            edge[columns] = window.pick(edge[columns], window.extreme())
        return edge

    def remember(self, raw: Floats, change: Floats, step: int) -> None:
        whole = np.ceil(raw - _HAIR)
        for columns, window in (*self._highs, *self._lows):
            window.push(whole[columns])


def _windows(steps: Floats, pick: np.ufunc, nothing: float) -> list[tuple[NDArray[np.intp], _SlidingExtreme]]:
    """One window for each different length; columns whose window holds no step have none."""
    lengths = [int(length) for length in np.unique(steps) if length > 0]
    found = [(np.flatnonzero(steps == length), length) for length in lengths]
    return [(columns, _SlidingExtreme(length, len(columns), pick, nothing)) for columns, length in found]


class _SlidingExtreme:
    """The highest (or lowest) of the last `length` values of each column, in constant time per step.

    Values are gathered in blocks; a full block is turned into the extremes of each of its ends.
    """

    def __init__(self, length: int, columns: int, pick: np.ufunc, nothing: float) -> None:
        self.pick, self._nothing, self._filled = pick, nothing, 0
        self._block = np.full((length, columns), nothing)
        self._ends = np.full((length + 1, columns), nothing)  # of the block before: from each of its rows on
        self._since = np.full(columns, nothing)

    def extreme(self) -> Floats:
        found: Floats = self.pick(self._since, self._ends[self._filled])
        return found

    def push(self, values: Floats) -> None:
        """NaN: there is no value."""
        values = np.where(np.isnan(values), self._nothing, values)
        self._block[self._filled] = values
        self.pick(self._since, values, out=self._since)
        self._filled += 1
        if self._filled == len(self._block):
            self._ends[:-1] = self.pick.accumulate(self._block[::-1])[::-1]
            self._since[:] = self._nothing
            self._filled = 0


class _RateRule(_Rule):
    """HPA's rate policies: the same for all programs, while each program has changes of its own."""

    def __init__(self, row: Floats) -> None:
        self._up, self._down = row[1 : 1 + RATE_WIDTH], row[1 + RATE_WIDTH : 1 + 2 * RATE_WIDTH]
        up, down = (side[4 : 4 + 3 * int(side[1]) : 3] for side in (self._up, self._down))
        # What changed in the step before is as old as one step: shorter periods never see a change.
        self._remembers = max([*up, *down], default=0.0) > 1.0
        self._grown, self._shrunk = _Changes(max(up, default=0.0)), _Changes(max(down, default=0.0))

    def settle(self, wish: Floats, current: Floats, step: int) -> Floats:
        starts: dict[float, Floats] = {}
        most = np.maximum(current, self._end(self._up, current, step, starts, up=True))
        least = np.minimum(current, self._end(self._down, current, step, starts, up=False))
        return np.minimum(np.maximum(wish, least), most)

    def _end(self, side: Floats, current: Floats, step: int, starts: dict[float, Floats], up: bool) -> Floats:
        """How far the policies of one direction let the replicas go now."""
        if side[0] == DISABLED:
            return current
        ends = []
        for percent, value, period in side[2 : 2 + 3 * int(side[1])].reshape(-1, 3).tolist():
            if period not in starts:
                starts[period] = self._start(current, step, period)
            share = starts[period] * (1 + value / 100 if up else 1 - value / 100) if percent else None
            if share is None:
                ends.append(starts[period] + (value if up else -value))
            else:
                ends.append(np.ceil(share) if up else np.trunc(share))
        farthest: Floats = (np.maximum if up == (side[0] == FARTHEST) else np.minimum).reduce(ends)
        return farthest

    def _start(self, current: Floats, step: int, period: float) -> Floats:
        if not self._remembers or period <= 1.0:
            return current
        return current - self._grown.within(step, period) + self._shrunk.within(step, period)

    def remember(self, raw: Floats, change: Floats, step: int) -> None:
        if self._remembers:
            self._grown.note(step, np.maximum(change, 0.0))
            self._shrunk.note(step, np.maximum(-change, 0.0))


class _Changes:
    """The pods that one direction added (or removed), in slots that are used again as core uses them."""

    def __init__(self, period: float) -> None:
        self._period = period
        self._times: Floats = np.empty((0, 0))
        self._amounts: Floats = np.empty((0, 0))

    def within(self, step: int, period: float) -> Floats | float:
        if not len(self._times):
            return 0.0
        seen: Floats = np.where(step - self._times < period, self._amounts, 0.0).sum(axis=0)
        return seen

    def note(self, step: int, amounts: Floats) -> None:
        """Each amount in its column's last slot that its own direction cannot see any more, else in a new one."""
        columns = np.flatnonzero(amounts)
        if not len(columns):
            return
        used = ~np.isneginf(self._times[:, columns]) if len(self._times) else np.zeros((0, len(columns)), dtype=bool)
        stale = used & (step - self._times[:, columns] > self._period) if len(used) else used
        slots = np.arange(len(used))[:, None]
        last_stale = np.max(np.where(stale, slots, -1), axis=0, initial=-1)
        place = np.where(last_stale >= 0, last_stale, used.sum(axis=0))
        if place.max() >= len(self._times):
            self._grow(len(amounts))
        self._times[place, columns], self._amounts[place, columns] = step, amounts[columns]

    def _grow(self, columns: int) -> None:
        self._times = np.vstack((self._times.reshape(-1, columns), np.full((1, columns), -np.inf)))
        self._amounts = np.vstack((self._amounts.reshape(-1, columns), np.zeros((1, columns))))


def measure_side_by_side(load: Floats, replicas: Counts, delay_steps: int, day_steps: int, slo: float) -> list[Days]:
    """`score.measure` of every column."""
    ready = np.column_stack([ready_pods(column, delay_steps) for column in replicas.T])
    violating = np.where(_violates(load, ready, slo), load[:, None], 0.0)
    change = np.diff(replicas, axis=0, prepend=replicas[:1])
    edges = np.arange(0, len(load), day_steps)
    arrived = np.add.reduceat(load, edges)
    pods, violated, starts, churn = (
        np.add.reduceat(rows, edges, axis=0, dtype=np.float64).T
        for rows in (replicas, violating, np.maximum(change, 0), np.abs(change))
    )
    never = np.zeros(len(edges))  # without a bridge nothing is resized
    return [Days(*columns, arrived, never) for columns in zip(pods, violated, starts, churn, strict=True)]


def _violates(load: Floats, ready: Counts, slo: float) -> NDArray[np.bool_]:
    found = violates_without_backlog(load[:, None], ready, slo)
    backlog = np.zeros(ready.shape[1])
    over = load > ready.min(axis=1)
    for step in range(len(load)):
        if over[step] or backlog.any():
            backlog = np.minimum(np.maximum(load[step] + backlog - ready[step], 0.0), ready[step])
            found[step] |= backlog > 0.0
    return found
