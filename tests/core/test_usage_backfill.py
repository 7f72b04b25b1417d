"""Whole series at once are what one sample after the other would have been, and a book that takes them over goes on."""

from __future__ import annotations

from math import nan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.core.usage import ContainerSample, HistogramSettings, UsageHistograms, usages
from trimtab.core.usage.backfill import ContainerSeries, adopt, observe_cpu, observe_memory
from trimtab.series import Floats

NOW, STEP_S = 1_700_000_000.0, 60.0
QUICK = HistogramSettings(half_life_s=600.0, memory_window_s=900.0, fresh_s=300.0, confidence_s=600.0)
KEYS = [("web", "a", "app"), ("web", "b", "app"), ("web", "b", "proxy"), ("db", "c", "app")]


def past_of(values: Floats) -> ContainerSeries:
    return ContainerSeries(KEYS, NOW + STEP_S * np.arange(values.shape[1], dtype=np.float64), values)


def whole(cpu: Floats, memory: Floats) -> UsageHistograms:
    book = UsageHistograms(QUICK)
    observe_cpu(book, past_of(cpu))
    observe_memory(book, past_of(memory))
    return book


def one_by_one(cpu: Floats, memory: Floats) -> UsageHistograms:
    book = UsageHistograms(QUICK)
    for step in range(cpu.shape[1]):
        at = NOW + STEP_S * step
        book.observe([ContainerSample(*key, at, cpu[i, step], memory[i, step]) for i, key in enumerate(KEYS)])
    return book


def holes(share: float, size: tuple[int, int], chance: np.random.Generator) -> Floats:
    return np.where(chance.random(size) < share, nan, chance.gamma(2.0, 1.0, size))


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), steps=st.integers(1, 120), share=st.sampled_from([0.0, 0.3, 0.9]))
def test_whole_series_are_what_their_samples_are(seed: int, steps: int, share: float) -> None:
    chance = np.random.default_rng(seed)
    cpu, memory = holes(share, (4, steps), chance), holes(share, (4, steps), chance) * 1e8
    left, right = whole(cpu, memory), one_by_one(cpu, memory)
    for bank, same in ((left.cpu, right.cpu), (left.memory, right.memory)):
        np.testing.assert_array_equal(bank.references, same.references)
        np.testing.assert_allclose(bank.weights, same.weights, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(bank.totals, same.totals, rtol=1e-9, atol=1e-9)
    for table, other in ((left.rows, right.rows), (left.sources, right.sources)):
        names = table.dtype.names
        assert names is not None
        for name in set(names) - {"created_at"}:
            np.testing.assert_allclose(table[name], other[name], rtol=1e-12, err_msg=name)
    at = NOW + STEP_S * steps
    assert usages(left, at) == usages(right, at)


def steady(cores: float, steps: int = 60) -> Floats:
    return np.full((4, steps), cores)


def test_a_book_that_takes_over_goes_on_where_the_series_end() -> None:
    book = UsageHistograms(QUICK)
    adopt(book, whole(steady(0.5), steady(3e8)), NOW)
    straight = one_by_one(steady(0.5), steady(3e8))
    for target in (book, straight):
        target.observe([ContainerSample(*key, NOW + 3600 + 60 * n, 0.7, 4e8) for key in KEYS for n in range(30)])
    assert usages(book, NOW + 5400) == usages(straight, NOW + 5400)


def test_what_was_known_is_replaced_and_not_added_to() -> None:
    book = UsageHistograms(QUICK)
    book.observe([ContainerSample("web", "a", "app", NOW + 3000 + 60 * n, 9.0, 9e9) for n in range(10)])
    book.observe([ContainerSample("web", "live-only", "app", NOW + 3540, 9.0, 9e9)])
    assert adopt(book, whole(steady(0.5), steady(3e8)), NOW) == {"web", "db"}
    fresh = whole(steady(0.5), steady(3e8))
    assert usages(book, NOW + 3600) == usages(fresh, NOW + 3600)
    book.observe([ContainerSample("web", "live-only", "app", NOW + 3600, 0.5, 3e8)])
    assert (book.memory.weights >= 0).all(), "nothing is taken back that is not there"


@pytest.mark.parametrize(
    ("from_s", "stays"),
    [
        pytest.param(-1800, True, id="ours goes further back"),
        pytest.param(600, False, id="theirs goes further back"),
    ],
)
def test_the_longer_watch_wins(from_s: int, stays: bool) -> None:
    book = UsageHistograms(QUICK)
    book.observe([ContainerSample("web", "a", "app", NOW + at, 9.0, 9e9) for at in range(from_s, 3540, 60)])
    adopt(book, whole(steady(0.5), steady(3e8)), NOW - 3600)
    cores = usages(book, NOW + 3600)["web"].containers["app"].target.cpu_cores
    assert cores is not None and (cores > 9.0) is stays


def test_a_watch_longer_than_the_past_that_was_asked_for_is_no_longer() -> None:
    """A checkpoint knows when its first sample was, for ever; what has decayed since does not count."""
    book = UsageHistograms(QUICK)
    book.observe([ContainerSample("web", "a", "app", NOW + at, 9.0, 9e9) for at in range(-36000, 3000, 60)])
    assert "web" in adopt(book, whole(steady(0.5), steady(3e8)), NOW)


def test_kills_stay_known() -> None:
    book = UsageHistograms(QUICK)
    book.observe_oom("web", "a", "app", NOW + 3500, 1e9)
    adopt(book, whole(steady(0.5), steady(3e8)), NOW)
    assert usages(book, NOW + 3600)["web"].containers["app"].oom_at == NOW + 3500


def test_nothing_measured_is_nothing_known() -> None:
    empty = np.full((4, 5), nan)
    book = UsageHistograms(QUICK)
    assert adopt(book, whole(empty, empty), NOW) == set(), "rows without a sample take nobody's place"
    assert book.keys() == []
