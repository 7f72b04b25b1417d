"""What must hold for every policy and every load, found by looking for the opposite."""

from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.core.build import CPU, NOW, QUERY, RPS, busy, pod, total
from trimtab.core.decide import decide
from trimtab.core.model import (
    Forecast,
    Memory,
    Missing,
    Observation,
    PodSamples,
    Quantile,
    Reason,
    TotalSample,
)
from trimtab.core.remember import first_sight, remember
from trimtab.policy import (
    Absence,
    Bounds,
    Combine,
    Cooldown,
    Delay,
    Factor,
    ForecastChoice,
    MaxFactor,
    MinFactor,
    Policy,
    Rate,
    RatePolicy,
    Rates,
    RoundUp,
    ScheduledBounds,
    Select,
    Stabilise,
    StabiliseMax,
    Tolerance,
    Total,
    TotalAverage,
    UpLimit,
    Utilization,
    Velocity,
    Watermark,
)

house = settings(max_examples=150)

fractions = st.floats(0, 3, allow_nan=False)
seconds = st.sampled_from([0.0, 15.0, 60.0, 300.0])
tolerances = st.builds(Tolerance, up=st.sampled_from([0.0, 0.05, 0.1]), down=st.sampled_from([0.0, 0.05, 0.1]))
rate_policies = st.builds(
    RatePolicy, percent=st.booleans(), value=st.integers(1, 200), period_s=st.sampled_from([15.0, 60.0])
)
rates = st.builds(Rates, select=st.sampled_from(Select), policies=st.tuples(rate_policies, rate_policies))
settles = st.one_of(
    st.just((StabiliseMax(), UpLimit())),
    st.tuples(st.builds(Stabilise, up_s=seconds, down_s=seconds), st.builds(Rate, up=rates, down=rates)),
    st.tuples(
        st.builds(MaxFactor, up=st.floats(0.1, 2), down=st.floats(0.1, 1)),
        st.builds(Cooldown, up_s=seconds, down_s=seconds, any_direction=st.booleans()),
        st.builds(MinFactor, up=st.floats(0, 0.5), down=st.floats(0, 0.5)),
        st.just(RoundUp()),
    ),
    st.tuples(
        st.builds(Velocity, up_percent=st.floats(0, 100), down_percent=st.floats(0, 100)),
        st.builds(Delay, above_s=seconds, below_s=seconds),
    ),
)
totals = st.one_of(
    st.builds(TotalAverage, metric=st.just(RPS), target=st.floats(1, 50), tolerance=tolerances),
    st.builds(Total, metric=st.just(RPS), target=st.floats(1, 50), tolerance=tolerances),
    st.builds(Factor, metric=st.just(QUERY), target=st.floats(1, 50)),
    st.builds(lambda low, gap: Watermark(metric=RPS, low=low, high=low + gap), st.floats(1, 50), st.floats(0.5, 50)),
)
spans = st.builds(
    lambda least, most: ScheduledBounds(name="s", start=NOW - 60, end=NOW + 60, min_replicas=least, max_replicas=most),
    st.none() | st.integers(0, 60),
    st.none() | st.integers(0, 60),
)


@st.composite
def bounds(draw: st.DrawFn) -> Bounds:
    least = draw(st.integers(1, 20))
    return Bounds(
        min_replicas=least,
        max_replicas=draw(st.integers(least, 60)),
        spans=tuple(draw(st.lists(spans, max_size=2))),
    )


memories = st.builds(
    Memory,
    wanted=st.lists(st.tuples(st.floats(NOW - 600, NOW), st.integers(0, 80)), max_size=5).map(tuple),
    grown=st.lists(st.tuples(st.floats(NOW - 90, NOW), st.integers(1, 5)), max_size=3).map(tuple),
    shrunk=st.lists(st.tuples(st.floats(NOW - 90, NOW), st.integers(1, 5)), max_size=3).map(tuple),
    up_at=st.none() | st.floats(NOW - 400, NOW),
    down_at=st.none() | st.floats(NOW - 400, NOW),
    above_since=st.none() | st.floats(NOW - 400, NOW),
)
bad_samples = st.one_of(
    st.sampled_from(list(Reason)).map(lambda reason: Missing(reason=reason)),
    st.sampled_from([math.nan, math.inf, -math.inf, -1.0]).map(lambda value: TotalSample(value=value, at=NOW)),
    st.just(TotalSample(value=0.001, at=NOW - 10_000)),
)


@house
@given(totals, settles, bounds(), memories, st.integers(1, 80), st.floats(0, 1e6))
def test_bounds_always_hold(signal, settle, limits, memory, current, value) -> None:  # type: ignore[no-untyped-def]
    policy = Policy(signals=(signal,), settle=settle, bounds=limits)
    plan = decide(policy, total(current, value), memory).plan
    assert limits.min_replicas <= plan.replicas <= limits.max_replicas


@house
@given(settles, bounds(), memories, st.integers(1, 30), fractions, st.integers(0, 4), st.integers(0, 4))
def test_bounds_hold_for_pods_in_any_state(settle, limits, memory, current, load, unready, silent) -> None:  # type: ignore[no-untyped-def]
    policy = Policy(signals=(Utilization(metric=CPU, percent=50),), settle=settle, bounds=limits)
    seen = _messy(current, load, unready, silent)
    assert limits.min_replicas <= decide(policy, seen, memory).plan.replicas <= limits.max_replicas


def _messy(current: int, load: float, unready: int, silent: int) -> Observation:
    seen = busy(current, load)
    young = {"started_at": NOW - 30, "ready": False, "ready_since": NOW - 20}
    pods = tuple(pod(i, **young) if i < unready else pod(i) for i in range(current))
    samples = seen.samples[0]
    assert isinstance(samples, PodSamples)
    heard = dict(list(samples.values.items())[min(silent, current - 1) :])
    return replace(seen, pods=pods, samples=(replace(samples, values=heard),))


@house
@given(totals, settles, bounds(), memories, st.integers(1, 60), bad_samples)
def test_no_answer_never_lowers_except_to_maxreplicas(signal, settle, limits, memory, current, sample) -> None:  # type: ignore[no-untyped-def]
    policy = Policy(signals=(signal,), settle=settle, bounds=limits, absence=Absence(stale_after_s=120))
    plan = decide(policy, replace(total(current, 0), samples=(sample,)), memory).plan
    ceiling = min([limits.max_replicas] + [s.max_replicas for s in limits.spans if s.max_replicas is not None])
    assert plan.replicas >= min(current, max(ceiling, limits.min_replicas))


@house
@given(st.sampled_from([math.nan, math.inf, -5.0]), st.integers(1, 20), fractions, st.integers(0, 19))
def test_a_broken_pod_sample_never_lowers_more_than_a_silent_one(value, current, load, index) -> None:  # type: ignore[no-untyped-def]
    policy = Policy(signals=(Utilization(metric=CPU, percent=50),), settle=(), bounds=Bounds(max_replicas=100))
    seen = busy(current, load)
    samples = seen.samples[0]
    assert isinstance(samples, PodSamples)
    name = f"pod-{index % current}"
    broken = replace(seen, samples=(replace(samples, values=samples.values | {name: value}),))
    silent_values = {key: v for key, v in samples.values.items() if key != name}
    silent = replace(seen, samples=(replace(samples, values=silent_values),))
    assert decide(policy, broken, Memory()).plan.replicas == decide(policy, silent, Memory()).plan.replicas


@house
@given(totals, settles, bounds(), memories, st.integers(1, 60), st.floats(0, 1e4), st.floats(0, 1e4))
def test_more_load_never_means_fewer_pods(signal, settle, limits, memory, current, one, other) -> None:  # type: ignore[no-untyped-def]
    policy = Policy(signals=(signal,), settle=settle, bounds=limits)
    low, high = sorted((one, other))
    less = decide(policy, total(current, low), memory).plan.replicas
    more = decide(policy, total(current, high), memory).plan.replicas
    if not (memory.above_since or any(isinstance(rule, Delay) for rule in settle)):
        assert less <= more


@house
@given(st.integers(1, 40), st.floats(0.05, 2.0), st.integers(20, 90))
def test_constant_load_ends_in_a_fixed_point(current: int, load: float, percent: int) -> None:
    """Total load stays; what each pod carries depends on how many there are."""
    policy = Policy(signals=(Utilization(metric=CPU, percent=percent),), bounds=Bounds(max_replicas=200))
    memory, replicas, cores, sizes = first_sight(NOW, current), current, current * load, []
    for tick in range(80):
        at = NOW + 15 * tick
        decision = decide(policy, busy(replicas, cores / replicas, at=at), memory)
        memory = decision.memory
        if decision.change is not None:
            memory = remember(policy, memory, decision.change, at)
        replicas = decision.plan.replicas
        sizes.append(replicas)
    assert len(set(sizes[-20:])) == 1


@house
@given(totals, bounds(), st.integers(1, 60), st.floats(0, 1e4))
def test_a_settled_workload_yields_no_change(signal, limits, current, value) -> None:  # type: ignore[no-untyped-def]
    policy = Policy(signals=(signal,), bounds=limits)
    seen = total(current, value)
    decision = decide(policy, seen, Memory())
    if decision.plan.replicas == current:
        assert decision.change is None
        again = decide(policy, replace(seen, at=NOW + 15), decision.memory)
        assert again.plan.replicas >= current or isinstance(signal, Watermark) or decision.steps


@house
@given(st.integers(1, 40), fractions, st.floats(0, 200), st.sampled_from(Combine))
def test_a_forecast_never_lowers(current: int, load: float, demand: float, how: Combine) -> None:
    policy = Policy(
        signals=(Utilization(metric=CPU, percent=50),),
        bounds=Bounds(max_replicas=100),
        settle=(),
        combine=how,
    )
    forecast = Forecast(made_at=NOW, expires_at=NOW + 60, demand=(Quantile(0.5, demand),), model="linear")
    without = decide(policy, busy(current, load), Memory()).plan.replicas
    ahead = replace(policy, forecast=ForecastChoice())
    assert decide(ahead, replace(busy(current, load), forecasts=(forecast,)), Memory()).plan.replicas >= without


@house
@given(totals, settles, bounds(), memories, st.integers(1, 60), st.floats(0, 1e4))
def test_the_same_three_values_give_the_same_decision(signal, settle, limits, memory, current, value) -> None:  # type: ignore[no-untyped-def]
    policy = Policy(signals=(signal,), settle=settle, bounds=limits)
    assert decide(policy, total(current, value), memory) == decide(policy, total(current, value), memory)
