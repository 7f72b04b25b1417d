"""Learning capacity from latency: services with known curves, and histories that prove nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from benchmarks.latency import SERVICES, START, learned, m_m_1, usage_of
from trimtab.core.latency import (
    LEAST_MINUTES,
    RAISE,
    LatencyLevel,
    LevelKind,
    MinutePairs,
    learn,
    next_level,
    rising_shares,
    steady_minutes,
    upper_bound,
)
from trimtab.core.latency_level import at_level
from trimtab.core.model import Pod
from trimtab.policy import (
    Bridge,
    LatencyPromise,
    Metric,
    MetricKind,
    Objective,
    Policy,
    Size,
    TotalAverage,
    Utilization,
)
from trimtab.series import Floats

CURVE = m_m_1(50.0)


def minutes(usage: Floats, latency: Floats) -> MinutePairs:
    return MinutePairs(START + 60.0 * np.arange(len(usage), dtype=np.float64), usage, latency)


def calm(days: int = 7, low: float = 5.0, high: float = 38.0, seed: int = 1) -> MinutePairs:
    rng = np.random.default_rng(seed)
    usage = usage_of(days, low, high, rng)
    return minutes(usage, CURVE(usage, rng))


@pytest.mark.parametrize("name", SERVICES)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_level_of_a_known_service_is_found_from_one_week(name: str, seed: int) -> None:
    found, error = learned(name, seed)
    assert found.kind is LevelKind.KNEE
    assert abs(error) <= (0.06 if name.startswith("release") else 0.05), (found, error)
    assert (found.since is not None) == name.startswith("release")
    assert (found.other > 0.005) == (name == "slow database")


def test_a_sentence_says_what_was_learned() -> None:
    level = LatencyLevel(kind=LevelKind.KNEE, below_s=0.3, level=38.2, observed=44.1, days=9.0, minutes=12000)
    said = level.text(" requests/s")
    assert said == "one pod serves 38.2 requests/s below 300 ms (observed up to 44.1; 9 days)"
    assert "2.3% of the minutes were slower at any usage" in replace(level, other=0.023).text("")


def test_no_more_is_trusted_than_was_observed() -> None:
    week = calm(high=20.0)
    found = learn(week, 0.3)
    assert found.kind is LevelKind.HELD
    assert found.level <= found.observed <= week.usage.max()


@pytest.mark.parametrize(
    ("week", "below_s", "reason"),
    [
        pytest.param(calm(), 0.05, "not reachable with any number of pods: latency is 10", id="below the service time"),
        pytest.param(calm()._replace(latency=1000 * calm().latency), 0.3, "milliseconds", id="milliseconds"),
        pytest.param(calm()._replace(latency=np.full(7 * 1440, np.nan)), 0.3, "0 minutes with traffic", id="NaN"),
        pytest.param(calm(1).where(np.arange(1440) < 100), 0.3, "too few", id="a hundred minutes"),
        pytest.param(
            calm()._replace(latency=0.1 + 0.001 * np.arange(7 * 1440.0) % 7 / 700),
            0.3,
            "latency does not depend on usage",
            id="independent",
        ),
        pytest.param(
            calm()._replace(latency=np.where(np.arange(7 * 1440) % 100 < 40, 2.0, calm().latency)),
            0.3,
            "look for another bottleneck",
            id="slow two minutes of five",
        ),
    ],
)
def test_what_is_no_evidence_gives_a_reason_and_no_level(week: MinutePairs, below_s: float, reason: str) -> None:
    found = learn(week, below_s)
    assert (found.kind, found.level) == (LevelKind.NONE, 0.0)
    assert reason in found.reason, found.reason


def test_high_usage_alone_does_not_say_that_a_promise_is_out_of_reach() -> None:
    found = learn(calm(low=36.0, high=46.0), 0.3)
    assert found.kind is LevelKind.BROKEN
    assert found.level < 36.0
    assert "one pod serves less than 3" in found.text("")
    assert next_level(40.0, found, night=False) == found.level


def test_minutes_in_which_pods_come_or_go_are_left_out() -> None:
    pods = np.array([2.0, 2, 2, 2, 2, 3, 3, 3, 3, 3, np.nan, 3, 0, 0, 0, 0])
    assert np.flatnonzero(steady_minutes(pods)).tolist() == [0, 1, 2, 3, 4, 8, 9]


def test_start_ups_with_high_latency_do_not_lower_the_level() -> None:
    week = calm()
    starting = np.arange(len(week.usage)) % 50 < 3
    slow = week._replace(latency=np.where(starting, 5.0, week.latency))
    without = slow._replace(usage=np.where(starting, np.nan, slow.usage))
    assert learn(without, 0.3).level == pytest.approx(learn(week, 0.3).level, rel=0.03)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(30, 60)), min_size=1, max_size=20))
def test_fitted_shares_rise_and_keep_all_that_they_are_made_of(groups: list[tuple[int, int]]) -> None:
    parts, wholes = (np.array(column, dtype=float) for column in zip(*groups, strict=True))
    blocks = rising_shares(parts, wholes)
    assert [last for last, _ in blocks] == sorted({last for last, _ in blocks})
    assert blocks[-1][0] == len(groups) - 1


def test_so_many_minutes_are_needed_to_speak_of_99_percent() -> None:
    assert upper_bound(0, LEAST_MINUTES) <= 0.01 < upper_bound(0, LEAST_MINUTES // 2)
    assert upper_bound(3, 30) > 0.1


HELD = LatencyLevel(kind=LevelKind.HELD, below_s=0.3, level=20.0, observed=20.0, minutes=5000)


@given(st.lists(st.floats(1.0, 100.0), min_size=1, max_size=30))
def test_nights_raise_by_a_tenth_and_never_beyond_a_tenth_above_what_was_observed(seen: list[float]) -> None:
    level: float | None = None
    for observed in seen:
        before = level
        level = next_level(level, replace(HELD, level=observed, observed=observed), night=True)
        assert level is not None
        assert level <= RAISE * max(observed, before or 0.0) + 1e-9
        assert before is None or level >= before  # the promise held


def test_by_day_nothing_is_raised_and_a_broken_promise_rolls_back_at_once() -> None:
    assert next_level(None, HELD, night=False) == 20.0
    assert next_level(21.0, HELD, night=False) == 21.0
    assert next_level(21.0, HELD, night=True) == pytest.approx(22.0)
    knee = replace(HELD, kind=LevelKind.KNEE, level=17.0)
    assert next_level(22.0, knee, night=False) == 17.0
    bad = replace(HELD, kind=LevelKind.NONE)
    assert next_level(22.0, bad, night=True) is None  # overload is judged without latency
    assert next_level(22.0, replace(bad, minutes=10), night=True) == 22.0  # too little to say otherwise


PROMISE = LatencyPromise(metric=Metric(kind=MetricKind.PROMETHEUS, name="latency", query="p99"), below_s=0.3)
PODS = (Pod(name="a", phase="Running", ready=True, requests=Size(cpu_cores=0.5)),)


def test_the_level_replaces_target_and_service_level() -> None:
    rate = Metric(kind=MetricKind.PROMETHEUS, name="requests/s", query="rate")
    written = Policy(
        signals=(TotalAverage(metric=rate, target=10.0),), objective=Objective(price=32.0, latency=PROMISE)
    )
    found = at_level(written, 32.0, "words", ())
    (signal,) = found.signals
    assert isinstance(signal, TotalAverage) and signal.target == pytest.approx(28.0)
    assert found.objective is not None and found.objective.latency is not None
    assert (found.objective.latency.level, found.objective.latency.text) == (32.0, "words")
    assert at_level(written, None, "", ()).signals == written.signals


def test_the_level_of_cpu_is_a_share_of_the_request() -> None:
    cpu = Metric(kind=MetricKind.RESOURCE, name="cpu")
    written = Policy(signals=(Utilization(metric=cpu, percent=80),), objective=Objective(price=32.0, latency=PROMISE))
    written = replace(written, bridge=Bridge())
    found = at_level(written, 0.4, "", PODS)
    assert found.bridge == Bridge(ceiling=0.75)
    assert at_level(written, 0.3, "", PODS).bridge == Bridge(ceiling=0.9375 * 0.6)
    assert at_level(replace(written, bridge=Bridge(ceiling=0.7)), 0.3, "", PODS).bridge == Bridge(ceiling=0.7)
    (signal,) = found.signals
    assert isinstance(signal, Utilization) and signal.percent == 70
    assert found.objective is not None and found.objective.service_level == pytest.approx(0.8)
