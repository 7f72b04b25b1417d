"""record: what a tick has done, for /metrics and for the journal."""

from __future__ import annotations

from collections.abc import Sequence

from trimtab.core.model import Change
from trimtab.journal import Act, Journal
from trimtab.live.tell.telemetry import Telemetry
from trimtab.live.view import Case
from trimtab.ticks import tick_of


class Recorder:
    """Knows what each object last wished for, so that a wish that stays is written down once."""

    def __init__(self, telemetry: Telemetry, journal: Journal | None) -> None:
        self.telemetry, self.journal = telemetry, journal
        self._wishes: dict[str, Change | None] = {}

    def record(self, cases: Sequence[Case]) -> None:
        self.telemetry.saw(
            [
                (case.view.subject.name, case.view.subject.policy, case.seen, case.decision, case.outcome)
                for case in cases
            ]
        )
        if self.journal is None:
            return
        acts = [case for case in cases if self._is_news(case)]
        self.journal.write(
            [_act(case) for case in acts],
            [tick_of(case.view.subject.name, case.view.subject.policy, case.seen, case.decision) for case in cases],
            [(case.view.subject.name, case.view.subject.policy) for case in cases],
        )

    def forget(self, uids: set[str]) -> None:
        """All but these are gone."""
        self._wishes = {uid: wish for uid, wish in self._wishes.items() if uid in uids}

    def _is_news(self, case: Case) -> bool:
        """An act, or a wish that cannot be written (Shadow, refused) when it is not the one of last time."""
        uid, change = case.view.subject.uid, case.decision.change
        known, self._wishes[uid] = self._wishes.get(uid), change
        return change is not None and (case.outcome == "written" or change != known)


def _act(case: Case) -> Act:
    view = case.view
    return Act(view.subject.name, view.subject.policy, case.seen, view.kept.core, case.decision, case.outcome)
