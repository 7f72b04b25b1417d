"""What is worked out from stored samples equals what a real Prometheus answers to the query, whatever was scraped."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import numpy as np
import pytest

from tests.history.filled import Filled, push, serve
from trimtab.history.promql import STALE
from trimtab.history.query_pages import QueryPage, StoredQuery, query_page
from trimtab.history.source import time_grid
from trimtab.history.stored_samples import read_stored
from trimtab.series import Floats, Frame
from trimtab.wire.access import prometheus_access
from trimtab.wire.prometheus import Prometheus

pytestmark = [pytest.mark.e2e, pytest.mark.smoke]

START, HOURS, SERIES = 1_760_000_400, 2, 60
STALE_MARK = np.array([STALE], dtype=np.uint64).view(np.float64)[0]


def scraped(seed: int) -> Filled:
    """A counter as bad days make them: its own interval and jitter, gaps, resets, ends, NaN, and starts from zero."""
    dice = np.random.default_rng(seed)
    interval_ms = int(dice.choice([5_000, 15_000, 30_000, 60_000, 61_700]))
    times = START * 1000 + np.arange(-600_000, HOURS * 3_600_000, interval_ms)
    if seed % 3:
        times = times + dice.integers(0, interval_ms // 3, len(times))
    values = np.cumsum(dice.exponential(1.0, len(times)) * (dice.random(len(times)) < 0.9))
    values += dice.choice([0.0, 3.0, 1e6])
    for at in dice.integers(0, len(times), dice.integers(0, 8)):  # the container started again
        values[at:] -= values[at] - dice.choice([0.0, 0.5])
    values[dice.random(len(times)) < 0.02] = STALE_MARK
    values[dice.random(len(times)) < 0.01] = np.nan
    kept = dice.random(len(times)) > dice.choice([0.0, 0.05, 0.5])
    for begin in dice.integers(0, len(times), 3):  # nobody scraped for a while
        kept[begin : begin + int(dice.integers(1, 1_500_000 // interval_ms))] = False
    return Filled(f'used{{seed="{seed}"}}', times[kept], np.abs(values)[kept])


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serve(tmp_path_factory.mktemp("written"), "--web.enable-remote-write-receiver") as (address, _):
        push(address, map(scraped, range(SERIES)))
        yield address


def both(url: str, rate_s: float | None, step_s: float) -> tuple[Frame, Frame]:
    async def run() -> tuple[Frame, Frame]:
        expression = f"rate(used[{rate_s * 1000:.0f}ms])" if rate_s else "used"
        page = QueryPage(expression, lambda labels: labels["seed"], stored=StoredQuery('__name__="used"', rate_s, dict))
        whole = time_grid(START, START + HOURS * 3600, step_s)
        async with Prometheus(prometheus_access(url)) as prometheus:
            return await read_stored(prometheus, page, whole), await query_page(prometheus, page, whole)

    return asyncio.run(run())


def by_name(frame: Frame) -> dict[str, Floats]:
    return {name: row for name, row in zip(frame.names, frame.values, strict=True) if np.isfinite(row).any()}


@pytest.mark.parametrize("step_s", [10.0, 60.0, 300.0])
@pytest.mark.parametrize("rate_s", [pytest.param(None, id="value"), 180.0, 300.0, 61.7])
def test_equal_to_the_query(url: str, rate_s: float | None, step_s: float) -> None:
    ours, theirs = map(by_name, both(url, rate_s, step_s))
    assert ours.keys() == theirs.keys() and len(theirs) > SERIES / 2
    assert sum(np.isnan(row).sum() for row in theirs.values()) > 20, "the days were not bad enough"
    for name, row in theirs.items():
        np.testing.assert_allclose(ours[name], row, rtol=1e-9, atol=0, err_msg=f"seed {name}")
