"""Histograms, memory peaks, estimates and checkpoints: worked examples and properties."""

from __future__ import annotations

import json
from math import nan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.core.model import Estimate
from trimtab.core.usage import ContainerSample, HistogramSettings, UsageHistograms, usages
from trimtab.core.usage import bucket_edges as shapes
from trimtab.core.usage.bank import Bank
from trimtab.core.usage.estimate import LOWER, UPPER, confidence, with_confidence, with_margin
from trimtab.core.usage.histogram_checkpoint import load, save
from trimtab.errors import InvalidInput
from trimtab.policy import Size

NOW = 1_700_000_000.0
HOUR, DAY = 3600.0, 86400.0
MIB = 1024.0**2
TENS = shapes.linear(100, 10)


def book_of(samples: list[tuple[float, float, float]], settings: HistogramSettings | None = None) -> UsageHistograms:
    """(seconds after NOW, cores, bytes) of one container."""
    book = UsageHistograms(settings)
    book.observe([ContainerSample("web", "pod", "app", NOW + after, cpu, memory) for after, cpu, memory in samples])
    return book


def estimate(book: UsageHistograms, at: float) -> Estimate:
    return usages(book, at)["web"].containers["app"]


def every_minute(
    minutes: int, cores: float = 0.2, size: float = 3e8, start: float = 0.0
) -> list[tuple[float, float, float]]:
    return [(start + 60.0 * minute, cores, size) for minute in range(minutes)]


# --- buckets and banks -----------------------------------------------------------------------------------------------


def test_linear_buckets() -> None:
    assert TENS.starts.tolist() == [10.0 * n for n in range(11)]
    assert TENS.find([-5.0, 0.0, 9.99, 10.0, 100.0, 5000.0]).tolist() == [0, 0, 0, 1, 10, 10]


def test_exponential_buckets_double() -> None:
    made = shapes.exponential(most=15.0, first=1.0, ratio=2.0)
    assert made.starts.tolist() == [0.0, 1.0, 3.0, 7.0, 15.0]
    assert made.find([0.5, 1.0, 6.9, 7.0, 99.0]).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("make", [lambda: shapes.linear(1, 0), lambda: shapes.exponential(1, 0.1, 1.0)])
def test_impossible_buckets_are_refused(make: object) -> None:
    with pytest.raises(InvalidInput, match="bucket"):
        make()  # type: ignore[operator]


def test_a_percentile_is_the_end_of_its_bucket_for_all_rows_at_once() -> None:
    bank = Bank(TENS, 3)
    bank.add([0, 0, 0, 1], [5.0, 15.0, 95.0, 200.0], [5.0, 4.0, 1.0, 1.0])
    assert bank.percentiles([0.5, 0.9, 0.91]).tolist() == [[10.0, 100.0, 0.0], [20.0, 100.0, 0.0], [100.0, 100.0, 0.0]]
    assert bank.empty().tolist() == [False, False, True]


def test_a_sample_taken_back_is_gone() -> None:
    bank = Bank(TENS, 1, DAY)
    bank.add([0, 0], [15.0, 55.0], 1.0, NOW)
    bank.subtract([0], 55.0, 1.0, NOW)
    assert bank.percentiles([1.0]).tolist() == [[20.0]]
    bank.subtract([0], 15.0, 1.0, NOW)
    assert bank.empty()[0] and bank.totals[0] == 0.0


def test_a_half_life_halves() -> None:
    bank = Bank(TENS, 1, DAY)
    bank.add([0, 0], [15.0, 55.0], [1.0, 1.0], [NOW, NOW + DAY])
    assert bank.weights[0, 5] == 2 * bank.weights[0, 1]


def test_a_hundred_half_lives_forget() -> None:
    bank = Bank(TENS, 2, DAY)
    bank.add([0, 1], [95.0, 95.0], 1.0, NOW)
    bank.add([0], 5.0, 1.0, NOW + 120 * DAY)
    assert bank.percentiles([1.0]).tolist() == [[10.0, 100.0]]
    assert bank.references[0] > bank.references[1]


SAMPLES = st.lists(
    st.tuples(st.integers(0, 2), st.floats(0, 120), st.floats(0.1, 10), st.floats(0, 300)),
    min_size=1,
    max_size=25,
)


def rows_of(samples: list[tuple[int, float, float, float]]) -> tuple[np.ndarray, ...]:
    rows, values, weights, days = zip(*samples, strict=True)
    return np.array(rows), np.array(values), np.array(weights), NOW + DAY * np.array(days)


@given(SAMPLES, st.lists(st.floats(0, 1), min_size=2, max_size=5))
def test_percentiles_grow_with_the_probability(
    samples: list[tuple[int, float, float, float]], probabilities: list[float]
) -> None:
    bank = Bank(TENS, 3, DAY)
    bank.add(*rows_of(samples))
    assert (np.diff(bank.percentiles(sorted(probabilities)), axis=0) >= 0).all()


@given(SAMPLES, st.randoms(use_true_random=False))
def test_the_order_of_samples_does_not_matter(samples: list[tuple[int, float, float, float]], dice: object) -> None:
    together, one_by_one = Bank(TENS, 3, DAY), Bank(TENS, 3, DAY)
    together.add(*rows_of(samples))
    shuffled = list(samples)
    dice.shuffle(shuffled)  # type: ignore[attr-defined]
    for sample in shuffled:
        one_by_one.add(*rows_of([sample]))
    shift = np.exp2((one_by_one.references - together.references) / DAY)[:, None]
    assert np.allclose(together.weights, one_by_one.weights * shift, rtol=1e-9, atol=1e-9)
    assert np.allclose(together.totals, one_by_one.totals * shift[:, 0], rtol=1e-9, atol=1e-9)


@given(SAMPLES)
def test_a_batch_of_rows_is_each_row_alone(samples: list[tuple[int, float, float, float]]) -> None:
    bank = Bank(TENS, 3, DAY)
    bank.add(*rows_of(samples))
    for row in range(3):
        alone = Bank(TENS, 1, DAY)
        own = [(0, *rest) for which, *rest in samples if which == row]
        if own:
            alone.add(*rows_of(own))  # type: ignore[arg-type]
        assert alone.percentiles([0.5, 0.9]).ravel().tolist() == bank.percentiles([0.5, 0.9])[:, row].tolist()


# --- estimates -------------------------------------------------------------------------------------------------------


def test_margin_and_saturation() -> None:
    assert with_margin([199.0, 1e14], 0.15).tolist() == [228.0, 1e14]


def test_bounds_close_in_with_history() -> None:
    trust = confidence(0.0, np.array([0.0, HOUR, DAY, 10 * DAY]), np.array([1, 60, 1440, 14400]), DAY)
    assert trust.tolist() == pytest.approx([0.0, 1 / 24, 1.0, 10.0])
    assert with_confidence(1000.0, trust, UPPER).tolist() == [1e14, 25000.0, 2000.0, 1100.0]
    assert with_confidence(1000.0, trust, LOWER).tolist() == [0.0, 953.0, 998.0, 999.0]


def test_few_samples_over_a_long_time_are_little_trust() -> None:
    assert confidence(0.0, 5 * DAY, 144, DAY) == pytest.approx(0.1)


def test_a_steady_container_needs_its_bucket_and_the_margin() -> None:
    found = estimate(book_of(every_minute(2880)), NOW + 2 * DAY)
    # 0.2 cores end in a bucket at 0.207 cores, 3e8 bytes in one at 314 MB; both plus 15 %.
    ends = shapes.CPU.ends[shapes.CPU.find(0.2)], shapes.MEMORY.ends[shapes.MEMORY.find(3e8)]
    assert found.target.cpu_cores == pytest.approx(1.15 * ends[0], abs=0.002)
    assert found.target.memory_bytes == pytest.approx(1.15 * ends[1], abs=2)
    assert found.observed_s == 2879 * 60.0 and found.memory_peak_bytes == 3e8 and found.oom_at is None
    assert found.lower.cpu_cores and found.target.cpu_cores and found.upper.cpu_cores
    assert found.lower.cpu_cores < found.target.cpu_cores < found.upper.cpu_cores


def test_usage_expires_with_its_samples() -> None:
    found = usages(book_of(every_minute(10)), NOW + 30 * DAY)["web"]
    assert found.made_at == NOW + 30 * DAY and found.expires_at == NOW + 540.0 + HOUR


def test_a_resource_never_measured_has_no_amount() -> None:
    assert estimate(book_of([(0.0, 0.5, nan)]), NOW).target == Size(cpu_cores=0.587)
    assert estimate(book_of([(0.0, nan, 5e8)]), NOW).target.cpu_cores is None


@pytest.mark.parametrize("bad", [-1.0, nan, float("inf")])
def test_what_is_no_sample_changes_nothing(bad: float) -> None:
    book = book_of([(0.0, 0.5, 5e8)])
    before = estimate(book, NOW + 60)
    book.observe(
        [ContainerSample("web", "pod", "app", NOW + 60, bad, bad), ContainerSample("web", "pod", "app", nan, 9.0, 9e9)]
    )
    assert estimate(book, NOW + 60) == before


def test_a_sample_that_is_not_newer_is_left_out() -> None:
    book = book_of([(60.0, 0.5, 5e8), (0.0, 0.5, 5e8), (60.0, 0.7, 5e8)])
    assert int(book.rows["count"][0]) == 2  # sorted by time, and the second at 60 s is a repetition


def test_pods_of_a_workload_share_a_row_and_others_do_not() -> None:
    book = UsageHistograms()
    book.observe([ContainerSample(w, p, "app", NOW, 0.1, 1e8) for w, p in (("a", "1"), ("a", "2"), ("b", "1"))])
    assert book.keys() == [("a", "app"), ("b", "app")]
    assert book.rows["count"].tolist() == [2, 1]


# --- memory peaks, OOM kills, forgetting -----------------------------------------------------------------------------


def test_only_the_peak_of_a_window_counts() -> None:
    book = book_of([(0.0, nan, 2e8), (HOUR, nan, 9e8), (2 * HOUR, nan, 3e8)])
    alone = Bank(shapes.MEMORY, 1, DAY)
    alone.add([0], 9e8, 1.0, NOW + DAY)
    assert np.array_equal(book.memory.weights, alone.weights)


def test_a_first_sample_of_nothing_does_not_hide_the_peak() -> None:
    """Upstream never replaces a peak of 0 within its window; a container sampled while it starts would be lost."""
    found = estimate(book_of([(0.0, nan, 0.0), (HOUR, nan, 9e8)]), NOW + HOUR)
    assert found.target.memory_bytes is not None and found.target.memory_bytes > 9e8


def test_an_oom_kill_raises_the_estimate_without_compounding() -> None:
    book = book_of([(0.0, nan, 1000 * MIB)])
    for second in range(5):
        assert book.observe_oom("web", "pod", "app", NOW + second, 500 * MIB)
    assert book.sources["oom_peak"][0] == 1200 * MIB
    found = estimate(book, NOW + 60)
    assert found.oom_at == NOW + 4
    assert found.target.memory_bytes is not None and found.target.memory_bytes > 1.15 * 1200 * MIB


def test_an_oom_kill_of_a_container_never_sampled_counts() -> None:
    book = UsageHistograms()
    assert book.observe_oom("web", "pod", "app", NOW, 100 * MIB)
    target = estimate(book, NOW).target
    assert target.cpu_cores is None and target.memory_bytes is not None and target.memory_bytes > 200 * MIB


def test_an_old_oom_kill_does_not_count() -> None:
    book = book_of([(2 * DAY, 0.1, 1e8)])
    assert not book.observe_oom("web", "pod", "app", NOW, 100 * MIB)
    assert estimate(book, NOW + 2 * DAY).oom_need_bytes == 200 * MIB, "what it taught counts for eight days"
    assert estimate(book, NOW + 8 * DAY).oom_need_bytes is None


def test_the_peak_is_unknown_until_a_window_was_watched() -> None:
    book = book_of(every_minute(1440))
    assert estimate(book, NOW + DAY - 60).memory_peak_bytes is None
    assert estimate(book, NOW + DAY).memory_peak_bytes == 3e8


def test_the_peak_outlives_its_window_and_its_pod() -> None:
    book = book_of(every_minute(1440, size=3e8) + every_minute(700, size=1e8, start=DAY))
    book.observe([ContainerSample("web", "other", "app", NOW + DAY + 43000.0, 0.1, 2e8)])
    assert estimate(book, NOW + DAY + 43000.0).memory_peak_bytes == 3e8
    later = NOW + DAY + 43000.0 + DAY + 1
    assert estimate(book, later).memory_peak_bytes is None  # nobody has watched since


def test_a_weekly_peak_is_remembered_for_eight_days_and_over_a_restart() -> None:
    """Nine kills in three weeks: a half-life of a day forgets what happens once a week."""
    day = [(minute * 600.0, 0.1, 1e8) for minute in range(144)]
    week = [(start * DAY + at, cores, size) for start in range(7) for at, cores, size in day]
    book, at = book_of([(0.0, 0.1, 9e8), *week[1:]]), NOW + 7 * DAY
    again = UsageHistograms()
    load(again, "web", "app", json.loads(json.dumps(save(book, "web", "app", at))))
    for each in (book, again):
        found = estimate(each, at)
        assert found.memory_peak_bytes == 9e8
        assert found.target.memory_bytes == pytest.approx(9e8 * 1.15)
        later = estimate(each, at + 3 * DAY).target.memory_bytes
        assert later is not None and later < 2e8, "after eight days it counts no longer"


def test_a_hole_starts_the_watch_again() -> None:
    book = book_of(every_minute(1440) + every_minute(60, size=1e8, start=DAY + 3 * HOUR))
    assert estimate(book, NOW + DAY + 4 * HOUR).memory_peak_bytes is None


def test_a_hole_is_no_time_of_samples_and_a_restart_knows_it() -> None:
    """Downward only after 24 h of samples: not 2 h of them around a day in which nobody looked."""
    hour = every_minute(60)
    book, at = book_of(hour + every_minute(60, start=DAY)), NOW + DAY + HOUR
    assert estimate(book, at).observed_s == 2 * 59 * 60.0
    again = UsageHistograms()
    load(again, "web", "app", save(book, "web", "app", at))
    assert estimate(again, at).observed_s == 2 * 59 * 60.0


def test_forgetting_keeps_the_living() -> None:
    book = UsageHistograms(HistogramSettings(memory_windows=2))
    book.observe([ContainerSample("old", "pod", "app", NOW, 0.1, 1e8)])
    book.observe([ContainerSample("new", "gone", "app", NOW + DAY, 0.2, 2e8)])
    book.observe([ContainerSample("new", "pod", "app", NOW + 3.5 * DAY, 0.2, 2e8)])
    before = usages(book, NOW + 3.5 * DAY)["new"]
    book.forget(NOW + 3.5 * DAY)
    assert book.keys() == [("new", "app")] and len(book.sources) == 1
    assert usages(book, NOW + 3.5 * DAY) == {"new": before}
    book.observe([ContainerSample("new", "pod", "app", NOW + 3.6 * DAY, 0.2, 2e8)])
    assert int(book.rows["count"][0]) == 3


def test_windows_and_half_lives_can_be_compressed() -> None:
    fast = HistogramSettings(half_life_s=60.0, memory_window_s=60.0, confidence_s=60.0, fresh_s=30.0)
    book = book_of([(float(second), 4.0, 4e9) for second in range(60)], fast)
    book.observe([ContainerSample("web", "pod", "app", NOW + 600.0 + second, 0.1, 1e8) for second in range(120)])
    target = estimate(book, NOW + 720.0).target
    assert target.cpu_cores is not None and target.cpu_cores < 0.2


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 72), st.floats(0, 1e11)), min_size=1, max_size=15, unique_by=lambda s: s[0]))
def test_the_bank_holds_exactly_the_peaks(samples: list[tuple[int, float]]) -> None:
    """Whatever comes: one peak for each window that was seen, stamped with its end."""
    book = book_of([(hour * HOUR, nan, size) for hour, size in samples])
    start = min(hour for hour, _ in samples)
    peaks: dict[int, float] = {}
    for hour, size in samples:
        window = (hour - start) // 24
        peaks[window] = max(peaks.get(window, 0.0), size)
    expected = Bank(shapes.MEMORY, 1, DAY)
    for window, size in sorted(peaks.items()):
        expected.add([0], size, 1.0, NOW + start * HOUR + (window + 1) * DAY)
    assert np.allclose(book.memory.weights, expected.weights, rtol=1e-9)


# --- checkpoints -----------------------------------------------------------------------------------------------------


def test_a_restart_forgets_nothing() -> None:
    book = book_of(every_minute(1440) + every_minute(30, cores=1.5, size=8e8, start=DAY))
    book.observe_oom("web", "pod", "app", NOW + DAY + 1800.0, 1e9)
    at = NOW + DAY + 1800.0
    again = UsageHistograms()
    load(again, "web", "app", json.loads(json.dumps(save(book, "web", "app", at))))
    before, after = estimate(book, at), estimate(again, at)
    assert after.memory_peak_bytes == before.memory_peak_bytes == 8e8
    assert (after.observed_s, after.oom_at) == (before.observed_s, before.oom_at)
    assert after.oom_need_bytes == before.oom_need_bytes == 1.2e9
    assert after.target.cpu_cores == pytest.approx(before.target.cpu_cores)
    assert after.target.memory_bytes == pytest.approx(before.target.memory_bytes)


def test_a_long_silence_before_the_restart_starts_the_watch_again() -> None:
    book, again = book_of(every_minute(1500)), UsageHistograms()
    load(again, "web", "app", save(book, "web", "app", NOW + 1500 * 60.0))
    again.observe([ContainerSample("web", "pod", "app", NOW + DAY + 12 * HOUR, 0.1, 1e8)])
    assert estimate(again, NOW + DAY + 12 * HOUR).memory_peak_bytes is None


def test_vpas_own_checkpoint_loads() -> None:
    status = {
        "version": "v3",
        "lastUpdateTime": "2026-03-01T12:00:00Z",
        "firstSampleStart": "2026-02-20T00:00:00Z",
        "lastSampleStart": "2026-03-01T11:59:00Z",
        "totalSamplesCount": 13000,
        "cpuHistogram": {
            "referenceTimestamp": "2026-03-01T00:00:00Z",
            "bucketWeights": {"36": 10000},
            "totalWeight": 12.5,
        },
        "memoryHistogram": {"bucketWeights": None, "totalWeight": 0},
    }
    book = UsageHistograms()
    load(book, "web", "app", status)
    found = estimate(book, NOW)
    assert found.target == Size(cpu_cores=1.168)
    assert found.observed_s == pytest.approx(9.5 * DAY - 60)
    assert found.memory_peak_bytes is None


@pytest.mark.parametrize(
    "change, message",
    [
        pytest.param({"version": "v9"}, "status.version", id="version"),
        pytest.param({"lastUpdateTime": "noon"}, "status.lastUpdateTime", id="time"),
        pytest.param({"memoryHistogram": None}, "status.memoryHistogram", id="no histogram"),
        pytest.param(
            {"cpuHistogram": {"bucketWeights": {"900": 1}, "totalWeight": 1}}, "0 to 175", id="bucket out of range"
        ),
        pytest.param({"cpuHistogram": {"bucketWeights": {"x": 1}, "totalWeight": 1}}, "'x'", id="bucket not a number"),
        pytest.param({"cpuHistogram": {"bucketWeights": {"1": -1}, "totalWeight": 1}}, "not negative", id="weight"),
        pytest.param({"cpuHistogram": {"bucketWeights": {"1": 1}, "totalWeight": "many"}}, "totalWeight", id="total"),
        pytest.param({"totalSamplesCount": "many"}, "status.totalSamplesCount", id="count"),
        pytest.param({"memoryPeakBytes": "much"}, "status.memoryPeakBytes", id="peak"),
    ],
)
def test_a_bad_checkpoint_is_refused_and_changes_nothing(change: dict[str, object], message: str) -> None:
    good, book = save(book_of(every_minute(5)), "web", "app", NOW), UsageHistograms()
    with pytest.raises(InvalidInput, match=message):
        load(book, "web", "app", good | change)
    assert book.keys() == []
