"""Constant load ends in a fixed point: decide() in closed loop with a workload whose usage follows its own plan."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.core.build import NOW
from tests.core.loop import Load, State, cpu_percent, look, settled, start, tick
from tests.core.wishes import bucket, size
from trimtab.core.decide import decide
from trimtab.core.model import ContainerSize, Memory, Missing, Reason, RuleName, Veto
from trimtab.policy import (
    Axis,
    Blend,
    Bounds,
    Buckets,
    Capacity,
    ContainerRule,
    Direction,
    Gate,
    MinChange,
    Policy,
    Rest,
    Rule,
    Stabilise,
    StabiliseMax,
    Stage,
    UpLimit,
    Vertical,
    Weights,
)

house = settings(max_examples=30, deadline=None)

loads = st.builds(
    Load,
    cpu=st.floats(0.05, 18.0),
    memory=st.floats(5e7, 8e9),
    base_cpu=st.sampled_from([0.0, 0.05, 0.3]),
    base_memory=st.sampled_from([0.0, 1e8, 6e8]),
)
states = st.builds(start, st.integers(1, 20), st.sampled_from([0.1, 0.5, 1.0, 2.0]), st.sampled_from([1e8, 1e9, 3e9]))
settles = st.sampled_from([(), (StabiliseMax(), UpLimit()), (Stabilise(),)])
percents = st.sampled_from([40, 50, 60, 70, 80, 90, 100, 120])  # above 100: HVPA's remedy against HPA
largest = st.builds(size, st.sampled_from([1.0, 2.0, 8.0]), st.sampled_from([1.0, 2.0, 8.0]))
capacities = st.builds(
    Capacity,
    base=st.builds(size, st.sampled_from([0.0, 0.1, 0.9]), st.sampled_from([0.0, 0.1, 0.9])),
    hysteresis=st.sampled_from([0.05, 0.1, 0.2]),
    preferred=st.none() | st.just(size(0.5, 0.5)),
)
guarded = st.sampled_from(
    [
        Buckets(buckets=(bucket((1, 8), cpu=(0, 4), gb=(0, 8)),)),
        Buckets(buckets=(bucket((1, 1), cpu=(0, 1), gb=(0, 2)), bucket((2, 8), cpu=(1, 9), gb=(2, 20)))),
        Buckets(buckets=(bucket((1, 3), cpu=(0, 1), gb=(0, 1)), bucket((4, 20), cpu=(1, 1), gb=(1, 1)))),
    ]
)
weights = st.lists(st.sampled_from([0.0, 0.2, 0.4, 0.6, 0.8, 1.0]), min_size=3, max_size=3).map(
    lambda shares: Weights(
        stages=tuple(
            Stage(vertical_share=share, first=first, last=last)
            for share, (first, last) in zip(shares, ((1, 3), (4, 7), (8, 20)), strict=True)
        )
    )
)


def hvpa_weights_gates() -> tuple[Gate, ...]:
    """Example 1's windows of 2 and 3 minutes, and the smallest change of 200m or 200M."""
    found: list[Gate] = []
    for direction, window_s in ((Direction.UP, 120.0), (Direction.DOWN, 180.0)):
        found += [Rest(axis=axis, direction=direction, window_s=window_s) for axis in Axis]
        found += [MinChange(axis=axis, direction=direction) for axis in (Axis.CPU, Axis.MEMORY)]
    return tuple(found)


def policy(
    blend: Blend, percent: int | None, settle: tuple[Rule, ...] = (), most: object = None, gates: tuple[Gate, ...] = ()
) -> Policy:
    rule = ContainerRule(least=size(0.05, 0.05), most=most or size(8.0, 8.0))  # type: ignore[arg-type]
    return Policy(
        signals=() if percent is None else (cpu_percent(percent),),
        settle=settle,
        vertical=Vertical(containers=(rule,)),
        blend=blend,
        gates=gates,
        bounds=Bounds(max_replicas=20),
    )


def rests(shapes: list[tuple[int, ContainerSize]]) -> bool:
    return len(set(shapes[-30:])) == 1


@house
@given(capacities, largest, loads, states, percents | st.none(), settles)
def test_capacity_comes_to_rest(  # type: ignore[no-untyped-def]
    rule: Capacity, most, load: Load, state: State, percent: int | None, settle
) -> None:
    assert rests(settled(policy(rule, percent, settle, most), state, load, ticks=90))


@house
@given(guarded, loads, states, percents | st.none(), settles)
def test_guarded_buckets_come_to_rest(  # type: ignore[no-untyped-def]
    rule: Buckets, load: Load, state: State, percent: int | None, settle
) -> None:
    assert rests(settled(policy(rule, percent, settle), state, load, ticks=200))


@house
@given(weights, loads, states, percents | st.none(), settles)
def test_weights_with_rest_and_smallest_change_come_to_rest(  # type: ignore[no-untyped-def]
    rule: Weights, load: Load, state: State, percent: int | None, settle
) -> None:
    assert rests(settled(policy(rule, percent, settle, gates=hvpa_weights_gates()), state, load, ticks=150))


def test_bare_weights_can_go_round_for_ever() -> None:
    """With neither rest nor smallest change: a size that follows its own replicas swings between 2 and 3."""
    swing = Weights(stages=(Stage(vertical_share=0.8, first=1, last=3), Stage(vertical_share=0, first=4, last=20)))
    load, state = Load(cpu=3.0, memory=1e8, base_cpu=0.05, base_memory=0.0), start(2, 1.0, 1e8)
    shapes = settled(policy(swing, 100), state, load)
    assert {replicas for replicas, _ in shapes[-10:]} == {2, 3}
    assert shapes[-1] == shapes[-3] != shapes[-2]
    assert rests(settled(policy(swing, 100, (StabiliseMax(), UpLimit()), gates=hvpa_weights_gates()), state, load))
    assert rests(settled(policy(Capacity(), 100), state, load))


def test_vertical_totals_alone_miss_nothing() -> None:
    """hpa.deploy: false is no missing metric: replicas follow the vertical total, down as well."""
    rule = Buckets(buckets=(bucket((1, 8), cpu=(0, 4), gb=(0, 8)),))
    after, decision = tick(policy(rule, None), start(8, 4.0, 1e9), Load(cpu=2.0), NOW)
    assert RuleName.METRICS_MISSING not in [step.rule for step in decision.steps]
    assert (after.replicas, after.size.requests.cpu_cores) == (3, 0.767)  # 2.3 cores with vertical's margin
    assert decision.memory.failing_since is None


def test_a_vetoed_scale_out_keeps_sizes_that_counted_on_it() -> None:
    """Seven cores want more, smaller replicas; a quota says no, so none is made smaller."""
    rule, state, load = Capacity(preferred=size(1.0)), start(2, 8.0, 1e9), Load(cpu=6.0)
    free, _ = tick(policy(rule, None), state, load, NOW)
    assert free.replicas == 7
    veto = Veto(axis=Axis.REPLICAS, direction=Direction.UP, reason="Quota")
    decision = decide(policy(rule, None), replace(look(state, load, NOW), vetoes=(veto,)), state.memory)
    assert decision.plan.replicas == 2
    assert decision.plan.sizes["app"].requests.cpu_cores == 8.0


def test_missing_metrics_take_nothing_away() -> None:
    """Replicas and CPU stay, although vertical would give less and the path fewer replicas."""
    seen = replace(look(start(6, 1.0, 1e9), Load(cpu=0.6), NOW), samples=(Missing(reason=Reason.UNREACHABLE),))
    for rule in (Capacity(), Buckets(buckets=(bucket((1, 8), cpu=(0, 4), gb=(0, 8)),))):
        plan = decide(policy(rule, 50), seen, Memory()).plan
        assert (plan.replicas, plan.sizes["app"].requests.cpu_cores) == (6, 1.0)
