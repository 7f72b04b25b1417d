"""The fleet breaker: a crowd that falls at once is doubted for one window, then believed, each object for itself."""

from __future__ import annotations

import pytest

from trimtab.core.model import Change, Decision, Plan
from trimtab.live.act.breaker import EVERYBODY, Breaker, FleetWish, falls_steeply
from trimtab.policy import Axis, Direction


def wishes(falling: int, calm: int = 0, namespace: str = "shop", first: int = 0) -> list[FleetWish]:
    return [
        FleetWish(f"{namespace}-{number}", namespace, number < first + falling)
        for number in range(first, first + falling + calm)
    ]


def scattered(falling: int, calm: int) -> list[FleetWish]:
    """One object in each namespace."""
    return [FleetWish(f"uid-{number}", f"ns-{number}", number < falling) for number in range(falling + calm)]


@pytest.mark.parametrize(
    ("falling", "calm", "trips"),
    [
        pytest.param(10, 39, True, id="10 of 49"),
        pytest.param(10, 40, False, id="exactly a fifth"),
        pytest.param(9, 0, False, id="fewer than ten"),
    ],
)
def test_when_it_trips(falling: int, calm: int, trips: bool) -> None:
    assert Breaker().trip(scattered(falling, calm), 0.0) == ([EVERYBODY] if trips else [])


@pytest.mark.parametrize(
    ("was", "to", "falls"),
    [
        pytest.param(9, 6, True, id="a third exactly counts"),
        pytest.param(10, 7, False, id="by less than a third"),
        pytest.param(10, 12, False, id="upwards"),
        pytest.param(10, None, False, id="nothing"),
    ],
)
def test_what_is_steep(was: int, to: int | None, falls: bool) -> None:
    change = None if to is None else Change(was=was, replicas=to)
    assert falls_steeply(Decision(plan=Plan(replicas=was), change=change)) is falls


def test_nobody_falls_for_one_window_and_then_it_is_believed() -> None:
    breaker, crowd, calm = Breaker(window_s=300), scattered(20, 0), scattered(0, 20)
    assert breaker.vetoes("ns-1", 0.0) == () and not breaker.open(0.0)
    assert breaker.trip(crowd, 0.0) == [EVERYBODY]
    veto = breaker.vetoes("ns-1", 1.0)[0]
    assert (veto.axis, veto.direction, veto.until) == (Axis.REPLICAS, Direction.DOWN, 300.0)
    assert not breaker.trip(calm, 150.0), "what the veto holds is no sign of calm"
    assert breaker.vetoes("ns-1", 300.0) == () and not breaker.trip(crowd, 300.0)
    assert not breaker.trip(calm, 310.0)
    assert breaker.trip(crowd, 320.0) and breaker.trips == 2


def test_who_is_believed_disarms_it_for_nobody_else() -> None:
    """Objects that want to fall for ever, because something else holds them, were taken for the crowd of the day."""
    breaker, stuck = Breaker(window_s=300), wishes(30, namespace="stuck")
    assert breaker.trip(stuck, 0.0)
    assert not breaker.trip(stuck, 300.0), "believed"
    day = 86400.0
    assert breaker.trip(stuck + wishes(30), day) and breaker.vetoes("shop", day + 1.0)


def test_a_namespace_in_trouble_is_held_by_itself() -> None:
    breaker = Breaker()
    assert breaker.trip(wishes(12) + wishes(0, 200, "calm"), 0.0) == ["shop"]
    assert breaker.vetoes("shop", 1.0) and breaker.vetoes("calm", 1.0) == ()
    assert "namespace shop" in breaker.vetoes("shop", 1.0)[0].detail


def test_a_clock_that_was_set_back_ends_the_window() -> None:
    breaker = Breaker(window_s=300)
    assert breaker.trip(scattered(20, 0), 10_000.0)
    assert breaker.vetoes("ns-1", 10_001.0) and breaker.vetoes("ns-1", 6_400.0) == ()
