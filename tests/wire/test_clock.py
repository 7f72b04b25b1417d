"""The clock of the API server, as its answers tell it: whole seconds, slow answers, steps of our own clock."""

from __future__ import annotations

from email.utils import formatdate
from math import floor

from hypothesis import given
from hypothesis import strategies as st

from tests.virtual.clock import HandClock
from trimtab.wire.clock import EXACT_S, SLOWEST_S, ServerClock

START = 1_700_000_000.0
ANSWERS = st.lists(st.tuples(st.floats(0, 30), st.floats(0, 10), st.floats(0, 1)), min_size=1, max_size=12)
OFFSETS = st.one_of(st.floats(-1e6, 1e6), st.floats(-3, 3), st.just(0.0))


def answered(ours: HandClock, clock: ServerClock, ahead_s: float, took: tuple[float, float, float]) -> None:
    """The API server stamps an answer somewhere between request and answer; its time is right, ours is `ahead_s`."""
    pause_s, answer_s, share = took
    ours.wall, ours.boot = ours.wall + pause_s, ours.boot + pause_s
    sent, stamped = ours.boot, ours.wall - ahead_s + share * answer_s
    ours.wall, ours.boot = ours.wall + answer_s, ours.boot + answer_s
    clock.heard(sent, formatdate(floor(stamped), usegmt=True))


@given(OFFSETS, ANSWERS)
def test_it_is_right_within_two_seconds_after_any_quick_answer(
    ahead_s: float, answers: list[tuple[float, float, float]]
) -> None:
    ours = HandClock(wall=START + ahead_s)
    clock = ServerClock(ours)
    for took in answers:
        answered(ours, clock, ahead_s, took)
        if any(answer_s <= SLOWEST_S for _, answer_s, _ in answers[: answers.index(took) + 1]):
            assert abs(clock.now() - (ours.wall - ahead_s)) <= EXACT_S + 0.5 + SLOWEST_S / 2


@given(ANSWERS)
def test_a_right_clock_is_never_corrected_however_slow_the_answers(answers: list[tuple[float, float, float]]) -> None:
    ours = HandClock(wall=START)
    clock = ServerClock(ours)
    for took in answers:
        answered(ours, clock, 0.0, took)
        assert (clock.now(), clock.offset_s, clock.trouble, clock.unfit) == (ours.wall, 0.0, "", False)


@given(st.floats(-1e6, 1e6))
def test_a_step_of_our_own_clock_changes_nothing_once_the_server_is_known(step_s: float) -> None:
    ours = HandClock(wall=START)
    clock = ServerClock(ours)
    for _ in range(5):
        answered(ours, clock, 0.0, (1.0, 0.1, 0.5))
    before = clock.now()
    ours.wall += step_s
    assert abs(clock.now() - before) <= EXACT_S + 1.0


def test_samples_that_are_repeated_say_nothing_about_clocks() -> None:
    """A metrics server that repeats an old answer agrees with a clock that is behind; the API server is right."""
    ours = HandClock(wall=START - 600)
    clock = ServerClock(ours)
    answered(ours, clock, -600.0, (1.0, 0.1, 0.5))
    sampled_at = clock.now()
    for _ in range(60):
        clock.compare(sampled_at)
        ours.wall, ours.boot = ours.wall + 15, ours.boot + 15
        assert not clock.server_is_wrong and abs(clock.now() - ours.wall - 600) < 2
