"""The compiled lane: replays one demand under many simple policies at once, equal to decide() in every step.

The arithmetic is core's own leaves, compiled; only the windows are restated here, as rings over whole steps, and a test
holds them equal to decide(). Candidates run side by side on all cores.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from math import ceil

import numpy as np
from numpy.typing import NDArray

from trimtab.core.bound import clamp
from trimtab.core.propose import by_total_average, whole, within
from trimtab.core.settle.factor import capped_factor, large_enough
from trimtab.core.settle.limit import up_limit
from trimtab.core.settle.rate import end_down, end_up
from trimtab.core.settle.stabilise import into
from trimtab.series import Floats
from trimtab.sim.compiled import compiled, shared
from trimtab.sim.program import (
    BETWEEN,
    BY_TOTAL,
    COOLDOWN,
    HIGHEST,
    MAX_FACTOR,
    MIN_FACTOR,
    RATE,
    RATE_WIDTH,
    ROUND_UP,
    UP_LIMIT,
    Program,
)
from trimtab.sim.score import SLO, Counts, Days, measure_into

shared(within, whole, by_total_average, clamp, into, up_limit, end_up, end_down, capped_factor, large_enough)

Ints = NDArray[np.int64]


def replay(signal: Floats, program: Program, first_pods: int) -> Counts:
    """The billed pods of every step: what is decided at the end of one is billed in the next."""
    replicas = np.empty(len(signal), dtype=np.int32)
    replay_into(signal, program.signal, program.rules, first_pods, replicas)
    return replicas


def sweep(
    load: Floats,
    signal: Floats,
    programs: Sequence[Program],
    first_pods: int,
    delays: Sequence[int],
    day_steps: int,
    slo: float = SLO,
    done: Callable[[], None] = lambda: None,
) -> list[list[Days]]:
    """The days of every program (outer) under every start-up delay (inner)."""

    def one(program: Program) -> list[Days]:
        replicas = replay(signal, program, first_pods)
        tables = [np.zeros((5, -(-len(load) // day_steps))) for _ in delays]
        for table, delay in zip(tables, delays, strict=True):
            measure_into(load, replicas, delay, day_steps, slo, table)
        done()
        return [Days(*table) for table in tables]

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(one, programs))


@compiled
def replay_into(signal: Floats, head: Floats, rules: Floats, first_pods: int, replicas: Counts) -> None:
    """One demand under one program. Times are steps; -1 means never."""
    kind, target, tolerance_up, tolerance_down = int(head[0]), head[1], head[2], head[3]
    least, most = int(head[4]), int(head[5])
    window, up_window, period = spans(rules)
    high_at, high = np.empty(window + 3, dtype=np.int64), np.empty(window + 3, dtype=np.int64)
    low_at, low = np.empty(up_window + 3, dtype=np.int64), np.empty(up_window + 3, dtype=np.int64)
    high_ends, low_ends = np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.int64)
    grown, shrunk = np.zeros(period + 1, dtype=np.int64), np.zeros(period + 1, dtype=np.int64)
    up_at = down_at = -1
    current = first_pods
    if window >= 0:  # a new leader behaves as if the present replicas had just been wished for
        push(high_at, high, high_ends, 0, current, True)
    if up_window >= 0:
        push(low_at, low, low_ends, 0, current, False)
    for t in range(len(signal)):
        replicas[t] = current
        wanted = current
        if current > most or current < least:
            wanted = clamp(current, least, most)
        else:
            if kind == BY_TOTAL:
                wish = float(by_total_average(signal[t], target, tolerance_up, tolerance_down, current))
                ratio = wish / current
            else:
                ratio = (signal[t] / current) / target
                wish = current * ratio
            raw = ceil(wish - 1e-9)
            for index in range(len(rules)):
                rule = rules[index]
                code = int(rule[0])
                if code == BETWEEN:
                    top = bottom = wish
                    if window >= 0 and high_ends[1] > high_ends[0]:
                        expire(high_at, high_ends, t - window)
                        if high_ends[1] > high_ends[0]:
                            top = max(wish, float(high[high_ends[0] % len(high)]))
                    if up_window >= 0:
                        expire(low_at, low_ends, t - up_window)
                        if low_ends[1] > low_ends[0]:
                            bottom = min(wish, float(low[low_ends[0] % len(low)]))
                    settled = into(float(current), bottom, top)
                    if settled != wish:
                        wish, ratio = settled, settled / current
                elif code == RATE:
                    if wish > current and wish > rate_end(rule[1 : 1 + RATE_WIDTH], current, grown, shrunk, t, True):
                        wish = float(rate_end(rule[1 : 1 + RATE_WIDTH], current, grown, shrunk, t, True))
                        ratio = wish / current
                    elif wish < current and wish < rate_end(rule[1 + RATE_WIDTH :], current, grown, shrunk, t, False):
                        wish = float(rate_end(rule[1 + RATE_WIDTH :], current, grown, shrunk, t, False))
                        ratio = wish / current
                elif code == HIGHEST:
                    expire(high_at, high_ends, t - window)
                    if high_ends[1] > high_ends[0] and high[high_ends[0] % len(high)] > wish:
                        wish = float(high[high_ends[0] % len(high)])
                        ratio = wish / current
                elif code == UP_LIMIT:
                    end = up_limit(current, rule[1], rule[2])
                    if wish > end:
                        wish, ratio = float(end), end / current
                elif code == MAX_FACTOR:
                    capped = capped_factor(ratio, rule[1], rule[2])
                    if capped != ratio:
                        wish, ratio = current * capped, capped
                elif code == MIN_FACTOR:
                    if not large_enough(ratio, rule[1], rule[2]):
                        wish, ratio = float(current), 1.0
                elif code == COOLDOWN:
                    up = ratio > 1.0
                    last = max(up_at, down_at) if rule[3] != 0.0 else (up_at if up else down_at)
                    if (wish != current or ratio != 1.0) and last >= 0 and t - last < (rule[1] if up else rule[2]):
                        wish, ratio = float(current), 1.0
                elif code == ROUND_UP:
                    wish = float(ceil(wish - rule[1]))
            if window >= 0:
                push(high_at, high, high_ends, t, raw, True)
                expire(high_at, high_ends, t - window)
            if up_window >= 0:
                push(low_at, low, low_ends, t, raw, False)
                expire(low_at, low_ends, t - up_window)
            wanted = clamp(ceil(wish - 1e-9), least, most)
        added = wanted - current
        if period > 0:
            grown[(t + 1) % (period + 1)] = grown[t % (period + 1)] + max(added, 0)
            shrunk[(t + 1) % (period + 1)] = shrunk[t % (period + 1)] + max(-added, 0)
        if added > 0:
            up_at = t
        elif added < 0:
            down_at = t
        current = wanted


@compiled
def spans(rules: Floats) -> tuple[int, int, int]:
    """How many steps the rules look back: at wishes for down and for up, and at pods added or removed."""
    window = up_window = -1
    period = 0
    for index in range(len(rules)):
        rule = rules[index]
        if int(rule[0]) == HIGHEST:
            window = int(rule[1])
        elif int(rule[0]) == BETWEEN:
            window, up_window = int(rule[1]), int(rule[2])
        elif int(rule[0]) == RATE:
            for side in range(2):
                first = 1 + side * RATE_WIDTH
                for number in range(int(rule[first + 1])):
                    period = max(period, int(rule[first + 4 + 3 * number]))
    return window, up_window, period


@compiled
def push(times: Ints, wishes: Ints, ends: Ints, t: int, wish: int, highest: bool) -> None:
    """Append to the monotone queue whose front is the highest (or lowest) wish of its window."""
    size, back = len(times), ends[1]
    while back > ends[0]:
        last = wishes[(back - 1) % size]
        if (last > wish) if highest else (last < wish):
            break
        back -= 1
    times[back % size], wishes[back % size] = t, wish
    ends[1] = back + 1


@compiled
def expire(times: Ints, ends: Ints, oldest: int) -> None:
    """Forget what has left the window."""
    while ends[1] > ends[0] and times[ends[0] % len(times)] < oldest:
        ends[0] += 1


@compiled
def rate_end(side: Floats, current: int, grown: Ints, shrunk: Ints, t: int, up: bool) -> int:
    """How far the policies of one direction let the replicas go now."""
    if side[0] == 2.0:
        return current
    size = len(grown)
    best, chosen = current, False
    for number in range(int(side[1])):
        percent, value, period = side[2 + 3 * number] != 0.0, int(side[3 + 3 * number]), int(side[4 + 3 * number])
        since = max(t - period + 1, 0)
        added, removed = grown[t % size] - grown[since % size], shrunk[t % size] - shrunk[since % size]
        start = current - added + removed
        end = end_up(percent, value, start) if up else end_down(percent, value, start)
        farther = end > best if up == (side[0] == 0.0) else end < best
        best, chosen = (end if farther or not chosen else best), True
    return max(current, best) if up else min(current, best)


