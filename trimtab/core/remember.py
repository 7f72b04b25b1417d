"""remember: what an act that succeeded leaves behind. Never called for a write that failed, nor in Shadow."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from trimtab.core.admit import pinned
from trimtab.core.bridge import HOUR_S
from trimtab.core.model import Change, Event, Memory
from trimtab.core.settle import rate
from trimtab.policy import Buckets, Capacity, Policy, Rate, Weights, sees_without_pods

_DATES = (
    "up_at",
    "down_at",
    "resized_at",
    "failing_since",
    "above_since",
    "below_since",
    "followed_since",
    "overloaded_at",
)
_EVENTS = ("wanted", "planned", "grown", "shrunk")


def first_sight(at: float, replicas: int) -> Memory:
    """A new leader knows nothing: it behaves as if the current replicas had just been wished for (Kubernetes HPA)."""
    return Memory(wanted=((at, replicas),), planned=((at, replicas),))


def stored(memory: Memory) -> Memory:
    """What of it outlives the operator: wishes do not."""
    return replace(memory, wanted=(), planned=())


def restored(memory: Memory, at: float, replicas: int) -> Memory:
    """What a new leader takes up: it never scales down before a window has passed."""
    seed = first_sight(at, replicas)
    return replace(not_after(memory, at), wanted=seed.wanted, planned=seed.planned)


def shifted(memory: Memory, by_s: float) -> Memory:
    """The clock was set by this much: what lies so many seconds back still does, and no window is cut or stretched."""
    return _redated(memory, lambda at: at + by_s)


def not_after(memory: Memory, at: float) -> Memory:
    """No clock but a wrong one has dated anything later than now: such a date is dropped, and it counts as just done.

    So no cooldown is cut short, and none lasts longer than itself.
    """
    return _redated(memory, lambda dated: min(dated, at))


def _redated(memory: Memory, change: Callable[[float], float]) -> Memory:
    dates = {name: change(at) for name in _DATES if (at := getattr(memory, name)) is not None}
    events = {name: tuple((change(at), count) for at, count in getattr(memory, name)) for name in _EVENTS}
    needed = tuple((level, change(at)) for level, at in memory.bridge_needed)
    moves = tuple(change(at) for at in memory.bridge_moves)
    return replace(memory, **dates, **events, bridge_needed=needed, bridge_moves=moves)


def remember(policy: Policy, memory: Memory, change: Change, at: float) -> Memory:
    """The memory after `change` was written at `at`."""
    if change.sizes:
        memory = replace(memory, resized_at=at, overloaded=False)
        memory = replace(memory, wanted=_after_resize(policy, memory, change, at))
    if change.bridge is not None:
        moves = tuple(moved for moved in memory.bridge_moves if moved > at - HOUR_S)
        memory = replace(memory, bridge=change.bridge, bridge_moves=(*moves, at))
    if change.replicas is None:
        return memory
    memory = replace(memory, zeroed=is_our_zero(policy, change.replicas, at), overloaded=False)
    # A scaling to the same number starts the cooldown of its factor's direction, as in custom-hpa's program.
    if change.replicas > change.was or (change.replicas == change.was and change.upward):
        return replace(memory, up_at=at, grown=_event(policy, memory.grown, at, change.replicas - change.was, True))
    return replace(memory, down_at=at, shrunk=_event(policy, memory.shrunk, at, change.was - change.replicas, False))


def _after_resize(policy: Policy, memory: Memory, change: Change, at: float) -> tuple[Event, ...]:
    """Wishes are in replicas of the size they had then: what is in force now is the answer to them.

    With buckets and capacity a wish stands for a total, so it starts anew; by weights nothing more is left of those for
    more replicas, else the window would give by and by the share of the sizes to the replicas, too.
    """
    replicas = change.was if change.replicas is None else change.replicas
    if isinstance(policy.blend, Buckets | Capacity):
        return ((at, replicas),)
    if isinstance(policy.blend, Weights) and not policy.blend.exact:
        return tuple((wished_at, min(wish, replicas)) for wished_at, wish in memory.wanted)
    return memory.wanted


def is_our_zero(policy: Policy, replicas: int, at: float) -> bool:
    """Whether we went to zero and know the way back: by a signal that needs no pods, or because a pin ends."""
    return replicas == 0 and (sees_without_pods(policy) or pinned(policy.admit, at))


def _event(
    policy: Policy, events: tuple[tuple[float, int], ...], at: float, pods: int, up: bool
) -> tuple[tuple[float, int], ...]:
    for rule in policy.settle:
        if isinstance(rule, Rate):
            return rate.remember(events, at, pods, rate.longest_period(rule.up if up else rule.down))
    return events
