"""While nothing is measured the workload keeps its size, and the first samples afterwards do not lower it alone."""

from __future__ import annotations

from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.core.build import NOW, per_second, total
from trimtab.core.decide import decide
from trimtab.core.model import Forecast, Memory, Missing, Observation, Quantile, Reason
from trimtab.policy import (
    Absence,
    Admit,
    ForecastChoice,
    Mode,
    Policy,
    Rate,
    RatePolicy,
    Rates,
    Rule,
    Stabilise,
    StabiliseMax,
)

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


@given(st.integers(1, 40), st.floats(0, 60), st.floats(-30, 90), st.booleans())
def test_without_metrics_a_dated_forecast_only_adds(replicas: int, demand: float, left_s: float, rated: bool) -> None:
    """Never fewer pods than now; more only while the forecast has not expired, and within the written rate."""
    rates = (Rate(up=Rates(policies=(RatePolicy(percent=False, value=2, period_s=60.0),))),) if rated else ()
    policy = per_second(1.0, settle=(BETWEEN, *rates), forecast=ForecastChoice(model="seasonal", horizon_s=60.0))
    forecast = Forecast(
        made_at=NOW - 60,
        expires_at=NOW + left_s,
        demand=(Quantile(0.5, demand), Quantile(0.9, demand)),
        model="seasonal",
    )
    seen = replace(blind(replicas, NOW), forecasts=(forecast,))
    before = Memory(wanted=((NOW - TICK_S, replicas),), failing_since=NOW - 45.0)
    decision = decide(policy, seen, before)
    wanted = min(ceil(demand - 1e-9), policy.bounds.max_replicas)
    expected = max(replicas, wanted) if NOW + left_s > NOW else replicas
    assert decision.plan.replicas == (min(expected, replicas + 2) if rated else expected)
    assert decision.memory.failing_since == NOW - 45.0, "the fallback of lost metrics is still counted from then"
