"""When the operator ticks; what it does then is shown on the real control plane."""

from __future__ import annotations

import pytest

from trimtab.live.operator import next_due


@pytest.mark.parametrize(
    ("now", "due"),
    [
        pytest.param(101.0, 115.0, id="woken and finished late: the next tick keeps its place"),
        pytest.param(20.0, 35.0, id="the clock was set back: nobody waits for it"),
        pytest.param(160.0, 160.0, id="three periods missed: one tick now, none to make up for them"),
    ],
)
def test_ticks_keep_their_places(now: float, due: float) -> None:
    assert next_due(100.0, 15.0, now) == due
