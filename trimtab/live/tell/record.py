"""record: what a tick did, for /metrics and the journal, and how the operator itself is doing, for the dashboard."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from trimtab.acts import Act, Fate
from trimtab.core.admit import paused, pinned
from trimtab.core.explain import missing_text
from trimtab.core.model import Change, Missing, RuleName
from trimtab.journal import Tick
from trimtab.live.act.breaker import Breaker
from trimtab.live.object_tick import ObjectTick
from trimtab.live.tell.telemetry import Telemetry
from trimtab.policy import Axis
from trimtab.ticks import tick_of
from trimtab.wire.budget import Budget

HELD_EVERY_S = 60.0  # a wish that is held and moves, or is held by ever other rules, is written down this often at most
MOVED = 0.2  # of the wish: less is noise
MOST = 200  # rows of one kind; `counts` has how many there are
Row = tuple[str, str, str, str, float | None]  # kind, namespace, name, why, until when
HOLDING = (RuleName.PAUSED, RuleName.SWITCHED_OFF, RuleName.METRICS_MISSING)  # whatever the load asks for


class Situation(NamedTuple):
    """What one object wants, and what keeps it from that."""

    change: Change | None
    held_by: tuple[str, ...]
    wanted: float = 0.0
    written_at: float = float("-inf")

    def differs(self, change: Change | None, held_by: tuple[str, ...], wanted: float) -> bool:
        """A wish that nobody fulfils has moved, or something else keeps it from that."""
        moved = abs(wanted - self.wanted) >= max(1.0, MOVED * self.wanted)
        return held_by != self.held_by or (moved and (bool(held_by) or change is not None))


class Note(NamedTuple):
    """One object's rows in the journal: one per tick, and an act only where it is news."""

    tick: Tick
    act: Act | None


CALM = Situation(None, ())


class DecisionLog(Protocol):
    """A Journal, or what stands in front of one."""

    def write(self, acts: Sequence[Act], ticks: Sequence[Tick] = ()) -> None: ...


class Recorder:
    """Knows the situation of each object, so that one that stays is written down once."""

    def __init__(self, telemetry: Telemetry, journal: DecisionLog | None) -> None:
        self.telemetry, self.journal = telemetry, journal
        self._situations: dict[str, Situation] = {}

    def note(self, tick: ObjectTick) -> Note | None:
        """What the journal gets of one object, where there is one."""
        if self.journal is None:
            return None
        row = tick_of(tick.subject.name, tick.subject.policy, tick.seen, tick.decision)
        return Note(row, _act(tick) if self._is_news(tick) else None)

    def record(self, ticks: Sequence[ObjectTick], notes: Sequence[Note | None]) -> None:
        """The whole tick, with the notes of all of which there are some."""
        self.telemetry.saw(ticks)
        if self.journal is not None:
            said = [note for note in notes if note]
            self.journal.write([note.act for note in said if note.act], [note.tick for note in said])

    def forget(self, uids: set[str]) -> None:
        """All but these are gone."""
        self._situations = {uid: known for uid, known in self._situations.items() if uid in uids}

    def _is_news(self, tick: ObjectTick) -> bool:
        """An act; or a wish that is not written (Shadow, refused, held by a rule) when it is not that of last time."""
        uid, change, held_by, wanted = tick.subject.uid, tick.decision.change, _held_by(tick), _wanted(tick)
        known = self._situations.get(uid, CALM)
        written = any(part.fate is Fate.WRITTEN for part in tick.outcome)
        otherwise = known.differs(change, held_by, wanted) and tick.seen.at - known.written_at >= HELD_EVERY_S
        if written or (change is not None and change != known.change) or otherwise:
            self._situations[uid] = Situation(change, held_by, wanted, tick.seen.at)
            return True
        if change is not known.change:
            self._situations[uid] = known._replace(change=change)
        return False


def _held_by(tick: ObjectTick) -> tuple[str, ...]:
    """The rules that left nothing of what the load asks for; none where it asks for nothing, or gets it."""
    if tick.decision.change is not None:
        return ()
    holding = [step for step in tick.decision.steps if step.before != step.after or step.rule in HOLDING]
    return tuple(dict.fromkeys(step.reason for step in holding))


def _wanted(tick: ObjectTick) -> float:
    """The replicas before any rule."""
    first = next((step.before for step in tick.decision.steps if step.axis is Axis.REPLICAS), None)
    return tick.decision.plan.replicas if first is None else first


def _act(tick: ObjectTick) -> Act:
    subject = tick.subject
    return Act(subject.name, subject.policy, tick.seen, tick.memory.core, tick.decision, tick.outcome)


def health_of(ticks: Sequence[ObjectTick], at: float, budget: Budget, breaker: Breaker, frozen: bool) -> dict[str, Any]:
    """Return who is silent, held back by others or muted in one tick, and why, as plain data."""
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
