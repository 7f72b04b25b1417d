"""Stabilisation: what was wished for lately holds back what is wished for now (Kubernetes HPA).

Without `behavior`: max of the wishes not older than the window. With it: the current replicas moved into
[min of the up window, max of the down window], wishes strictly newer than the cutoff.
"""

from __future__ import annotations

from trimtab.core.model import Event
from trimtab.core.settle.context import SettleContext, Wish, wish_of
from trimtab.policy import Rule, Stabilise, StabiliseMax


def highest(rule: StabiliseMax, wish: Wish, context: SettleContext) -> tuple[Wish, float | None]:
    cutoff = context.at - rule.window_s
    top = max([w for at, w in context.memory.wanted if at >= cutoff], default=wish.replicas)
    if top <= wish.replicas:
        return wish, None
    return wish_of(top, context.current), _last(context.memory.wanted, wish.replicas, cutoff) + rule.window_s


def between(rule: Stabilise, wish: Wish, context: SettleContext) -> tuple[Wish, float | None]:
    low, high = window_edges(wish.replicas, context.memory.wanted, context.at - rule.up_s, context.at - rule.down_s)
    settled = into(context.current, low, high)
    if settled == wish.replicas:
        return wish, None
    lower = settled < wish.replicas
    until = _last_other(context.memory.wanted, wish.replicas, lower) + (rule.up_s if lower else rule.down_s)
    return wish_of(settled, context.current), until


def window_edges(wish: float, wanted: tuple[Event, ...], up_cutoff: float, down_cutoff: float) -> tuple[float, float]:
    """The lowest wish of the up window and the highest of the down window, the new one included."""
    low = high = wish
    for at, replicas in wanted:
        if replicas < low:
            if at > up_cutoff:
                low = replicas
        elif replicas > high and at > down_cutoff:
            high = replicas
    return low, high


def into(current: float, low: float, high: float) -> float:
    """`current` moved as little as needed to lie in [low, high]."""
    return min(max(current, low), high)


def highest_of(events: tuple[Event, ...], at: float, window_s: float | None) -> int:
    """The most replicas within the window; 0 where no rule looks back."""
    return 0 if window_s is None else max((pods for wished_at, pods in events if wished_at >= at - window_s), default=0)


def remember(wanted: tuple[Event, ...], at: float, wish: int, window_s: float) -> tuple[Event, ...]:
    """Store a raw wish, in the last slot that has left the window, else in a new one."""
    cutoff = at - window_s
    stale = max([i for i, (t, _) in enumerate(wanted) if t < cutoff], default=None)
    if stale is None:
        return (*wanted, (at, wish))
    return (*wanted[:stale], (at, wish), *wanted[stale + 1 :])


def hold_without_metrics(
    rules: tuple[Rule, ...], wanted: tuple[Event, ...], at: float, replicas: int, lowers: bool
) -> tuple[Event, ...]:
    """Who sees nothing wishes for what there is: a window passes after the next samples, too, before they lower it.

    A fallback that `lowers` is not undone by what was wished for before.
    """
    window_s = window(rules)
    if window_s is None:
        return wanted
    kept = tuple((wished_at, min(wish, replicas)) for wished_at, wish in wanted) if lowers else wanted
    return remember(kept, at, replicas, window_s)


def window(rules: tuple[Rule, ...]) -> float | None:
    """How long wishes matter to these rules; None when none of them looks back."""
    spans = [rule.window_s for rule in rules if isinstance(rule, StabiliseMax)]
    spans += [max(rule.up_s, rule.down_s) for rule in rules if isinstance(rule, Stabilise)]
    return max(spans, default=None)


def _last(wanted: tuple[Event, ...], above: float, cutoff: float) -> float:
    return max(at for at, w in wanted if at >= cutoff and w > above)


def _last_other(wanted: tuple[Event, ...], wish: float, lower: bool) -> float:
    return max((at for at, w in wanted if (w < wish if lower else w > wish)), default=0.0)
