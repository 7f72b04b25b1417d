"""The bridge: ready pods carry more for a while, because a resize in place is faster than a new pod.

need = load now / ceiling / ready pods. Levels are quarters from 1 up to the largest factor allowed. Up at once; down
when none of the last five minutes needed it.
"""

from __future__ import annotations

LEVEL = 0.25  # from one level to the next
CALM_S = 300.0

Needed = tuple[tuple[float, float], ...]  # levels above 1 in descending order, each with when it was last needed


def level_needed(load: float, ready: float, ceiling: float, max_factor: float) -> float:
    """The lowest level at which the ready pods carry the load, the highest where none is enough.

    Load is counted in what one pod of the written size carries at 100 %.
    """
    need = load / ceiling / ready - 1e-9 if ready > 0.0 else 0.0
    level = 1.0
    while level < need and level < max_factor:
        level += LEVEL
    return min(level, max_factor)


def still_needed(needed: Needed, level: float, at: float) -> Needed:
    """What is remembered after this moment needed `level`: higher levels until they have been calm, then this one."""
    higher = tuple((other, when) for other, when in needed if other > level and when > at - CALM_S)
    lower = tuple((other, when) for other, when in needed if other < level and when > at - CALM_S)
    return (*higher, (level, at), *lower) if level > 1.0 else higher


def factor_of(needed: Needed) -> float:
    """The size of ready pods, in sizes as written."""
    return needed[0][0] if needed else 1.0
