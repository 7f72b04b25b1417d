"""Scores by hand, and the compiled loop against a slow one that follows every single pod."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.sim.score import (
    Days,
    measure,
    oom_share,
    provisioning,
    ready_pods,
    score,
    slack,
)
from trimtab.sim.sliding_windows import forward_max, trailing_mean


def slowly(load: list[float], replicas: list[int], delay: int) -> tuple[float, int, list[int]]:
    """Violating load, starts and ready pods, pod by pod: each is the step from which it serves."""
    pods, backlog, violating, starts, ready = [0] * replicas[0], 0.0, 0.0, 0, []
    for t, (y, n) in enumerate(zip(load, replicas, strict=True)):
        starts += max(0, n - len(pods))
        pods += [t + delay] * (n - len(pods))
        pods = sorted(pods)[:n]  # the latest to be ready go first
        ready.append(sum(since <= t for since in pods))
        work = y + backlog
        backlog = min(work - min(work, ready[-1]), ready[-1])
        violating += y if 0.8 * ready[-1] < y - 1e-6 or backlog > 0 else 0.0
    return violating, starts, ready


runs = st.integers(1, 60).flatmap(
    lambda steps: st.tuples(
        st.lists(st.floats(0, 12), min_size=steps, max_size=steps),
        st.lists(st.integers(1, 12), min_size=steps, max_size=steps),
        st.sampled_from([0, 1, 2, 5, 8]),
    )
)


@settings(max_examples=150, deadline=None)
@given(runs)
def test_measure_follows_every_pod(run: tuple[list[float], list[int], int]) -> None:
    load, replicas, delay = run
    days = measure(np.array(load), np.array(replicas, dtype=np.int32), delay, day_steps=len(load))
    violating, starts, ready = slowly(load, replicas, delay)
    assert days.violating.sum() == pytest.approx(violating)
    assert days.starts.sum() == starts
    assert days.pods.sum() == sum(replicas)
    assert ready_pods(np.array(replicas, dtype=np.int32), delay).tolist() == ready


def test_a_pod_ordered_at_the_end_of_a_step_serves_after_the_delay() -> None:
    load = np.array([1.0, 1.7, 1.7, 1.7, 1.7])
    replicas = np.array([2, 2, 4, 4, 4], dtype=np.int32)  # ordered at the end of step 1, billed from step 2
    days = measure(load, replicas, delay_steps=2, day_steps=5)
    assert days.violating.sum() == pytest.approx(3 * 1.7), (
        "steps 1, 2 and 3 have two pods; from step 4 on there are four"
    )


def test_backlog_violates_after_the_load_has_gone() -> None:
    load, replicas = np.array([5.0, 1.5, 0.4]), np.array([2, 2, 2], dtype=np.int32)
    days = measure(load, replicas, delay_steps=0, day_steps=3)
    # 5 arrive, 2 are served, 2 stay (at most what is ready); then 3.5 - 2 stay, then 1.9 are served.
    assert days.violating.sum() == 6.5


def test_price_and_ratio() -> None:
    days = Days(*(np.array([value]) for value in (1000.0, 10.0, 5.0, 9.0, 500.0, 4.0)))
    found = score(days, optimum=800.0, lam=32.0, length=1)
    assert found.j == pytest.approx((1000 + 320 + 40 + 1) / 800)
    assert (found.cost, found.violations, found.starts_per_day, found.churn_per_day) == (1.25, 2.0, 5.0, 9.0)
    assert found.regret == pytest.approx(found.j - 1)
    begun = score(days, optimum=800.0, lam=32.0, length=0.5)
    assert (begun.starts_per_day, begun.churn_per_day) == (10.0, 18.0), "the last day may have only begun"


def test_days_are_kept_apart() -> None:
    days = measure(np.ones(6), np.array([2, 2, 3, 3, 4, 4], dtype=np.int32), 0, day_steps=2)
    assert days.pods.tolist() == [4, 6, 8]
    assert days.since(1).pods.tolist() == [6, 8]


def test_provisioning_slack_and_kills() -> None:
    found = provisioning(np.array([2, 4], dtype=np.int32), np.array([3, 2], dtype=np.int32))
    assert found == (25.0, 25.0, 50.0)
    assert slack(np.array([1.0, 5.0]), np.array([2.0, 4.0])) == pytest.approx(100 / 6)
    assert oom_share(3, 12) == 25.0
    assert oom_share(0, 0) == 0.0


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-9, 9), min_size=1, max_size=40), st.integers(0, 12))
def test_forward_max(values: list[int], ahead: int) -> None:
    found = forward_max(np.array(values), ahead).tolist()
    assert found == [max(values[t : t + ahead + 1]) for t in range(len(values))]


def test_trailing_mean_never_looks_ahead() -> None:
    values = np.random.default_rng(1).uniform(size=50)
    changed = values.copy()
    changed[30:] = 99.0
    assert (trailing_mean(values, 4)[:30] == trailing_mean(changed, 4)[:30]).all()
    assert trailing_mean(values, 4)[10] == pytest.approx(values[7:11].mean())
    assert trailing_mean(values, 4)[1] == pytest.approx(values[:2].mean())
