"""health: how the operator itself is doing, as plain data: who is silent, held back by others, or muted, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from trimtab.core.admit import paused, pinned
from trimtab.core.explain import missing_text
from trimtab.core.model import Missing
from trimtab.live.act.breaker import Breaker
from trimtab.live.object_tick import ObjectTick
from trimtab.wire.budget import Budget

MOST = 200  # rows of one kind; `counts` has how many there are
Row = tuple[str, str, str, str, float | None]  # kind, namespace, name, why, until when


def health_of(ticks: Sequence[ObjectTick], at: float, budget: Budget, breaker: Breaker, frozen: bool) -> dict[str, Any]:
    """Of one tick; JSON."""
    vetoed = [tick for tick in ticks if tick.seen.vetoes]
    lists: dict[str, list[Any]] = {
        "conflicts": [row for tick in vetoed for row in _vetoes(tick, "Conflict")],
        "reverts": [row for tick in vetoed for row in _vetoes(tick, "Reverted")],
        "muted": [row for tick in ticks for row in _muted(tick)],
        "sources": _silent_sources(ticks),
    }
    return {
        "at": at,
        "frozen": frozen,
        "budget": {"perSecond": budget.per_s, "spent": budget.spent, "waitedSeconds": budget.waited_s},
        "breaker": {"trips": breaker.trips, "held": sorted(breaker.held_until(at).items())},
        "counts": {name: len(rows) for name, rows in lists.items()},
        **{name: rows[:MOST] for name, rows in lists.items()},
    }


def _vetoes(tick: ObjectTick, reason: str) -> Iterator[Row]:
    said = {veto.detail: veto.until for veto in tick.seen.vetoes if veto.reason == reason}
    return ((*tick.subject.name, detail, until) for detail, until in said.items())


def _muted(tick: ObjectTick) -> Iterator[Row]:
    """What its owner switched off, and forecasts that have nothing to say."""
    policy, at = tick.subject.policy, tick.seen.at
    if paused(policy.admit, at):
        yield *tick.subject.name, "paused", policy.admit.paused_until
    elif pinned(policy.admit, at):
        yield *tick.subject.name, f"pinned to {policy.admit.pin} replicas", policy.admit.pin_until
    if policy.forecast is None:
        return
    for signal, forecast in zip(policy.signals, tick.seen.forecasts, strict=False):
        if isinstance(forecast, Missing):
            why = f"no forecast of {signal.metric.label}: {missing_text(forecast)}"
            yield *tick.subject.name, why, None


def _silent_sources(ticks: Sequence[ObjectTick]) -> list[list[Any]]:
    """Metric, why, of how many objects, since when: those that concern most objects first."""
    found: dict[tuple[str, str], list[Any]] = {}
    for tick in ticks:
        for signal, sample in zip(tick.subject.policy.signals, tick.seen.samples, strict=False):
            if isinstance(sample, Missing):
                key = signal.metric.label, str(sample.reason)
                row = found.setdefault(key, [signal.metric.label, missing_text(sample), 0, sample.since])
                row[2] += 1
                row[3] = min((since for since in (row[3], sample.since) if since is not None), default=None)
    return sorted(found.values(), key=lambda row: -row[2])
