"""The bridge: its levels, how long it holds them, and that it forgets nothing it may still need."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.core.build import NOW, busy, hpa, per_second, pod, total
from trimtab.core.bridge import CALM_S, LEVEL, Needed, factor_of, level_needed, still_needed
from trimtab.core.decide import decide
from trimtab.core.explain import sentence
from trimtab.core.model import Decision, Memory, Missing, Observation, Reason, Veto
from trimtab.core.remember import remember, restored, shifted, stored
from trimtab.policy import Axis, Bridge, Direction, Policy

STEP_S = 15.0


@pytest.mark.parametrize(
    ("load", "level"),
    [(0.0, 1.0), (7.5, 1.0), (7.51, 1.25), (9.375, 1.25), (9.4, 1.5), (11.25, 1.5), (100.0, 1.5)],
)
def test_ten_ready_pods_get_the_lowest_level_that_carries_the_load(load: float, level: float) -> None:
    assert level_needed(load, 10, 0.75, 1.5) == level


def test_without_ready_pods_there_is_nothing_to_resize() -> None:
    assert level_needed(5.0, 0, 0.75, 1.5) == 1.0


def test_the_largest_factor_binds_even_between_two_levels() -> None:
    assert level_needed(9.0, 10, 0.75, 1.1) == 1.1
    assert level_needed(30.0, 10, 0.75, 2.0) == 2.0


def test_up_at_once_and_down_after_five_calm_minutes() -> None:
    needed = still_needed((), 1.5, 0.0)
    assert factor_of(needed) == 1.5
    assert factor_of(still_needed(needed, 1.0, CALM_S - STEP_S)) == 1.5
    assert factor_of(still_needed(needed, 1.0, CALM_S)) == 1.0


def test_a_lower_level_needed_meanwhile_holds_its_own_five_minutes() -> None:
    needed = still_needed(still_needed((), 1.5, 0.0), 1.25, 150.0)
    assert factor_of(needed) == 1.5
    assert factor_of(still_needed(needed, 1.0, CALM_S)) == 1.25
    assert factor_of(still_needed(needed, 1.0, CALM_S + 150.0)) == 1.0


@given(st.lists(st.sampled_from([1.0, 1.25, 1.5, 1.75]), min_size=1, max_size=60))
def test_the_factor_is_the_highest_level_of_the_last_five_minutes(levels: list[float]) -> None:
    needed: Needed = ()
    for step, level in enumerate(levels):
        needed = still_needed(needed, level, step * STEP_S)
        window = levels[max(0, step + 1 - round(CALM_S / STEP_S)) : step + 1]
        assert factor_of(needed) == max(window)
        assert len(needed) <= 0.75 / LEVEL


# --- the stage in a decision -----------------------------------------------------------------------------------------


def bridged(percent: int = 60, **limits: object) -> Policy:
    return hpa(percent, bridge=Bridge(**limits))  # type: ignore[arg-type]


def written(policy: Policy, seen: Observation, memory: Memory) -> tuple[Decision, Memory]:
    """The decision, and the memory after its change was written."""
    decision = decide(policy, seen, memory)
    after = decision.memory
    return decision, remember(policy, after, decision.change, seen.at) if decision.change else after


@pytest.mark.parametrize(
    ("utilization", "factor"), [(0.5, 1.0), (0.75, 1.0), (0.76, 1.25), (0.93, 1.25), (0.95, 1.5), (3.0, 1.5)]
)
def test_ready_pods_get_what_the_load_needs_now(utilization: float, factor: float) -> None:
    decision = decide(bridged(), busy(10, utilization), Memory())
    assert decision.plan.bridge == factor
    assert (decision.change.bridge if decision.change else None) == (factor if factor > 1.0 else None)


@pytest.mark.parametrize(("largest", "factor"), [(1.25, 1.25), (1.5, 1.5)])
def test_the_largest_factor_binds(largest: float, factor: float) -> None:
    assert decide(bridged(max_factor=largest), busy(10, 2.0), Memory()).plan.bridge == factor


@given(
    utilization=st.floats(0.0, 4.0),
    replicas=st.integers(1, 60),
    in_force=st.sampled_from([1.0, 1.25, 1.5]),
    largest=st.sampled_from([1.25, 1.5]),
)
def test_it_stays_within_its_bounds_and_changes_neither_pods_nor_sizes(
    utilization: float, replicas: int, in_force: float, largest: float
) -> None:
    seen, memory = busy(replicas, utilization), Memory(bridge=in_force)
    without, with_it = decide(hpa(60), seen, Memory()), decide(bridged(max_factor=largest), seen, memory)
    assert 1.0 <= with_it.plan.bridge <= largest
    assert (with_it.plan.replicas, with_it.plan.sizes) == (without.plan.replicas, without.plan.sizes)
    assert with_it.change is None or with_it.change.sizes is None


def test_a_restart_keeps_it_for_what_is_left_of_its_five_minutes() -> None:
    policy = bridged()
    _, memory = written(policy, busy(10, 0.9), Memory())
    again = restored(msgspec.json.decode(msgspec.json.encode(stored(memory)), type=Memory), NOW + 60, 10)
    calm, memory = written(policy, busy(10, 0.4, at=NOW + 60), again)
    assert calm.plan.bridge == 1.25
    late, memory = written(policy, busy(10, 0.4, at=NOW + CALM_S), memory)
    assert late.change is not None and late.change.bridge == 1.0 and memory.bridge == 1.0


def test_while_the_load_is_unknown_it_stays() -> None:
    blind = replace(busy(10, 0.2), samples=(Missing(reason=Reason.UNREACHABLE),))
    for in_force in (1.0, 1.25):
        assert decide(bridged(), blind, Memory(bridge=in_force)).plan.bridge == in_force


def test_pods_that_start_carry_nothing_and_get_nothing() -> None:
    seen = busy(10, 0.7)
    starting = tuple(pod(index, ready=False, phase="Pending") for index in range(10, 20))
    decision = decide(bridged(), replace(seen, pods=seen.pods + starting, spec_replicas=20), Memory())
    assert decision.plan.bridge == 1.0
    busier = replace(busy(10, 0.9), pods=seen.pods + starting, spec_replicas=20)
    decision = decide(bridged(), busier, Memory())
    assert decision.plan.bridge == 1.25
    text = sentence(bridged(), busier, Memory(), decision)
    assert "until then the 10 ready ones have 1.25 times their cpu" in text


def test_taking_the_field_away_takes_the_bridge_back() -> None:
    decision, memory = written(hpa(60), busy(10, 1.0), Memory(bridge=1.25, bridge_needed=((1.25, NOW),)))
    assert decision.change is not None and decision.change.bridge == 1.0
    assert (memory.bridge, memory.bridge_needed) == (1.0, ())


@pytest.mark.parametrize("axis", [Axis.BRIDGE, Axis.CPU])
def test_a_veto_keeps_it_from_growing_and_says_why(axis: Axis) -> None:
    veto = Veto(axis=axis, direction=Direction.UP, reason="ExceedsQuota", detail="ResourceQuota shop/small is full")
    seen = replace(busy(10, 0.9), vetoes=(veto,))
    decision = decide(bridged(), seen, Memory())
    assert decision.plan.bridge == 1.0 and decision.plan.replicas == decide(hpa(60), seen, Memory()).plan.replicas
    assert "ResourceQuota shop/small is full" in sentence(bridged(), seen, Memory(), decision)
    shrinks = decide(bridged(), replace(busy(10, 0.3), vetoes=(veto,)), Memory(bridge=1.25))
    assert shrinks.plan.bridge == 1.0


def test_a_stale_view_takes_nothing_back() -> None:
    veto = Veto(axis=Axis.BRIDGE, direction=Direction.DOWN, reason="StaleView")
    assert decide(bridged(), replace(busy(10, 0.3), vetoes=(veto,)), Memory(bridge=1.25)).plan.bridge == 1.25


def test_resizes_per_hour_are_limited_and_the_last_one_is_kept_for_growing() -> None:
    policy, memory, moved = bridged(resizes_per_hour=4), Memory(), []
    for step in range(240):
        at = NOW + step * STEP_S
        busy_now = (step // 21) % 2 == 0
        decision, memory = written(policy, busy(10, 0.9 if busy_now else 0.3, at=at), memory)
        if decision.change is not None and decision.change.bridge is not None:
            moved.append(decision.change.bridge)
        assert memory.bridge == 1.25 or not busy_now, "the load always has its bridge"
    assert moved == [1.25, 1.0, 1.25]
    assert len(memory.bridge_moves) <= 4


def test_without_a_signal_on_cpu_there_is_no_bridge() -> None:
    assert decide(per_second(bridge=Bridge()), total(3, 900.0), Memory()).plan.bridge == 1.0


@pytest.mark.parametrize("said", [1e9, float("nan"), -3.0, 0.5])
def test_a_memory_that_others_wrote_is_held_to_the_bounds(said: float) -> None:
    memory = Memory(bridge=said)
    blind = replace(busy(10, 0.2), samples=(Missing(reason=Reason.UNREACHABLE),))
    veto = Veto(axis=Axis.BRIDGE, direction=None, reason="StaleView")
    for seen in (blind, busy(10, 0.9), replace(busy(10, 0.9), vetoes=(veto,))):
        assert 1.0 <= decide(bridged(max_factor=1.25), seen, memory).plan.bridge <= 1.25


def test_a_clock_that_is_set_moves_it_too() -> None:
    memory = shifted(Memory(bridge=1.25, bridge_needed=((1.25, NOW),), bridge_moves=(NOW,)), 50.0)
    assert (memory.bridge_needed, memory.bridge_moves) == (((1.25, NOW + 50.0),), (NOW + 50.0,))
