"""The percentiles of Crane's HPA recommendation: of the load, at the end of a bucket; and the rank rule."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.core.forecast import percentile as model
from trimtab.core.model import Forecast, Missing
from trimtab.core.weighted_percentile import CRANE, PercentileOptions, estimate, rank_percentile, weighted_percentiles
from trimtab.errors import NotEnoughData
from trimtab.series import Frame

DAY = 288


def frame(*rows: list[float]) -> Frame:
    return Frame(tuple(map(str, range(len(rows)))), 0.0, 300.0, np.array(rows))


def test_a_percentile_is_of_the_load_not_of_the_time() -> None:
    """Nine tenths of the time at 0.1 core are less than half of the load."""
    assert weighted_percentiles(
        frame([0.15] * 90 + [1.55] * 10), PercentileOptions(bucket_size=0.1, max_value=100, percentile=0.5, exact=True)
    )[0] == pytest.approx(1.6)


def test_margin_and_target_utilisation() -> None:
    options = PercentileOptions(bucket_size=0.1, max_value=100, margin=0.15, target_utilization=0.5, exact=True)
    assert estimate(frame([0.45] * 10), options)[0] == pytest.approx(0.5 * 1.15 / 0.5)


def test_old_load_fades_unless_exact() -> None:
    busy_then_quiet = [5.05] * DAY + [1.05] * 6 * DAY
    linear = PercentileOptions(bucket_size=0.1, max_value=100, percentile=0.95)
    assert weighted_percentiles(frame(busy_then_quiet), linear)[0] == pytest.approx(1.1)
    assert weighted_percentiles(frame(busy_then_quiet), CRANE)[0] == pytest.approx(5.1)


def test_default_buckets_fit_any_unit() -> None:
    for scale in (0.05, 3.0, 4e9):
        assert estimate(frame([scale] * 20))[0] == pytest.approx(scale, rel=0.06)


def test_forecast_is_constant_and_silent_without_samples() -> None:
    known, empty = model.forecast(frame([2.0, 2.0], [np.nan, np.nan]), 3600.0, 600.0)
    assert isinstance(known, Forecast)
    assert known.at_quantile(0.5) >= 2.0
    assert isinstance(empty, Missing)
    assert empty.detail == "no sample in the whole history"


def test_more_rows_than_a_chunk_are_answered_one_by_one() -> None:
    rows = [[float(1 + row % 7)] * 3 for row in range(1203)]
    together = weighted_percentiles(frame(*rows))
    assert (
        together.tolist() == [weighted_percentiles(frame(row))[0] for row in rows[:7]] * 171 + together[1197:].tolist()
    )


@pytest.mark.parametrize(
    "values, percent, wanted",
    [
        pytest.param([5.0], 95, 5.0, id="a single value"),
        pytest.param([3.0, 1.0, 2.0, 4.0], 50, 2.0, id="a whole rank"),
        pytest.param([3.0, 1.0, 2.0, 4.0], 60, 2.5, id="between two ranks: their mean"),
        pytest.param([3.0, 1.0, 2.0, 4.0], 100, 4.0, id="the largest"),
    ],
)
def test_rank_percentile(values: list[float], percent: float, wanted: float) -> None:
    assert rank_percentile(np.array(values), percent) == wanted


@pytest.mark.parametrize("values, percent", [([], 50), ([1.0, 2.0], 10), ([1.0, 2.0], 0), ([1.0, 2.0], 101)])
def test_a_rank_that_does_not_exist(values: list[float], percent: float) -> None:
    with pytest.raises(NotEnoughData, match="have no percentile"):
        rank_percentile(np.array(values), percent)


@settings(max_examples=50)
@given(st.lists(st.floats(0, 99), min_size=1, max_size=50), st.floats(0.01, 1), st.floats(0.01, 1))
def test_percentiles_are_ordered_and_cover_the_largest(values: list[float], one: float, other: float) -> None:
    low, high = sorted((one, other))
    options: dict[str, Any] = {"bucket_size": 0.1, "max_value": 100.0, "exact": True}
    found = [
        weighted_percentiles(frame(values), PercentileOptions(percentile=p, **options))[0] for p in (low, high, 1.0)
    ]
    assert found == sorted(found)
    assert found[-1] >= max(values) - 1e-9
