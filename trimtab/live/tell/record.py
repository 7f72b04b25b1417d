"""record: what a tick has done, for /metrics and for the journal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from trimtab.acts import Act, Fate
from trimtab.core.model import Change, RuleName
from trimtab.journal import Tick
from trimtab.live.object_tick import ObjectTick
from trimtab.live.tell.telemetry import Telemetry
from trimtab.policy import Axis
from trimtab.ticks import tick_of

HELD_EVERY_S = 60.0  # a wish that is held and moves, or is held by ever other rules, is written down this often at most
MOVED = 0.2  # of the wish: less is noise
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
    """One object's rows: each look is one, an act only where it is news."""

    look: Tick
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
        look = _look(tick)
        return Note(look, _act(tick) if self._is_news(tick) else None)

    def record(self, ticks: Sequence[ObjectTick], notes: Sequence[Note | None]) -> None:
        """The whole tick, with the notes of all of which there are some."""
        self.telemetry.saw(ticks)
        if self.journal is not None:
            said = [note for note in notes if note]
            self.journal.write([note.act for note in said if note.act], [note.look for note in said])

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


def _look(tick: ObjectTick) -> Tick:
    return tick_of(tick.subject.name, tick.subject.policy, tick.seen, tick.decision)
