"""Capacity: the total first, one path, one hysteresis; and none of what went wrong with two recommenders at once."""

from __future__ import annotations

import pytest

from tests.core.build import CPU, NOW
from tests.core.loop import TICK_S, Load, cpu_percent, start, tick
from tests.core.wishes import FREE, VERTICAL_ONLY, G, ask, container, size
from trimtab.core.blend import blend, speaks_for
from trimtab.core.blend.capacity import replicas_for, size_for
from trimtab.core.model import Plan, RuleName, Step
from trimtab.policy import (
    Axis,
    Bounds,
    Capacity,
    ContainerRule,
    Metric,
    MetricKind,
    Policy,
    Size,
    TotalAverage,
    Vertical,
)

ON_CPU = frozenset({Axis.CPU})


def allowed(cpu: float | None = None, gb: float | None = None) -> Vertical:
    return Vertical(containers=(ContainerRule(most=size(cpu, gb)),), floor=Size())


def shape(of: Plan) -> tuple[int, float | None, float | None]:
    requests = of.sizes["app"].requests
    memory = requests.memory_bytes
    return of.replicas, requests.cpu_cores, None if memory is None else memory / G


def test_a_need_of_five_cores_is_five_cores() -> None:
    """HVPA with weight 0.5 makes 3 x 3 of it."""
    found = blend(Capacity(), allowed(cpu=2.5), ask(1, 5, size(1.0), size(5.0)), [])
    assert shape(found)[:2] == (2, 2.5)


def test_and_stays_five_cores_when_the_wishes_of_the_past_meet_new_sizes() -> None:
    """Stabilisation keeps the wish for 5 small replicas; of larger ones that would be more than 8 cores."""
    policy = Policy(
        signals=(cpu_percent(100),), vertical=allowed(cpu=2.0), blend=Capacity(), bounds=Bounds(max_replicas=10)
    )
    state, load = start(1, 1.0, 1e9), Load(cpu=5.0, memory=8e8, base_memory=0.0)
    totals = []
    for index in range(12):
        state, _ = tick(policy, state, load, NOW + index * TICK_S)
        totals.append(state.total().cpu_cores)
    assert all(total is not None and total <= 6.0 for total in totals)  # HPA counts in whole replicas, here of 2 cores
    assert (totals[-1] or 0.0) >= 5.0


@pytest.mark.parametrize(
    "current, replicas, gb",
    [
        pytest.param(2, 3, 14 / 3, id="HVPA's base usage: 2 + 8 / 3, 14 GB in all"),
        pytest.param(4, 3, 4.0, id="a replica that goes gives nothing back before it is gone"),
        pytest.param(3, 3, 4.0, id="the same count needs the same total"),
    ],
)
def test_size_with_a_base(current: int, replicas: int, gb: float) -> None:
    assert size_for(12.0, 2.0, current, replicas) == pytest.approx(gb)


@pytest.mark.parametrize(
    "total, current, replicas",
    [
        pytest.param(2.0, 1, 1, id="one replica up to its cap"),
        pytest.param(2.1, 1, 2, id="then more of them"),
        pytest.param(3.7, 2, 2, id="and they stay"),
        pytest.param(1.9, 2, 2, id="while one would be tight"),
        pytest.param(1.8, 2, 1, id="until it is not: 1.8 = 0.9 * 2"),
        pytest.param(0.0, 5, 1, id="no load"),
    ],
)
def test_the_path(total: float, current: int, replicas: int) -> None:
    assert replicas_for(total, 2.0, 0.0, current, 0.1) == replicas


def test_base_usage_counts_on_the_way_out() -> None:
    """5 GB of which 2 are base, cap 6: three replicas of work at 4 each need 3 (with no base 2.5)."""
    assert replicas_for(14.0, 6.0, 2.0, 2, 0.1) == 3
    assert replicas_for(20.0, 6.0, 2.0, 2, 0.1) == 4
    assert replicas_for(20.0, 6.0, 0.0, 2, 0.1) == 4
    assert replicas_for(28.0, 6.0, 2.0, 2, 0.1) == 6  # 24 of work / 4; without a base 5 would seem enough


def test_replicas_grow_to_the_preferred_size_first() -> None:
    rule = Capacity(preferred=size(1.0))
    assert shape(blend(rule, allowed(cpu=4.0), ask(1, 3, size(1.0), size(1.0)), []))[:2] == (3, 1.0)
    at_most = blend(rule, allowed(cpu=4.0), ask(3, 3, size(1.0), size(3.0), most=3), [])
    assert shape(at_most)[:2] == (3, 3.0)


def test_a_horizontal_recommendation_counts_up_to_max_replicas_only() -> None:
    """9 pods of 1 core are asked for and 3 allowed: no pod grows to 3 cores because of it."""
    rule = Capacity(preferred=size(1.0))
    assert shape(blend(rule, allowed(cpu=4.0), ask(3, 9, size(1.0), size(1.0), most=3), []))[:2] == (3, 1.0)


def test_no_more_than_allowed_and_it_says_so() -> None:
    steps: list[Step] = []
    found = blend(Capacity(), allowed(cpu=2.0), ask(3, 10, size(2.0), size(7.0), most=4), steps)
    assert shape(found)[:2] == (4, 2.0)
    rules = {step.rule for step in steps}
    assert {RuleName.ALLOWED, RuleName.MAX_REPLICAS} <= rules


def test_without_a_largest_size_the_horizontal_wish_decides_how_many() -> None:
    found = blend(Capacity(), FREE, ask(4, 6, size(1.0), size(1.2)), [])
    assert shape(found)[:2] == (6, 1.0)


def test_without_a_largest_size_and_without_signals_the_replicas_stay() -> None:
    found = blend(Capacity(), FREE, ask(4, 4, size(1.0), size(0.5), speaks_for=VERTICAL_ONLY), [])
    assert shape(found)[:2] == (4, 0.5)


def test_memory_does_not_grow_because_cpu_does() -> None:
    """CPU asks for twice as many; memory is shared anew, but no replica loses what it has at once."""
    found = blend(
        Capacity(), allowed(cpu=1.0, gb=4.0), ask(2, 4, size(1.0, 2.0), size(1.0, 2.0), speaks_for=ON_CPU), []
    )
    assert shape(found) == (4, 1.0, 2.0)
    smaller = ask(4, 4, size(1.0, 2.0), size(1.0, 1.1), speaks_for=ON_CPU)
    assert shape(blend(Capacity(), allowed(cpu=1.0, gb=4.0), smaller, [])) == (4, 1.0, 1.1)


@pytest.mark.parametrize(
    "target, after",
    [
        pytest.param(0.95, 1.0, id="a little less is kept"),
        pytest.param(0.85, 0.85, id="much less is taken away"),
        pytest.param(1.01, 1.01, id="any more is given"),
    ],
)
def test_sizes_shrink_only_beyond_the_hysteresis(target: float, after: float) -> None:
    wish = ask(3, 3, size(1.0), size(target), speaks_for=VERTICAL_ONLY)
    found = blend(Capacity(preferred=size(1.2)), allowed(cpu=2.0), wish, [])
    assert found.sizes["app"].requests.cpu_cores == after


def test_an_overload_is_answered_with_size() -> None:
    hurt = ask(2, 2, size(1.0, 1.0), size(1.0, 1.9), overloaded=True)
    rule = Capacity(preferred=size(2.0, 1.5))
    found = blend(rule, allowed(cpu=2.0, gb=4.0), hurt, [])
    assert found.sizes["app"].requests.memory_bytes == 1.9 * G


def test_a_configured_base_larger_than_the_usage_does_no_harm() -> None:
    """n replicas never look overloaded because somebody overrated what each needs for itself."""
    rule = Capacity(base=size(0.9))
    found = blend(rule, allowed(cpu=1.0), ask(4, 4, size(0.75), size(0.75), speaks_for=VERTICAL_ONLY), [])
    assert found.replicas == 4


def test_several_containers_share_the_replica() -> None:
    wish = ask(2, 2, size(), size(), speaks_for=VERTICAL_ONLY)._replace(
        sizes={"app": container(1.0), "car": container(0.5)}, targets={"app": size(2.0), "car": size(1.0)}
    )
    found = blend(Capacity(), FREE, wish, [])
    assert {name: one.requests.cpu_cores for name, one in found.sizes.items()} == {"app": 2.0, "car": 1.0}


def test_missing_signals_never_take_replicas_away() -> None:
    blind = ask(6, 6, size(1.0), size(0.2), blind=True)
    found = blend(Capacity(), allowed(cpu=4.0), blind, [])
    assert shape(found)[:2] == (6, 1.0)


@pytest.mark.parametrize(
    "signals, expected",
    [
        pytest.param((cpu_percent(50),), {Axis.CPU}, id="CPU utilisation: CPU"),
        pytest.param(
            (TotalAverage(metric=Metric(kind=MetricKind.EXTERNAL, name="rps"), target=1.0),),
            {Axis.CPU, Axis.MEMORY},
            id="requests: the whole replica",
        ),
        pytest.param(
            (TotalAverage(metric=Metric(kind=MetricKind.EXTERNAL, name="cpu"), target=1.0),),
            {Axis.CPU, Axis.MEMORY},
            id="a metric that is only called cpu: the whole replica",
        ),
        pytest.param((), set(), id="none: nothing"),
    ],
)
def test_what_signals_speak_for(signals: tuple[TotalAverage, ...], expected: set[Axis]) -> None:
    assert CPU.name == "cpu"
    assert speaks_for(signals) == expected
