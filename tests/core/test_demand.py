"""The demand log: any spacing of samples, two bytes per minute, a past that never overwrites what was seen."""

from __future__ import annotations

import tracemalloc

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.core.build import per_second, total
from trimtab.core.demand import checkpoint, demand_of, demands, keys_of
from trimtab.core.demand.log import DemandLog, code_of, codes_of, values_of
from trimtab.core.forecast.demand_forecasts import DemandForecasts
from trimtab.core.model import Missing, Observation, Pod, PodSamples, Reason, TotalSample
from trimtab.core.propose_ahead import propose_ahead
from trimtab.errors import InvalidInput
from trimtab.policy import ForecastChoice, Metric, MetricKind, Policy, Size, Utilization
from trimtab.series import Series

AT = 1_750_000_020.0  # a whole minute
DAY_S = 86400.0
WORKLOAD_BYTES = 150_000


@given(st.floats(1e-9, 1e19))
def test_a_code_is_right_to_a_twentieth_of_a_percent(value: float) -> None:
    assert values_of(codes_of(np.array([value])))[0] == pytest.approx(value, rel=0.0005001)
    assert code_of(value) == codes_of(np.array([value]))[0]


def test_nothing_and_no_answer_are_different_codes() -> None:
    found = values_of(codes_of(np.array([0.0, -3.0, np.nan, np.inf])))
    assert found[:2].tolist() == [0.0, 0.0] and np.isnan(found[2:]).all()
    assert code_of(-1.0) == code_of(0.0)


@pytest.mark.parametrize("tick_s", [1.0, 5.0, 15.0, 30.0, 60.0])
@pytest.mark.parametrize("span_s", [180.0, 600.0, 1800.0, 3600.0])
def test_a_window_covers_both_its_ends_at_every_tick(tick_s: float, span_s: float) -> None:
    log = DemandLog()
    for step in range(int(2 * 3600 / tick_s)):
        log.note(AT + step * tick_s, "a", float(step))
    at = AT + step * tick_s
    found = log.recent("a", at, span_s)
    assert span_s <= at - found.times[0] < span_s + max(tick_s, 5.0)
    assert at - found.times[-1] < 5.0 and np.diff(found.times).min() >= 5.0


def test_bins_are_means_counted_back_from_now_whatever_the_ticks() -> None:
    log = DemandLog()
    for second in range(0, 900, 15):
        log.note(AT + second, "a", 100.0 + second // 300)
    log.note(AT + 885, "b", 7.0)
    frame = log.frame(["a", "b", "nobody"], AT + 899.0, 300.0)
    assert frame.end == AT + 900.0 and frame.step_s == 300.0
    assert frame.values[0, -3:] == pytest.approx([100.0, 101.0, 102.0], rel=0.0005)
    assert np.isnan(frame.values[1, :-1]).all() and frame.values[1, -1] == pytest.approx(7.0, rel=0.0005)
    assert np.isnan(frame.values[2]).all()


def test_a_clock_that_was_set_back_leaves_times_in_order() -> None:
    log = DemandLog()
    for at in (AT, AT + 60.0, AT + 10.0, AT + 20.0):
        log.note(at, "a", 1.0)
    assert log.recent("a", AT + 20.0, 180.0).times.tolist() == [AT, AT + 10.0, AT + 20.0]


def test_a_past_that_is_read_back_fills_holes_only() -> None:
    log = DemandLog()
    log.note(AT, "a", 50.0)
    times = np.arange(AT - 3599.0, AT + 60.0, 30.0)
    log.restore("a", Series(times, np.full(len(times), 10.0)), 30.0)
    frame = log.frame(["a"], AT, 60.0)
    assert frame.values[0, -1] == pytest.approx(50.0, rel=0.0005)
    assert frame.values[0, -10:-1] == pytest.approx([10.0] * 9, rel=0.0005)
    recent = log.recent("a", AT, 1800.0)
    assert recent.values[-1] == 50.0 and AT - recent.times[0] >= 1800.0


def test_the_hour_of_who_watched_meanwhile_lies_between_what_we_saw_before_and_since() -> None:
    log = DemandLog()
    ours = [*np.arange(AT - 3000.0, AT - 2000.0, 15.0), *np.arange(AT - 200.0, AT, 15.0)]
    for at in ours:
        log.note(at, "a", 1.0)
    theirs = np.arange(AT - 3307.0, AT - 300.0, 30.0)
    log.restore("a", Series(theirs, np.full(len(theirs), 2.0)), 30.0)
    recent = log.recent("a", AT, 3600.0)
    assert np.all(np.diff(recent.times) >= 5.0) and np.diff(recent.times).max() <= 120.0
    assert recent.times[recent.values == 1.0].tolist() == ours
    inside = recent.times[recent.values == 2.0]
    assert not ((inside > AT - 3000.0) & (inside < AT - 2010.0)).any(), "where we watched, nobody else is asked"
    assert inside[0] == theirs[0] and inside[-1] == theirs[-1]


def test_coarse_history_fills_every_minute_that_it_stands_for() -> None:
    log = DemandLog()
    ends = np.arange(AT - 3600.0, AT + 1.0, 300.0)
    log.restore("a", Series(ends, np.arange(1.0, 14.0)), 300.0)
    frame = log.frame(["a"], AT - 1.0, 300.0)
    assert frame.values[0, -12:] == pytest.approx(np.arange(2.0, 14.0), rel=0.0005)
    assert len(log.recent("a", AT, 3600.0)) == 0, "five minutes are no observation"


def filled(keys: int, days: float, tick_s: float = 60.0) -> DemandLog:
    log = DemandLog()
    for step in range(int(days * DAY_S / tick_s)):
        at = AT - days * DAY_S + (step + 1) * tick_s
        for key in range(keys):
            log.note(at, f"w/{key}", 10.0 + key + np.sin(2 * np.pi * at / DAY_S))
    return log


def test_two_weeks_of_a_workload_with_two_signals_take_at_most_150_kb() -> None:
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    log = filled(2, 15.0)
    for second in range(0, 4000, 5):  # and the finest hour there is
        for key in range(2):
            log.note(AT + second, f"w/{key}", 10.0)
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert after - before <= WORKLOAD_BYTES
    log.forget(["w/0", "w/1"])
    assert len(log) == 0


@pytest.mark.parametrize("signals", [1, 2, 3, 6, 12])
def test_a_checkpoint_fits_whatever_the_number_of_signals(signals: int) -> None:
    log, at = filled(signals, 15.0, tick_s=300.0), AT
    keys = {str(key): f"w/{key}" for key in range(signals)}
    data = checkpoint.save(log, keys, at)
    assert len(data) <= checkpoint.MOST_BYTES
    back = DemandLog()
    checkpoint.load(back, keys, data)
    assert len(back) >= min(signals, 6)
    was, now = log.frame(["w/0"], at, 7200.0), back.frame(["w/0"], at, 7200.0)
    assert now.values[0, 1:] == pytest.approx(was.values[0, -now.values.shape[1] + 1 :], rel=0.02)


def test_the_last_hour_survives_as_it_was_observed() -> None:
    log = DemandLog()
    for step in range(241):
        log.note(AT + 15.0 * step, "w", 100.0 + step)
    at, back = AT + 15.0 * 240, DemandLog()
    checkpoint.load(back, {"cpu": "w"}, checkpoint.save(log, {"cpu": "w"}, at))
    was, now = log.recent("w", at, 1800.0), back.recent("w", at, 1800.0)
    assert now.times == pytest.approx(was.times, abs=15.0) and now.values == pytest.approx(was.values, rel=0.02)


@pytest.mark.parametrize(
    "change, field",
    [
        pytest.param({"version": 9}, "version", id="another version"),
        pytest.param({"at": -5.0}, "at", id="no time"),
        pytest.param(
            {"signals": {"cpu": {"end": AT, "step_s": 7.0, "bins": "AAA=", "ages": "", "recent": ""}}},
            "bins",
            id="bins",
        ),
        pytest.param(
            {"signals": {"cpu": {"end": AT, "step_s": 300.0, "bins": "", "ages": "AAA=", "recent": ""}}},
            "recent",
            id="ages",
        ),
        pytest.param(
            {"signals": {"cpu": {"end": AT, "step_s": 300.0, "bins": "AA==", "ages": "", "recent": ""}}},
            "two bytes",
            id="odd",
        ),
        pytest.param({"signals": 3}, "signals", id="shape"),
        pytest.param({"more": "x" * 30_000}, "at most", id="too large"),
    ],
)
def test_a_bad_checkpoint_is_refused_with_its_reason(change: dict[str, object], field: str) -> None:
    log = DemandLog()
    log.note(AT, "w", 1.0)
    good = msgspec.json.decode(checkpoint.save(log, {"cpu": "w"}, AT))
    with pytest.raises(InvalidInput, match=field):
        checkpoint.load(DemandLog(), {"cpu": "w"}, msgspec.json.encode(good | change))


def pod(name: str, ready: bool = True, deleting: bool = False) -> Pod:
    return Pod(name=name, ready=ready, deleting=deleting)


def test_thousandths_that_are_rounded_up_do_not_ask_for_another_pod() -> None:
    """One core of thirteen pods is 0.077 each in the metrics API: 1.001 together, and a third pod at 50 %."""
    cpu = Utilization(metric=Metric(kind=MetricKind.RESOURCE, name="cpu"), percent=50)
    policy = Policy(signals=(cpu,), forecast=ForecastChoice(model="linear", horizon_s=60.0))
    pods = tuple(replace(pod(f"{number}"), requests=Size(cpu_cores=1.0)) for number in range(13))
    samples = PodSamples(values={each.name: 0.077 for each in pods}, at=AT, grain=0.001)
    demand = demand_of(samples, pods)
    assert demand is not None and 0.98 < demand <= 1.0
    assert demand_of(replace(samples, grain=0.0), pods) == pytest.approx(1.001)
    forecasts = DemandForecasts()
    for at in np.arange(AT - 300.0, AT + 1.0, 15.0).tolist():
        seen = Observation(at=at, spec_replicas=13, status_replicas=13, pods=pods, samples=(replace(samples, at=at),))
        forecasts.note("web", policy, seen)
    (proposal,) = propose_ahead(policy, replace(seen, forecasts=forecasts.of("web", policy, seen)))
    assert proposal.replicas == 2


def test_a_sum_with_a_silent_pod_in_it_is_no_sum() -> None:
    samples = PodSamples(values={"a": 1.0, "b": 2.0}, at=AT)
    assert demand_of(samples, [pod("a"), pod("b")]) == 3.0
    assert demand_of(samples, [pod("a"), pod("b"), pod("c")]) is None
    assert demand_of(samples, [pod("a"), pod("b"), pod("c", ready=False), pod("d", deleting=True)]) == 3.0
    assert demand_of(TotalSample(value=7.0, at=AT), []) == 7.0
    assert demand_of(Missing(reason=Reason.STALE), []) is None
    lying = PodSamples(values={"a": float("nan"), "b": 2.0}, at=AT)
    assert demand_of(lying, [pod("a"), pod("b")]) is None
    assert demand_of(TotalSample(value=-1.0, at=AT), []) is None


EXACT = Policy(
    signals=(
        Utilization(metric=Metric(kind=MetricKind.RESOURCE, name="cpu"), percent=70),
        Utilization(metric=Metric(kind=MetricKind.RESOURCE, name="memory"), percent=70),
    ),
    forecast=ForecastChoice(model="linear", exact=True),
)


def exact_pods(**of_new: object) -> tuple[Pod, ...]:
    old = Pod(name="old", created_at=AT - 900, started_at=AT - 900, ready_since=AT - 800, requests=Size(1.0, 100.0))
    new = replace(old, name="new", ready=False, created_at=AT - 30, started_at=AT - 30, ready_since=AT - 30)
    return old, replace(new, **of_new)


@pytest.mark.parametrize(
    "pods, used, wanted",
    [
        pytest.param(exact_pods(), {"old": 0.9, "new": 0.1}, 50.0, id="a starting pod counts with what it uses"),
        pytest.param(exact_pods(phase="Pending"), {"old": 0.9}, 90.0, id="a pending pod is left out"),
        pytest.param(exact_pods(deleting=True), {"old": 0.9, "new": 0.1}, 90.0, id="so is one on its way out"),
        pytest.param(exact_pods(), {"old": 0.9}, None, id="without a sample of a running pod nothing is known"),
    ],
)
def test_exact_mode_knows_the_mean_cpu_of_all_running_pods(
    pods: tuple[Pod, ...], used: dict[str, float], wanted: float | None
) -> None:
    usage = PodSamples(values=used, at=AT)
    seen = Observation(at=AT, spec_replicas=2, status_replicas=2, pods=pods, samples=(usage, usage))
    assert demands(EXACT, seen) == [wanted, None], "and nothing but CPU"


def test_exact_mode_draws_no_line_over_two_numbers_of_pods() -> None:
    """Removing a pod raises the utilization of the others, which is no load that rises."""
    found = DemandForecasts()
    policy = replace(EXACT, signals=EXACT.signals[:1])

    def look(second: float, names: str, used: float) -> Missing | float:
        pods = tuple(replace(exact_pods()[0], name=name) for name in names)
        usage = PodSamples(values=dict.fromkeys(names, used), at=AT + second)
        seen = Observation(
            at=AT + second, spec_replicas=len(names), status_replicas=len(names), pods=pods, samples=(usage,)
        )
        found.note("o", policy, seen)
        (answer,) = found.of("o", policy, seen)
        return answer if isinstance(answer, Missing) else answer.at_quantile(0.5)

    for second in range(0, 600, 15):
        before = look(second, "abc", 0.4)
    assert before == 40.0
    after = [look(second, "ab", 0.6) for second in range(600, 1200, 15)]
    assert all(isinstance(answer, Missing) for answer in after[:20])
    assert set(after[20:]) == {60.0}


def test_what_another_leader_observed_last_is_as_if_it_had_been_noted_here() -> None:
    """The next leader knows the same minutes and the same observations, and the start-ups that were seen."""
    policy = per_second(10.0, forecast=ForecastChoice(model="seasonal"))
    first, second = DemandForecasts(), DemandForecasts()
    for number in range(80):
        at = AT + 15.0 * number
        first.note("one", policy, replace(total(4, 50.0 + number % 7), at=at))
    end = AT + 15.0 * 79
    left = msgspec.json.decode(
        msgspec.json.encode(first.recent_of("one", policy, end, (31.24,), (0.0,))), type=checkpoint.RecentDemand
    )
    second.note("one", policy, replace(total(4, 50.0), at=end + 90.0))
    second.load("one", policy, left)
    (key,) = keys_of("one", policy)
    known_minutes, other_minutes = (each.log.last_minutes([key], int(end // 60) + 1, 14) for each in (first, second))
    assert other_minutes == pytest.approx(known_minutes, rel=1e-3)
    known, other = (each.log.recent(key, end, 890.0) for each in (first, second))
    assert other.times == pytest.approx(known.times, abs=0.06) and other.values == pytest.approx(known.values, rel=1e-3)
    assert left.startups_s == (31.2,)
