"""A backtest that compares nothing says so."""

from __future__ import annotations

import numpy as np

from trimtab.tune.demand import Demand, idle_note


def test_a_load_that_the_floor_carries_is_doubted() -> None:
    demand = Demand("web", np.array([1.0, 20.0]), 0.0)
    assert "unit of the target" in idle_note(demand, 71.4, 2)
    assert idle_note(demand, 5.0, 2) == ""
