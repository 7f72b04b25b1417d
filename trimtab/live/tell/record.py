"""record: what a tick has done, for /metrics and for the journal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from trimtab.acts import Act, Fate
from trimtab.core.model import Change
from trimtab.journal import Tick
from trimtab.live.object_tick import ObjectTick
from trimtab.live.tell.telemetry import Telemetry
from trimtab.ticks import tick_of

HELD_EVERY_S = 60.0  # a wish held by ever other rules is written down this often at most


class Situation(NamedTuple):
    """What one object wants, and what keeps it from that."""

    change: Change | None
    held_by: tuple[str, ...]
    written_at: float = float("-inf")


CALM = Situation(None, ())


class DecisionLog(Protocol):
    """A Journal, or what stands in front of one."""

    def write(self, acts: Sequence[Act], ticks: Sequence[Tick] = ()) -> None: ...


class Recorder:
    """Knows the situation of each object, so that one that stays is written down once."""

    def __init__(self, telemetry: Telemetry, journal: DecisionLog | None) -> None:
        self.telemetry, self.journal = telemetry, journal
        self._situations: dict[str, Situation] = {}

    def record(self, ticks: Sequence[ObjectTick]) -> None:
        self.telemetry.saw(ticks)
        if self.journal is not None:
            acts = [_act(tick) for tick in ticks if self._is_news(tick)]
            self.journal.write(acts, [_look(tick) for tick in ticks])

    def forget(self, uids: set[str]) -> None:
        """All but these are gone."""
        self._situations = {uid: known for uid, known in self._situations.items() if uid in uids}

    def _is_news(self, tick: ObjectTick) -> bool:
        """An act; or a wish that is not written (Shadow, refused, held by a rule) when it is not that of last time."""
        uid, change, held_by = tick.subject.uid, tick.decision.change, _held_by(tick)
        known = self._situations.get(uid, CALM)
        written = any(part.fate is Fate.WRITTEN for part in tick.outcome)
        otherwise = held_by != known.held_by and tick.seen.at - known.written_at >= HELD_EVERY_S
        news = written or (change is not None and change != known.change) or otherwise
        at, held_by = (tick.seen.at, held_by) if news else (known.written_at, known.held_by)
        self._situations[uid] = Situation(change, held_by, at)
        return news


def _held_by(tick: ObjectTick) -> tuple[str, ...]:
    """The rules that left nothing of what the load asks for; none where it asks for nothing, or gets it."""
    if tick.decision.change is not None:
        return ()
    return tuple(dict.fromkeys(step.reason for step in tick.decision.steps if step.before != step.after))


def _act(tick: ObjectTick) -> Act:
    subject = tick.subject
    return Act(subject.name, subject.policy, tick.seen, tick.memory.core, tick.decision, tick.outcome)


def _look(tick: ObjectTick) -> Tick:
    return tick_of(tick.subject.name, tick.subject.policy, tick.seen, tick.decision)
