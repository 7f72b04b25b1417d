"""The priced policy: what a forecast is worth at a price."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from trimtab.core.model import Quantile
from trimtab.core.priced import into_band, level, levels, load_above

PROBABILITIES = np.array([0.5, 0.9, 0.99])
DEMAND = (Quantile(0.5, 8.0), Quantile(0.9, 12.0), Quantile(0.99, 20.0))


def test_a_low_price_buys_the_median_and_a_high_one_the_tail() -> None:
    assert level(DEMAND, price=0.0) == 10
    assert level(DEMAND, price=3.0) == 15
    assert level(DEMAND, price=100.0) == 25


def test_what_is_bought_never_costs_more_than_any_other_level() -> None:
    values = np.array([[quantile.value for quantile in DEMAND]])
    pods, above = np.ceil(values / 0.8), load_above(PROBABILITIES, values)
    for price in (0.5, 2.0, 8.0, 32.0):
        chosen = levels(PROBABILITIES, values, [price])[0, 0]
        assert (pods + price * above).min() == (pods + price * above)[pods == chosen][0]


def test_load_above_a_quantile_counts_all_of_what_lies_beyond() -> None:
    above = load_above(PROBABILITIES, np.array([[8.0, 12.0, 20.0]]))[0]
    last = 0.01 * 20.0 * 4 / 3
    assert np.allclose(above, [0.4 * 10.0 + 0.09 * 16.0 + last, 0.09 * 16.0 + last, last])


def test_a_higher_service_level_needs_fewer_pods() -> None:
    assert level(DEMAND, price=3.0, service_level=1.0) == 12


@given(st.floats(0.0, 500.0), st.floats(1.0, 4.0))
def test_a_higher_price_never_buys_less(price: float, factor: float) -> None:
    assert level(DEMAND, price * factor) >= level(DEMAND, price)


def test_pods_move_as_little_as_needed_into_the_band() -> None:
    assert [into_band(pods, 5, 8) for pods in (3, 6, 10)] == [5, 6, 8]
    assert into_band(3, start=9, keep=4) == 9
