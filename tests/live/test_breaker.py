"""The fleet breaker: a crowd that falls at once is doubted for one window, then believed."""

from __future__ import annotations

import pytest

from trimtab.core.model import Change, Decision, Plan
from trimtab.live.act.breaker import Breaker
from trimtab.policy import Axis, Direction


def decision(was: int, to: int | None) -> Decision:
    change = None if to is None else Change(was=was, replicas=to)
    return Decision(plan=Plan(replicas=was if to is None else to), change=change)


@pytest.mark.parametrize(
    ("falls", "others", "to", "trips"),
    [
        pytest.param(10, 39, 6, True, id="10 of 49 by 40 %"),
        pytest.param(10, 40, 6, False, id="exactly a fifth"),
        pytest.param(9, 0, 6, False, id="fewer than ten"),
        pytest.param(12, 0, 7, False, id="by less than a third"),
        pytest.param(12, 0, 12, False, id="upwards"),
    ],
)
def test_when_it_trips(falls: int, others: int, to: int, trips: bool) -> None:
    crowd = [decision(10, to)] * falls + [decision(10, None)] * others
    assert Breaker().trip(crowd, 0.0) is trips


def test_a_third_exactly_counts() -> None:
    assert Breaker().trip([decision(9, 6)] * 10, 0.0)


def test_nobody_falls_for_one_window_and_then_it_is_believed() -> None:
    breaker, crowd, calm = Breaker(window_s=300), [decision(10, 1)] * 20, [decision(10, None)] * 20
    assert breaker.vetoes(0.0) == ()
    assert breaker.trip(crowd, 0.0)
    veto = breaker.vetoes(1.0)[0]
    assert (veto.axis, veto.direction, veto.until) == (Axis.REPLICAS, Direction.DOWN, 300.0)
    assert not breaker.trip(calm, 150.0), "what the veto holds is no sign of calm"
    assert breaker.vetoes(300.0) == () and not breaker.trip(crowd, 300.0)
    assert not breaker.trip(calm, 310.0)
    assert breaker.trip(crowd, 320.0) and breaker.trips == 2
