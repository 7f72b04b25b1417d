"""rounds: when an Analytics or a Recommendation is due.

It gets a round when it is new or edited, and a Periodical one again after its period; a round that could not do its
work is tried again soon, then less and less often.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from trimtab.advisor import records
from trimtab.advisor.run import Advised
from trimtab.kinds.analytics import CompletionStrategy
from trimtab.kinds.meta import seconds_of
from trimtab.wire.objects import Custom

FIRST_RETRY_S, LAST_RETRY_S = 15.0, 600.0


class Retry(NamedTuple):
    """When a round that failed is tried again, unless the object is edited first."""

    at: float
    wait_s: float
    spec: dict[str, Any]


class Rounds:
    """Remembers the rounds that failed."""

    def __init__(self) -> None:
        self._retries: dict[str, Retry] = {}

    def forget(self, alive: set[str]) -> None:
        """All but these are gone."""
        self._retries = {uid: retry for uid, retry in self._retries.items() if uid in alive}

    def due(self, found: Custom, at: float) -> bool:
        retry = self._retry(found)
        if retry is not None:  # a round that could not do its work yet, although Once may be over
            return at >= retry.at
        updated, strategy = seconds_of(found.status.get("lastUpdateTime")), _strategy(found)
        if updated is None or strategy is None or records.edited(found):
            return True
        period_s = strategy.period_s
        return period_s is not None and at >= updated + period_s

    def later(self, found: Custom, at: float) -> None:
        before = self._retry(found)
        wait_s = min(2 * before.wait_s, LAST_RETRY_S) if before else FIRST_RETRY_S
        self._retries[found.metadata.uid] = Retry(at + wait_s, wait_s, found.spec)

    def again(self, found: Custom, outcomes: Sequence[Advised], at: float) -> bool:
        """Whether it is tried again soon: nothing could be read, or pods that may be starting are not there yet."""
        retry = self._retry(found)
        starting = any(outcome.without_pods for outcome in outcomes)
        patient = retry is None or retry.wait_s < LAST_RETRY_S
        if all(outcome.unread for outcome in outcomes) or (starting and patient):
            self.later(found, at)
            return True
        self._retries.pop(found.metadata.uid, None)
        return False

    def _retry(self, found: Custom) -> Retry | None:
        """None where nothing failed, and where it was edited since."""
        retry = self._retries.get(found.metadata.uid)
        return retry if retry and retry.spec == found.spec else None


def _strategy(found: Custom) -> CompletionStrategy | None:
    """None when it cannot be read; the round says why."""
    given = found.spec.get("completionStrategy") or {}
    try:
        return CompletionStrategy.model_validate(given)
    except ValueError:
        return None
