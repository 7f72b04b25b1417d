"""The floor of an annotated HPA: what it becomes, and whose word minReplicas is."""

from __future__ import annotations

import pytest

from tests.live.build import AT, HPAS, hpa, subject
from trimtab.core.model import Decision, Missing, Plan, Proposal, Reason
from trimtab.live.act import floor
from trimtab.live.look.floor import Floor, is_predictive, read, speaks_of_forecasts

LATER, EARLIER = str(int(AT) + 60), str(int(AT) - 60)


def decision(present: float | Missing, ahead: float | Missing, plan: int) -> Decision:
    proposals = (Proposal(source="cpu", replicas=present), Proposal(source="ahead", replicas=ahead, forecast=True))
    return Decision(plan=Plan(replicas=plan), change=None, proposals=proposals)


@pytest.mark.parametrize(
    ("found", "is_"),
    [
        pytest.param(hpa(3), Floor(3, None, 0.0), id="untouched"),
        pytest.param(hpa(6, min_replicas="3", floor="6", floor_until=LATER), Floor(3, 6, AT + 60), id="raised by us"),
        pytest.param(hpa(4, min_replicas="3", floor="6", floor_until=LATER), Floor(4, None, 0.0), id="edited since"),
        pytest.param(hpa(6, min_replicas="x", floor="6"), Floor(6, None, 0.0), id="spoiled annotation"),
        pytest.param(hpa(6, min_replicas="3", floor="6", floor_until="soon"), Floor(3, 6, 0.0), id="spoiled date"),
        pytest.param(hpa(6, min_replicas="3", floor="6", floor_until="1.2.3"), Floor(3, 6, 0.0), id="no number"),
        pytest.param(hpa(6, min_replicas="9" * 5000, floor="6"), Floor(6, None, 0.0), id="too long a number"),
        pytest.param(hpa(0), Floor(0, None, 0.0), id="zero is a number"),
    ],
)
def test_whose_word_it_is(found: object, is_: Floor) -> None:
    assert read(found) == is_  # type: ignore[arg-type]


def test_the_policy_has_the_users_own_minimum() -> None:
    found = hpa(6, predictive="true", min_replicas="3", floor="6", floor_until=LATER)
    assert subject(found, HPAS).policy.bounds.min_replicas == 3
    assert subject(found, HPAS).policy.forecast is not None


@pytest.mark.parametrize(
    ("said", "asks"),
    [
        pytest.param("true", True, id="003 kubectl annotate: true"),
        pytest.param("\u2019true\u2019", True, id="003 kubectl annotate, as printed with curly quotes"),
        pytest.param("False", False, id="003 turned off"),
        pytest.param("yes", None, id="neither: compiled, so that its user is told"),
    ],
)
def test_who_asks_for_a_forecast(said: str, asks: bool | None) -> None:
    assert speaks_of_forecasts(hpa(predictive=said)) is asks
    assert is_predictive(hpa(predictive=said)) is bool(asks)


LOST = Missing(reason=Reason.UNREACHABLE)


@pytest.mark.parametrize(
    ("held", "decided", "wanted"),
    [
        pytest.param(Floor(2, None, 0), decision(3, 8, 6), 6, id="as fast as its rules allow"),
        pytest.param(Floor(2, None, 0), decision(8, 8, 8), 2, id="the HPA sees it by itself"),
        pytest.param(Floor(2, None, 0), decision(3, LOST, 3), 2, id="no forecast"),
        pytest.param(Floor(2, None, 0), decision(LOST, 8, 3), 2, id="no present value"),
        pytest.param(Floor(2, 6, AT + 60), decision(3, 3, 3), 6, id="its date has not come"),
        pytest.param(Floor(2, 6, AT - 1), decision(3, 3, 3), 2, id="back to the user's"),
        pytest.param(Floor(2, 6, AT + 60), decision(3, 9, 9), 9, id="further up at once"),
        pytest.param(Floor(4, None, 0), decision(1, 2, 2), 4, id="never below the user's"),
        pytest.param(Floor(2, 9, AT - 1), decision(3, 5, 9), 5, id="an old peak that the window holds is no reason"),
    ],
)
def test_where_it_goes(held: Floor, decided: Decision, wanted: int) -> None:
    assert floor.wanted(held, decided, AT) == wanted
