"""Watermarks: grow above the high mark, shrink below the low one, rest between (as DataDog's autoscaler does).

up = ceil(ready * usage / high), down = max(1, floor(ready * usage / low)), both rounded up to the modulo.
"""

from __future__ import annotations

from math import ceil, floor

from msgspec.structs import replace

from trimtab.core.model import Memory, Missing, Observation, Proposal, Reason
from trimtab.policy import Bounds, Converge, Policy, Watermark


def watermark_replicas(signal: Watermark, total: float, ready: int, seen: Observation, bounds: Bounds) -> Proposal:
    """A proposal that never crosses the current replicas in the wrong direction."""
    name = signal.metric.label
    if ready == 0 or ready * 100 < signal.min_available_percent * seen.status_replicas:
        return Proposal(source=name, replicas=Missing(reason=Reason.NO_READY_PODS, detail=f"{ready} pods are ready"))
    usage = total / ready if signal.average else total
    current = seen.spec_replicas
    side = crossed(signal, usage)
    if side > 0:
        replicas = max(current, to_modulo(estimate_up(ready, usage, signal.high), signal.modulo))
    elif side < 0:
        replicas = min(current, to_modulo(estimate_down(ready, usage, signal.low), signal.modulo))
    else:
        replicas = _converged(signal, usage, ready, current, bounds)
    return Proposal(source=name, replicas=replicas, value=usage, target=signal.high if side >= 0 else signal.low)


def crossed(signal: Watermark, usage: float) -> int:
    """1 above the high mark, -1 below the low one, 0 between; the tolerance widens the quiet zone in whole milli."""
    milli = round(usage * 1000)
    high, low, tolerance = round(signal.high * 1000), round(signal.low * 1000), round(signal.tolerance * 1000)
    if milli > high + high * tolerance // 1000:
        return 1
    return -1 if milli < low - low * tolerance // 1000 else 0


def note_marks(policy: Policy, seen: Observation, memory: Memory, proposals: list[Proposal]) -> Memory:
    """Since when a watermark has been crossed; with several signals, any of them."""
    sides = [
        crossed(signal, proposal.value)
        for signal, proposal in zip(policy.signals, proposals, strict=False)
        if isinstance(signal, Watermark) and proposal.value is not None
    ]
    if not sides:
        return memory
    above = (memory.above_since if memory.above_since is not None else seen.at) if 1 in sides else None
    below = (memory.below_since if memory.below_since is not None else seen.at) if -1 in sides else None
    return replace(memory, above_since=above, below_since=below)


def estimate_up(ready: int, usage: float, high: float) -> int:
    return ceil(ready * usage / high - 1e-9)


def estimate_down(ready: int, usage: float, low: float) -> int:
    return max(1, floor(ready * usage / low + 1e-9))


def to_modulo(replicas: int, modulo: int) -> int:
    return -(-replicas // modulo) * modulo


def _converged(signal: Watermark, usage: float, ready: int, current: int, bounds: Bounds) -> int:
    least = max(bounds.min_replicas, min(bounds.max_replicas, estimate_up(ready, usage, signal.high)))
    most = max(bounds.min_replicas, min(bounds.max_replicas, estimate_down(ready, usage, signal.low)))
    if signal.converge is Converge.HIGH and current - signal.modulo >= least:
        return current - signal.modulo
    if signal.converge is Converge.LOW and current + signal.modulo <= most:
        return current + signal.modulo
    return current
