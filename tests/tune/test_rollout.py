"""The rollout of switches: who may switch, how fast it goes on, and when it stops."""

from __future__ import annotations

from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.tune.test_night import verdict
from trimtab.core.nights import (
    BAD_NIGHTS,
    FIRST_SHARE,
    PAUSE_S,
    JudgedDay,
    Promise,
    Rollout,
    Verdict,
    VerdictKind,
    let_switch,
    next_night,
)

DAY_S = 86400.0
MONDAY = 1_750_039_200.0  # two o'clock
WHY = "others come first"


def day(number: int) -> float:
    """The night that begins this day, counted from a Monday."""
    return MONDAY + number * DAY_S


def is_weekend(number: int) -> bool:
    return number % 7 >= 5


def judged(excess: float, number: int) -> JudgedDay:
    """By the day before this night."""
    return JudgedDay(j=1.2, excess=excess, weekend=is_weekend(number - 1), at=day(number))


class Fleet:
    """A hundred workloads that all want to switch, and keep their promise or break it."""

    def __init__(self, size: int = 100, excess: float = 0.0) -> None:
        self.size, self.excess, self.rollout = size, excess, Rollout()
        self.waiting, self.batch = size, 0
        self.days: tuple[JudgedDay, ...] = ()  # of the last batch

    def night(self, number: int) -> int:
        """How many switch in it."""
        if self.batch:
            judged_now = judged(self.excess, number)
            self.days = (*(each for each in self.days if each.weekend is not judged_now.weekend), judged_now)
        batch = [self.days] * self.batch
        self.rollout = next_night(self.rollout, batch, day(number), is_weekend(number))
        switched = min(self.waiting, self.rollout.limit(self.size, day(number)))
        if switched:
            self.rollout = replace(self.rollout, batch_at=day(number))
            self.waiting, self.batch, self.days = self.waiting - switched, switched, ()
        return switched


def test_a_fleet_that_keeps_its_promises_has_switched_within_a_week() -> None:
    fleet = Fleet()
    # Saturday waits: those that switched last were judged by weekdays only.
    assert [fleet.night(number) for number in range(7)] == [5, 10, 20, 40, 25, 0, 0]


def test_a_weekend_is_judged_by_a_weekend() -> None:
    fleet = Fleet(1000)
    assert [fleet.night(4 + number) for number in range(5)] == [50, 0, 100, 0, 200]


def test_two_bad_nights_pause_for_a_week_and_then_it_begins_anew() -> None:
    fleet = Fleet(1000, excess=1.5)
    assert [fleet.night(number) for number in range(3)] == [50, 25, 0]
    assert fleet.rollout.bad_nights == BAD_NIGHTS and fleet.rollout.paused(day(2))
    assert [fleet.night(number) for number in range(3, 9)] == [0] * 6
    fleet.excess = 0.0
    assert fleet.night(9) == 50 and fleet.rollout.share == FIRST_SHARE and not fleet.rollout.bad_nights


def test_one_bad_night_halves_and_a_good_one_forgets_it() -> None:
    fleet = Fleet(1000, excess=1.5)
    assert [fleet.night(0), fleet.night(1)] == [50, 25]
    fleet.excess = 1.0  # one promised deviation is within the promise
    assert fleet.night(2) == 50 and fleet.rollout.bad_nights == 0


@pytest.mark.parametrize("count, goes_on", [(8, True), (7, False)])
def test_most_of_those_that_switched_have_to_be_judged(count: int, goes_on: bool) -> None:
    rollout = Rollout(night_at=day(0), batch_at=day(0))
    batch = [(judged(0.0, 1),)] * count + [()] * (10 - count)
    assert next_night(rollout, batch, day(1), weekend=False).allowed is goes_on


def test_a_week_without_enough_of_them_judged_halves() -> None:
    rollout = Rollout(share=0.2, night_at=day(7), batch_at=day(0))
    later = next_night(rollout, [()], day(8), weekend=False)
    assert (later.share, later.allowed) == (0.1, True)


def test_a_small_fleet_moves_one_at_a_time() -> None:
    assert [Rollout(share=share).limit(3, MONDAY) for share in (0.01, 0.05, 0.4, 0.8)] == [1, 1, 2, 3]
    assert Rollout().limit(0, MONDAY) == 1


@given(st.lists(st.floats(-2.0, 3.0), max_size=40), st.integers(1, 500))
def test_no_night_moves_more_than_twice_the_last_and_a_pause_lasts_a_week(nights: list[float], size: int) -> None:
    fleet, paused_at = Fleet(size), -PAUSE_S
    for number, excess in enumerate(nights):
        fleet.excess, fleet.waiting = excess, size
        before = fleet.rollout
        switched = fleet.night(number)
        assert switched <= max(1, ceil(size * max(FIRST_SHARE, 2 * before.share)))
        assert not switched or day(number) >= paused_at + PAUSE_S
        paused_at = day(number) if fleet.rollout.paused_until not in (None, before.paused_until) else paused_at
        assert 0.0 < fleet.rollout.share <= 1.0


def test_what_was_promised_to_the_last_digit_may_differ_a_little() -> None:
    assert JudgedDay.of(1.0, Promise(j=1.0, spread=0.0), False, MONDAY).excess == 0.0
    assert JudgedDay.of(1.02, Promise(j=1.0, spread=0.0), False, MONDAY).excess == pytest.approx(2.0)


# --- who switches ----------------------------------------------------------------------------------------------------


def switching(place: str, count: int, gain: float) -> list[Verdict]:
    return [verdict(f"{place}-{number:02d}", VerdictKind.SWITCHED, gain) for number in range(count)]


def places(findings: list[Verdict]) -> dict[str, str]:
    return {each.uid: each.uid.rpartition("-")[0] for each in findings}


def test_one_tenant_cannot_take_all_switches() -> None:
    findings = switching("evil", 10, 0.5) + switching("shop", 90, 0.2)
    decided = let_switch(findings, places(findings), 5, WHY)
    chosen = [each.uid for each in decided if each.kind is VerdictKind.SWITCHED]
    assert chosen == ["evil-00", "evil-01", "evil-02", "shop-00", "shop-01"]


FINDINGS = st.lists(
    st.tuples(st.sampled_from(VerdictKind), st.sampled_from("abc"), st.floats(0.02, 0.6)), max_size=60
).map(lambda drawn: [verdict(f"{place}-{n:02d}", kind, gain) for n, (kind, place, gain) in enumerate(drawn)])


@given(FINDINGS, st.integers(0, 70))
def test_namespaces_take_turns_and_nobody_is_forgotten(findings: list[Verdict], left: int) -> None:
    where = places(findings)
    decided = let_switch(findings, where, left, WHY)
    assert [each.uid for each in decided] == [each.uid for each in findings]
    wanted = [each for each in findings if each.kind is VerdictKind.SWITCHED]
    now = {each.uid for each in decided if each.kind is VerdictKind.SWITCHED}
    assert len(now) == min(left, len(wanted))
    for place in set(where.values()):
        mine = sorted((each for each in wanted if where[each.uid] == place), key=lambda each: (-each.gain, each.uid))
        got = sum(each.uid in now for each in mine)
        assert {each.uid for each in mine[:got]} <= now, "the best of each namespace first"
        others = [sum(where[uid] == other for uid in now) for other in set(where.values()) - {place}]
        assert got == len(mine) or all(count <= got + 1 for count in others), "who wants more has a fair share"
    untouched = [each for each in decided if each.kind is not VerdictKind.SWITCHED and each.reason != WHY]
    assert untouched == [each for each in findings if each.kind is not VerdictKind.SWITCHED]
    assert let_switch(findings[::-1], where, left, WHY) == decided[::-1], "the order of asking does not matter"
