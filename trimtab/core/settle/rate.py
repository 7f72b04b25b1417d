"""Rate policies of HPA's `behavior`: so many pods or percent within a period, the most or least generous policy.

start = current - added + removed within the period (strictly newer); Pods: start ± v;
Percent up: ceil(start * (1 + v/100)), down: trunc(start * (1 - v/100)).
"""

from __future__ import annotations

from math import ceil

from trimtab.core.model import Event
from trimtab.core.settle.context import SettleContext, Wish, wish_of
from trimtab.policy import Rate, Rates, Select


def limit(rule: Rate, wish: Wish, context: SettleContext) -> tuple[Wish, float | None]:
    current, memory = context.current, context.memory
    if wish.replicas > current:
        most = up_limit(rule.up, current, memory.grown, memory.shrunk, context.at)
        return (wish_of(most, current) if wish.replicas > most else wish), None
    if wish.replicas < current:
        least = down_limit(rule.down, current, memory.grown, memory.shrunk, context.at)
        return (wish_of(least, current) if wish.replicas < least else wish), None
    return wish, None


def up_limit(rates: Rates, current: int, grown: tuple[Event, ...], shrunk: tuple[Event, ...], at: float) -> int:
    """The most replicas the policies allow now; never below the current ones."""
    if rates.select is Select.DISABLED:
        return current
    ends = [
        end_up(rate.percent, rate.value, _start(current, grown, shrunk, at - rate.period_s)) for rate in rates.policies
    ]
    return max(current, min(ends) if rates.select is Select.MIN else max(ends))


def down_limit(rates: Rates, current: int, grown: tuple[Event, ...], shrunk: tuple[Event, ...], at: float) -> int:
    """The fewest replicas the policies allow now; never above the current ones."""
    if rates.select is Select.DISABLED:
        return current
    ends = [
        end_down(rate.percent, rate.value, _start(current, grown, shrunk, at - rate.period_s))
        for rate in rates.policies
    ]
    return min(current, max(ends) if rates.select is Select.MIN else min(ends))


def _start(current: int, grown: tuple[Event, ...], shrunk: tuple[Event, ...], cutoff: float) -> int:
    return current - changed(grown, cutoff) + changed(shrunk, cutoff)


def changed(events: tuple[Event, ...], cutoff: float) -> int:
    return sum(change for at, change in events if at > cutoff)


def end_up(percent: bool, value: int, start: int) -> int:
    return ceil(start * (1 + value / 100)) if percent else start + value


def end_down(percent: bool, value: int, start: int) -> int:
    return int(start * (1 - value / 100)) if percent else start - value


def longest_period(rates: Rates) -> float:
    return max((rate.period_s for rate in rates.policies), default=0.0)


def remember(events: tuple[Event, ...], at: float, change: int, period_s: float) -> tuple[Event, ...]:
    """Store a change, in the last slot that no policy can see any more, else in a new one."""
    stale = max((i for i, (t, _) in enumerate(events) if t < at - period_s), default=None)
    if stale is None:
        return (*events, (at, change))
    return (*events[:stale], (at, change), *events[stale + 1 :])
