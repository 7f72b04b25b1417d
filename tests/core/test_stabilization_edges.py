"""The exact seconds at which a recommendation enters and leaves a stabilization window."""

from __future__ import annotations

import pytest

from trimtab.core.settle.stabilise import remember, window_edges


@pytest.mark.parametrize(
    "age_s, slots",
    [
        pytest.param(59.0, 2, id="inside the window"),
        pytest.param(60.0, 2, id="as old as the window"),
        pytest.param(61.0, 1, id="older than the window"),
    ],
)
def test_a_slot_is_reused_only_after_the_window(age_s: float, slots: int) -> None:
    assert len(remember(((1000.0 - age_s, 5),), 1000.0, 4, 60.0)) == slots


@pytest.mark.parametrize(
    "recommended_at, counts",
    [pytest.param(940.0, False, id="on the cutoff"), pytest.param(941.0, True, id="after the cutoff")],
)
def test_only_recommendations_after_the_cutoff_count(recommended_at: float, counts: bool) -> None:
    assert window_edges(5, ((recommended_at, 2),), 940.0, 940.0) == (2 if counts else 5, 5)
    assert window_edges(5, ((recommended_at, 8),), 940.0, 940.0) == (5, 8 if counts else 5)
