"""The bridge: its levels, how long it holds them, and that it forgets nothing it may still need."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.core.bridge import CALM_S, LEVEL, Needed, factor_of, level_needed, still_needed

STEP_S = 15.0


@pytest.mark.parametrize(
    ("load", "level"),
    [(0.0, 1.0), (7.5, 1.0), (7.51, 1.25), (9.375, 1.25), (9.4, 1.5), (11.25, 1.5), (100.0, 1.5)],
)
def test_ten_ready_pods_get_the_lowest_level_that_carries_the_load(load: float, level: float) -> None:
    assert level_needed(load, 10, 0.75, 1.5) == level


def test_without_ready_pods_there_is_nothing_to_resize() -> None:
    assert level_needed(5.0, 0, 0.75, 1.5) == 1.0


def test_the_largest_factor_binds_even_between_two_levels() -> None:
    assert level_needed(9.0, 10, 0.75, 1.1) == 1.1
    assert level_needed(30.0, 10, 0.75, 2.0) == 2.0


def test_up_at_once_and_down_after_five_calm_minutes() -> None:
    needed = still_needed((), 1.5, 0.0)
    assert factor_of(needed) == 1.5
    assert factor_of(still_needed(needed, 1.0, CALM_S - STEP_S)) == 1.5
    assert factor_of(still_needed(needed, 1.0, CALM_S)) == 1.0


def test_a_lower_level_needed_meanwhile_holds_its_own_five_minutes() -> None:
    needed = still_needed(still_needed((), 1.5, 0.0), 1.25, 150.0)
    assert factor_of(needed) == 1.5
    assert factor_of(still_needed(needed, 1.0, CALM_S)) == 1.25
    assert factor_of(still_needed(needed, 1.0, CALM_S + 150.0)) == 1.0


@given(st.lists(st.sampled_from([1.0, 1.25, 1.5, 1.75]), min_size=1, max_size=60))
def test_the_factor_is_the_highest_level_of_the_last_five_minutes(levels: list[float]) -> None:
    needed: Needed = ()
    for step, level in enumerate(levels):
        needed = still_needed(needed, level, step * STEP_S)
        window = levels[max(0, step + 1 - round(CALM_S / STEP_S)) : step + 1]
        assert factor_of(needed) == max(window)
        assert len(needed) <= 0.75 / LEVEL
