"""record: what a tick has done, for /metrics and for the journal."""

from __future__ import annotations

from collections.abc import Sequence

from trimtab.core.model import Change
from trimtab.journal import Act, Fate, Journal
from trimtab.live.object_tick import ObjectTick
from trimtab.live.tell.telemetry import Telemetry
from trimtab.ticks import tick_of


class Recorder:
    """Knows what each object last wished for, so that a wish that stays is written down once."""

    def __init__(self, telemetry: Telemetry, journal: Journal | None) -> None:
        self.telemetry, self.journal = telemetry, journal
        self._wishes: dict[str, Change | None] = {}

    def record(self, ticks: Sequence[ObjectTick]) -> None:
        self.telemetry.saw(ticks)
        if self.journal is not None:
            self.journal.write(
                [_act(tick) for tick in ticks if self._is_news(tick)],
                [tick_of(tick.subject.name, tick.subject.policy, tick.seen, tick.decision) for tick in ticks],
                [(tick.subject.name, tick.subject.policy) for tick in ticks],
            )

    def forget(self, uids: set[str]) -> None:
        """All but these are gone."""
        self._wishes = {uid: wish for uid, wish in self._wishes.items() if uid in uids}

    def _is_news(self, tick: ObjectTick) -> bool:
        """An act, or a wish that cannot be written (Shadow, refused) when it is not the one of last time."""
        uid, change = tick.subject.uid, tick.decision.change
        known, self._wishes[uid] = self._wishes.get(uid), change
        return change is not None and (any(part.fate is Fate.WRITTEN for part in tick.outcome) or change != known)


def _act(tick: ObjectTick) -> Act:
    subject = tick.subject
    return Act(subject.name, subject.policy, tick.seen, tick.memory.core, tick.decision, tick.outcome)
