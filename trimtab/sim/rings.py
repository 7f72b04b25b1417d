"""What compiled rules look back at: wishes and changes of the last steps, as rings.

Plain arrays, not records, and few calls in the loop: compiled code counts references to arrays at every call.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trimtab.series import Floats
from trimtab.sim.compiled import compiled
from trimtab.sim.program import BETWEEN, HIGHEST, RATE, RATE_WIDTH

Ints = NDArray[np.int64]
TIMES, WISHES, ENDS = range(3)  # rows of a queue; its ends: front, back, window in steps (-1: nobody looks back)
CHANGES, COUNT = 1, 2  # rows of the events of one direction beside their times: pods added or removed; how many


@compiled
def empty_past(rules: Floats) -> tuple[Ints, Ints, Ints, Ints]:
    """Windows as long as the rules look back; a run begins without any wish or act remembered."""
    window = up_window = -1
    for rule in rules:
        if int(rule[0]) == HIGHEST:
            window = int(rule[1])
        elif int(rule[0]) == BETWEEN:
            window, up_window = int(rule[1]), int(rule[2])
    highs, lows = ring(window + 3), ring(up_window + 3)
    highs[ENDS, 2], lows[ENDS, 2] = window, up_window
    grown = ring(int(longest_period(rules, 1)) + 3)
    return highs, lows, grown, ring(int(longest_period(rules, 1 + RATE_WIDTH)) + 3)


@compiled
def longest_period(rules: Floats, first: int) -> float:
    """Of the rate policies of one direction, in steps; their events are remembered for so long."""
    longest = 0.0
    for rule in rules:
        if int(rule[0]) == RATE:
            for number in range(int(rule[first + 1])):
                longest = max(longest, rule[first + 4 + 3 * number])
    return longest


@compiled
def ring(size: int) -> Ints:
    """Three rows with room for `size` numbers: a power of two, so that a position is one cheap mask."""
    room = 4
    while room < size:
        room *= 2
    return np.zeros((3, room), dtype=np.int64)


@compiled
def push(queue: Ints, t: int, wish: int, highest: bool) -> None:
    """Append to a monotone queue: its front is the highest (or lowest) wish of the window."""
    mask, first, back, window = queue.shape[1] - 1, queue[ENDS, 0], queue[ENDS, 1], queue[ENDS, 2]
    if window < 0:
        return
    while back > first and queue[TIMES, first & mask] < t - window:
        first += 1
    while back > first:
        last = queue[WISHES, (back - 1) & mask]
        if (last > wish) if highest else (last < wish):
            break
        back -= 1
    queue[TIMES, back & mask], queue[WISHES, back & mask] = t, wish
    queue[ENDS, 0], queue[ENDS, 1] = first, back + 1


@compiled
def front(queue: Ints, t: int, wish: float, highest: bool) -> float:
    """The highest (or lowest) of this wish and those of the window."""
    mask, first, back, window = queue.shape[1] - 1, queue[ENDS, 0], queue[ENDS, 1], queue[ENDS, 2]
    while back > first and queue[TIMES, first & mask] < t - window:
        first += 1
    if back == first:
        return wish
    other = float(queue[WISHES, first & mask])
    return max(wish, other) if highest else min(wish, other)


@compiled
def note(events: Ints, t: int, change: int, period: float) -> None:
    """Store a change as core does, in the last slot that its own direction cannot see any more, else in a new one."""
    count = events[COUNT, 0]
    place = count
    for index in range(count):
        if t - events[TIMES, index] > period:
            place = index
    events[TIMES, place], events[CHANGES, place] = t, change
    events[COUNT, 0] = max(count, place + 1)


@compiled
def changed(events: Ints, t: int, period: float) -> int:
    """Pods added (or removed) within the period."""
    total = 0
    for index in range(events[COUNT, 0]):
        if t - events[TIMES, index] < period:
            total += events[CHANGES, index]
    return total
