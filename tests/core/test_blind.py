"""While nothing is measured the workload keeps its size, and the first samples afterwards do not lower it alone."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.core.build import NOW, per_second, total
from trimtab.core.decide import decide
from trimtab.core.model import Memory, Missing, Observation, Reason
from trimtab.policy import Absence, Admit, Mode, Policy, Rule, Stabilise, StabiliseMax

TICK_S, WINDOW_S = 15.0, 300.0
BETWEEN, HIGHEST = Stabilise(up_s=0.0, down_s=WINDOW_S), StabiliseMax(window_s=WINDOW_S)


def blind(replicas: int, at: float) -> Observation:
    return replace(total(replicas, 0.0, at), samples=(Missing(reason=Reason.ABSENT),))


def after_blindness(policy: Policy, replicas: int, seconds: float) -> tuple[int, Memory]:
    """What became of the replicas after so many seconds without a sample."""
    memory = Memory(wanted=((NOW - TICK_S, replicas),))
    for tick in range(int(seconds / TICK_S)):
        decision = decide(policy, blind(replicas, NOW + tick * TICK_S), memory)
        replicas, memory = decision.plan.replicas, decision.memory
    return replicas, memory


@pytest.mark.parametrize("rule", [BETWEEN, HIGHEST], ids=["behavior", "no behavior"])
@pytest.mark.parametrize("blind_s", [30.0, 600.0, 3600.0])
def test_a_window_passes_after_the_samples_are_back(rule: Rule, blind_s: float) -> None:
    policy = per_second(10.0, settle=(rule,))
    _, memory = after_blindness(policy, 9, blind_s)
    back, lowered = NOW + blind_s, []
    for tick in range(30):
        at = back + tick * TICK_S
        decision = decide(policy, total(9, 10.0, at), memory)
        memory = decision.memory
        lowered += [at - back] if decision.plan.replicas < 9 else []
    assert WINDOW_S - 2 * TICK_S <= lowered[0] <= WINDOW_S


@pytest.mark.parametrize("away", [Admit(mode=Mode.PAUSED), Admit(pin=9)], ids=["paused", "pinned"])
@pytest.mark.parametrize("rule", [BETWEEN, HIGHEST], ids=["behavior", "no behavior"])
def test_a_window_passes_after_a_pause_and_after_a_pin(rule: Rule, away: Admit) -> None:
    policy, memory = per_second(10.0, settle=(rule,)), Memory()
    for tick in range(240):
        memory = decide(replace(policy, admit=away), total(9, 10.0, NOW + tick * TICK_S), memory).memory
    back = NOW + 240 * TICK_S
    first, later = (decide(policy, total(9, 10.0, at), memory) for at in (back, back + WINDOW_S))
    assert (first.plan.replicas, later.plan.replicas) == (9, 1)
    assert decide(policy, total(9, 150.0, back), memory).plan.replicas == 15


@pytest.mark.parametrize("rule", [BETWEEN, HIGHEST], ids=["behavior", "no behavior"])
def test_load_that_rose_meanwhile_is_followed_at_once(rule: Rule) -> None:
    policy = per_second(10.0, settle=(rule,))
    _, memory = after_blindness(policy, 9, 600.0)
    assert decide(policy, total(9, 150.0, NOW + 600), memory).plan.replicas == 15


@pytest.mark.parametrize("rule", [BETWEEN, HIGHEST], ids=["behavior", "no behavior"])
def test_a_fallback_that_may_lower_is_not_undone_by_what_was_wished_before(rule: Rule) -> None:
    absence = Absence(hold_s=60.0, then_replicas=6, allow_decrease=True)
    policy = per_second(10.0, settle=(rule,), absence=absence)
    replicas, memory = after_blindness(policy, 20, 120.0)
    assert replicas == 6
    assert decide(policy, total(6, 60.0, NOW + 120), memory).plan.replicas == 6
