"""The rolling backtest by hand, and that a day is never judged by a later one."""

from __future__ import annotations

import numpy as np
import pytest

from trimtab.tune.rolling_choice import choose, fade, takeover


def test_a_better_candidate_takes_over_from_the_first_scored_day_on() -> None:
    j = np.array([[100.0] * 5, [90.0] * 5])
    assert choose(j, first_day=2, incumbent=0).tolist() == [0, 0, 1, 1, 1]


def test_a_gain_below_two_percent_changes_nothing() -> None:
    assert takeover(np.array([100.0, 98.1]), current=0) == 0
    assert takeover(np.array([100.0, 97.9]), current=0) == 1


def test_half_of_a_day_is_forgotten_in_a_week() -> None:
    scores = np.array([64.0])
    for _ in range(7):
        scores = fade(scores, np.array([0.0]))
    assert scores[0] == pytest.approx(32.0)


def test_no_choice_looks_ahead() -> None:
    j = np.random.default_rng(4).uniform(90, 110, size=(20, 30))
    changed = j.copy()
    changed[:, 15:] = np.random.default_rng(5).uniform(1, 500, size=(20, 15))
    before, after = choose(j, 3, 0), choose(changed, 3, 0)
    assert (before[:16] == after[:16]).all(), "day 15 is chosen by the days before it"
    assert (before != after).any()
