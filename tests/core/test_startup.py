"""Start-up times: the document's mean, its program's mean, and quantiles over pods recorded once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from trimtab.core.model import Missing, Pod, Reason, Startup
from trimtab.core.startup import (
    KEPT,
    LONGEST_WAIT_S,
    StartupLog,
    as_of,
    mean_startup_s,
    not_looked_for_a_while,
    startup,
    startup_of,
    startup_times_s,
    watch,
)

NOW = 1_700_000_000.0


def pod(name: str, took_s: float, ready: bool | None = True) -> Pod:
    return Pod(name=name, ready=ready, created_at=NOW, started_at=NOW + 1, ready_since=NOW + took_s)


def unready(name: str) -> Pod:
    """Its Ready condition has been false from the start."""
    return Pod(name=name, phase="Pending", ready=False, created_at=NOW, started_at=NOW + 1, ready_since=NOW + 1)


def quantiles(log: StartupLog) -> tuple[float, ...]:
    found = startup_of(log, NOW)
    assert isinstance(found, Startup)
    return tuple(one.value for one in found.quantiles)


def test_the_documents_mean_counts_ready_pods_only() -> None:
    pods = [pod("a", 60.0), pod("b", 120.0), unready("c"), Pod(name="d", ready=None)]
    assert mean_startup_s(pods) == 90.0


def test_the_programs_mean_counts_every_ready_condition() -> None:
    pods = [pod("a", 60.0), pod("b", 120.0), unready("c"), Pod(name="d", ready=None)]
    assert mean_startup_s(pods, exact=True) == pytest.approx(181.0 / 3)


def test_a_recorded_time_wins_over_what_the_pod_says_now() -> None:
    assert startup_times_s([pod("a", 5000.0), pod("b", 70.0)], recorded={"a": 50.0}) == [50.0, 70.0]


def test_no_ready_pod_is_zero_for_the_mean_and_missing_for_quantiles() -> None:
    assert mean_startup_s([]) == 0.0
    found = startup([], NOW)
    assert isinstance(found, Missing) and found.reason is Reason.NO_READY_PODS


def test_a_clock_that_runs_backwards_is_no_negative_start() -> None:
    assert startup_times_s([pod("a", -5.0)]) == [0.0]


def test_quantiles_are_of_ranks_and_dated() -> None:
    found = startup([float(second) for second in range(1, 11)], NOW)
    assert isinstance(found, Startup)
    assert [(one.probability, one.value) for one in found.quantiles] == [(0.5, 5.0), (0.9, 9.0)]
    assert (found.made_at, found.pods) == (NOW, 10) and found.expires_at > NOW


def test_a_flap_after_the_first_ready_changes_nothing() -> None:
    log = watch(StartupLog(), [unready("a")])
    log = watch(log, [pod("a", 40.0)])
    flapped = replace(pod("a", 9000.0), ready=False)
    log = watch(watch(log, [flapped]), [pod("a", 9100.0)])
    assert quantiles(log) == (40.0, 40.0)


def test_a_pod_first_seen_after_losing_readiness_is_not_recorded() -> None:
    log = watch(StartupLog(), [pod("a", 5000.0, ready=False)])
    log = watch(log, [pod("a", 5100.0)])
    assert isinstance(startup_of(log, NOW), Missing)


@pytest.mark.parametrize(
    "seconds, recorded",
    [
        pytest.param(10.0, True, id="still starting after ten seconds"),
        pytest.param(11.0, False, id="lost readiness after eleven seconds"),
    ],
)
def test_a_pod_unready_later_than_ten_seconds_after_its_start_was_ready_before(seconds: float, recorded: bool) -> None:
    log = watch(StartupLog(), [replace(unready("a"), ready_since=NOW + 1 + seconds)])
    log = watch(log, [pod("a", 60.0)])
    assert log.witnessed == ((60.0,) if recorded else ())


def test_pods_that_were_ready_before_we_looked_only_stand_in() -> None:
    log = watch(StartupLog(), [pod("old", 7000.0), unready("new")])
    assert quantiles(log) == (7000.0, 7000.0)
    log = watch(log, [pod("old", 7000.0), pod("new", 30.0)])
    assert quantiles(log) == (30.0, 30.0)


def test_a_name_used_again_is_another_pod() -> None:
    first, second = pod("web-0", 20.0), replace(pod("web-0", 0.0), created_at=NOW + 500, ready_since=NOW + 540)
    log = watch(watch(StartupLog(), [unready("web-0")]), [first])
    waiting = replace(unready("web-0"), created_at=NOW + 500, started_at=NOW + 501, ready_since=NOW + 501)
    log = watch(watch(log, [waiting]), [second])
    assert log.witnessed == (20.0, 40.0)


def test_only_the_newest_are_kept_and_each_once() -> None:
    pods = [pod(f"pod-{index}", float(index)) for index in range(KEPT + 50)]
    log = watch(watch(StartupLog(), [unready(one.name) for one in pods]), pods)
    log = watch(log, pods)
    assert len(log.witnessed) == KEPT and log.witnessed[-1] == KEPT + 49


def test_quick_starts_that_nobody_saw_waiting_outweigh_one_slow_one() -> None:
    """Between two looks a pod comes and is ready: only a slow one is ever seen before that."""
    log = watch(StartupLog(), [pod("first", 5.0)])
    pods = [pod("first", 5.0), unready("slow")]
    log = watch(log, pods)
    for number in range(12):
        pods = [pod("first", 5.0), pod("slow", 480.0), *(pod(f"quick-{each}", 5.0) for each in range(number))]
        log = watch(log, pods)
    assert quantiles(log) == (5.0, 5.0)


def test_a_release_that_starts_slowly_is_noticed_after_three_of_its_pods() -> None:
    log = StartupLog()
    for number in range(300):
        log = watch(watch(log, [unready(f"quick-{number}")]), [pod(f"quick-{number}", 10.0)])
    assert quantiles(log) == (10.0, 10.0)
    for number in range(3):
        log = watch(watch(log, [unready(f"slow-{number}")]), [pod(f"slow-{number}", 480.0)])
    assert quantiles(log) == (10.0, 480.0)


def test_who_has_not_looked_for_a_while_assumes_again() -> None:
    """Another led meanwhile: what is ready now may have flapped."""
    log = watch(watch(StartupLog(), [unready("a")]), [pod("a", 30.0)])
    log = watch(not_looked_for_a_while(log), [pod("a", 30.0), pod("b", 9000.0)])
    assert quantiles(log) == (30.0, 30.0) and log.assumed == (30.0, 9000.0)


@given(st.lists(st.floats(0, 1e5), min_size=1, max_size=30))
def test_quantiles_are_ordered_and_seen(times: list[float]) -> None:
    found = startup(times, NOW)
    assert isinstance(found, Startup)
    half, most = (one.value for one in found.quantiles)
    assert half <= most and half in times and most in times
    assert sum(value <= most for value in times) >= 0.9 * len(times)


STATES = st.tuples(st.sampled_from((None, True, False)), st.floats(0, 100))


@given(st.lists(st.dictionaries(st.sampled_from("abc"), STATES)))
def test_looking_twice_at_the_same_pods_says_nothing_new(looks: list[dict[str, tuple[bool | None, float]]]) -> None:
    log = StartupLog()
    for look in looks:
        pods = [pod(name, took_s, ready) for name, (ready, took_s) in look.items()]
        log = watch(log, pods)
        assert watch(log, pods) == log
        assert as_of(startup_of(log, 0.0), NOW) == startup_of(log, NOW)


@given(st.lists(st.tuples(st.floats(0, 7200), st.floats(1, 600)), min_size=1, max_size=KEPT))
def test_waiting_for_a_node_is_learned_apart(starts: list[tuple[float, float]]) -> None:
    """Of pods that wait and then start, forecasts look ahead by the start and at most ten minutes of the wait."""
    log = watch(StartupLog(), [Pod(name="known", created_at=0.0, ready_since=5.0)])
    pods = [
        Pod(name=f"pod-{n}", created_at=100.0, scheduled_at=100.0 + wait, ready_since=100.0 + wait + start)
        for n, (wait, start) in enumerate(starts)
    ]
    found = startup_of(watch(log, pods), 0.0)
    assert isinstance(found, Startup)
    for quantile, wait in zip(found.quantiles, found.waits, strict=True):
        alone = quantile.value - min(wait.value, LONGEST_WAIT_S)
        assert min(start for _, start in starts) - 1e-6 <= alone <= max(start for _, start in starts) + 1e-6
        assert min(wait for wait, _ in starts) - 1e-6 <= wait.value <= max(wait for wait, _ in starts) + 1e-6
    plain = [Pod(name=pod.name, created_at=pod.scheduled_at, ready_since=pod.ready_since) for pod in pods]
    without = startup_of(watch(log, plain), 0.0)
    assert isinstance(without, Startup) and without.quantiles[0].value <= found.quantiles[0].value + 1e-6
