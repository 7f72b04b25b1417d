"""When an Analytics is looked at again."""

from __future__ import annotations

from typing import Any

import pytest

from trimtab.advisor import records
from trimtab.advisor.run import Advised
from trimtab.advisor.targets import AdvisedTarget
from trimtab.core.advise.records import Against, Objection, Objections
from trimtab.live.advice import FIRST_RETRY_S, LAST_RETRY_S, Rounds
from trimtab.wire.from_kubernetes import rfc3339
from trimtab.wire.objects import Custom, ObjectMeta

NOW = 1_700_000_000.0


@pytest.fixture
def rounds() -> Rounds:
    return Rounds()


def analytics(strategy: dict[str, Any] | None = None, updated: float | None = None, **spec: Any) -> Custom:
    status = {} if updated is None else {"lastUpdateTime": rfc3339(updated)}
    written = {"completionStrategy": strategy} if strategy is not None else {}
    return Custom(metadata=ObjectMeta(name="a", uid="1"), spec=written | spec, status=status)


@pytest.mark.parametrize(
    "found, due",
    [
        pytest.param(analytics(), True, id="new"),
        pytest.param(analytics(updated=NOW - 1e9), False, id="once is the default, and has happened"),
        pytest.param(
            analytics({"completionStrategyType": "Periodical", "periodSeconds": 600}, NOW - 599), False, id="early"
        ),
        pytest.param(
            analytics({"completionStrategyType": "Periodical", "periodSeconds": 600}, NOW - 600), True, id="due"
        ),
        pytest.param(
            analytics({"completionStrategyType": "Periodical"}, NOW - 86399), False, id="a day is the default"
        ),
        pytest.param(analytics({"completionStrategyType": "Periodical"}, NOW - 86400), True, id="a day has passed"),
        pytest.param(
            analytics({"completionStrategyType": "Sometimes"}, NOW - 1), True, id="unreadable: the round says so"
        ),
    ],
)
def test_due(rounds: Rounds, found: Custom, due: bool) -> None:
    assert rounds.due(found, NOW) is due


def test_no_period_is_shorter_than_a_minute(rounds: Rounds) -> None:
    strategy = {"completionStrategyType": "Periodical", "periodSeconds": 1}
    assert not rounds.due(analytics(strategy, NOW - 59), NOW) and rounds.due(analytics(strategy, NOW - 60), NOW)


def test_failed_rounds_come_again_ever_more_seldom(rounds: Rounds) -> None:
    found, at, waits = analytics(), NOW, []
    for _ in range(8):
        rounds.later(found, at)
        assert not rounds.due(found, at)
        waits.append(rounds._retries["1"].at - at)
        at = rounds._retries["1"].at
        assert rounds.due(found, at)
    assert waits[:3] == [FIRST_RETRY_S, 2 * FIRST_RETRY_S, 4 * FIRST_RETRY_S] and waits[-1] == LAST_RETRY_S


def test_an_edit_is_looked_at_at_once(rounds: Rounds) -> None:
    rounds.later(analytics(type="HPA"), NOW)
    assert not rounds.due(analytics(type="HPA"), NOW + 1)
    assert rounds.due(analytics(type="Resource"), NOW + 1)


def test_once_runs_again_when_its_spec_is_edited(rounds: Rounds) -> None:
    first = analytics(type="HPA")
    done = Custom(metadata=first.metadata, spec=first.spec, status=records.round_done(first, NOW))
    assert not rounds.due(done, NOW + 1e9)
    assert rounds.due(Custom(metadata=done.metadata, spec={"type": "Resource"}, status=done.status), NOW + 1)
    assert not rounds.due(analytics(type="Resource", updated=NOW), NOW + 1e9), "upstream's status says nothing of it"


def without_pods(found: Against) -> Advised:
    target = AdvisedTarget("apps/v1", "Deployment", "shop", "web", 3, {}, ())
    return Advised(target, Objections(reasons=(Objection(reason=found),)))


@pytest.mark.parametrize("found", [Against.NO_AVAILABLE_PODS, Against.NO_PODS])
def test_an_analytics_applied_with_its_deployment_is_tried_again_soon(rounds: Rounds, found: Against) -> None:
    """Also with Once; and not for ever, as a Deployment may have no pods on purpose."""
    once, at, waits = analytics({"completionStrategyType": "Once"}), NOW, []
    while rounds.again(once, [without_pods(found)], at):
        waits.append(rounds._retries["1"].at - at)
        at = rounds._retries["1"].at
        assert rounds.due(once, at) and not rounds.due(once, at - 1)
    assert waits[0] == FIRST_RETRY_S and waits == sorted(waits) and waits[-1] == LAST_RETRY_S
    assert not rounds._retries


def test_other_objections_are_an_answer(rounds: Rounds) -> None:
    assert not rounds.again(analytics(), [without_pods(Against.LOW_REPLICAS)], NOW)
