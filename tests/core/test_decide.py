"""The pipeline as a whole: HPA's rules, custom-hpa's examples, absences, pins and schedules."""

from __future__ import annotations

import math

import pytest
from msgspec.structs import replace

from tests.core.build import CPU, NOW, busy, custom_hpa, hpa, per_second, pod, total
from trimtab.core.admit import writes
from trimtab.core.decide import decide
from trimtab.core.model import (
    Change,
    Forecast,
    Memory,
    Missing,
    PodSamples,
    Quantile,
    Reason,
    RuleName,
    TotalSample,
)
from trimtab.core.remember import first_sight, remember
from trimtab.core.replica_calculator import by_average, by_total_average, by_value
from trimtab.core.tally import Tally, tally
from trimtab.policy import (
    Absence,
    Admit,
    Bounds,
    ForecastChoice,
    Mode,
    PodRules,
    Rate,
    RatePolicy,
    Rates,
    ScheduledBounds,
    Select,
    Size,
    Stabilise,
    Vertical,
)


def rules(decision: object) -> list[RuleName]:
    return [step.rule for step in decision.steps]  # type: ignore[attr-defined]


# --- Kubernetes autoscaling/v2 ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "utilization, replicas",
    [
        pytest.param(0.50, 4, id="on target: nothing happens"),
        pytest.param(0.55, 4, id="10 % above is still inside the tolerance, which is inclusive"),
        pytest.param(0.56, 5, id="12 % above: ceil(1.12 x 4) = 5"),
        pytest.param(1.00, 8, id="twice the target: twice the pods"),
        pytest.param(2.00, 8, id="four times the target: at most a doubling in one step"),
        pytest.param(0.45, 4, id="10 % below is inside the tolerance"),
        pytest.param(0.25, 2, id="half the target: half the pods"),
    ],
)
def test_hpa_follows_utilisation(utilization: float, replicas: int) -> None:
    assert decide(hpa(50), busy(4, utilization), Memory()).plan.replicas == replicas


def test_a_first_sight_never_shrinks_before_the_window_has_passed() -> None:
    policy, memory = hpa(50), first_sight(NOW, 4)
    held = decide(policy, busy(4, 0.1, at=NOW + 15), memory)
    assert held.plan.replicas == 4 and rules(held) == [RuleName.STABILISE]
    assert held.steps[0].until == NOW + 300
    later = decide(policy, busy(4, 0.1, at=NOW + 301), memory)
    assert later.plan.replicas == 1


def test_a_pods_own_window_decides_whether_its_sample_counts() -> None:
    """Scrapes are never quite as far apart: one pod's hair must not make another's sample one of its start-up."""
    young = tuple(pod(index, started_at=NOW - 20, ready_since=NOW - 10) for index in range(2))
    samples = PodSamples(values={one.name: 1.0 for one in young}, at=NOW, window_s=10.003, windows_s={"pod-1": 9.998})
    found = tally(young, samples, CPU, PodRules(), NOW, needs_request=True)
    assert isinstance(found, Tally) and (found.ready, found.unready) == (1, 1)


@pytest.mark.parametrize(
    "target, usage, ready, replicas",
    [
        pytest.param(0.1, 0.09 * 12, 12, 12, id="90m of 100m is nine tenths"),
        pytest.param(0.07, 0.063 * 10, 10, 10, id="63m of 70m too"),
        pytest.param(0.1, 0.089 * 12, 12, 11, id="89m is less"),
        pytest.param(0.1, 0.11 * 10, 10, 10, id="110m is the most that is tolerated"),
        pytest.param(0.1, 0.111 * 10, 10, 12, id="111m is more"),
    ],
)
def test_averages_are_compared_in_whole_thousandths(target: float, usage: float, ready: int, replicas: int) -> None:
    totals = Tally(ready, usage, 0.0, 0, 0.0, 0, 0.0, 0)
    assert by_average(totals, target, 0.1, 0.1, ready).replicas == replicas


@pytest.mark.parametrize("tenths", range(1, 60))
def test_totals_are_divided_in_whole_thousandths(tenths: int) -> None:
    assert by_total_average(tenths / 10, 0.1, 0.0, 0.0, 1) == tenths
    assert by_value(tenths / 10, 0.1, 0.0, 0.0, 1, 1).replicas == tenths


def test_unready_pods_damp_a_scale_up_and_never_brake_a_scale_down() -> None:
    young = {"started_at": NOW - 60, "ready_since": NOW - 10, "ready": False}
    pods = (*(pod(i) for i in range(3)), pod(3, **young), pod(4, **young))
    hot = replace(busy(5, 0.9), pods=pods)
    assert decide(hpa(60), hot, Memory()).plan.replicas == 5  # 2.7 of 5 cores is 54 %: within tolerance
    cold = replace(busy(5, 0.36), pods=pods)
    assert decide(hpa(60), cold, Memory()).plan.replicas == 2  # 36 % of 60 % over the three ready pods


def test_a_silent_pod_counts_as_busy_when_shrinking_and_as_idle_when_growing() -> None:
    def with_two_silent(utilization: float) -> int:
        seen = busy(4, utilization)
        samples = seen.samples[0]
        assert isinstance(samples, PodSamples)
        heard = dict(list(samples.values.items())[:2])
        return decide(hpa(50), replace(seen, samples=(replace(samples, values=heard),)), Memory()).plan.replicas

    assert with_two_silent(0.1) == 4  # (0.1 x 2 + 1.0 x 2) / 4 = 55 %: no change
    assert with_two_silent(1.0) == 4  # (1.0 x 2 + 0 x 2) / 4 = 50 %: no change


@pytest.mark.parametrize(
    "select, replicas",
    [
        pytest.param(Select.MAX, 15, id="the most generous policy: +50 %"),
        pytest.param(Select.MIN, 12, id="the strictest policy: +2 pods"),
        pytest.param(Select.DISABLED, 10, id="growing is disabled"),
    ],
)
def test_rate_policies_limit_growth(select: Select, replicas: int) -> None:
    pods, percent = (
        RatePolicy(percent=False, value=2, period_s=60),
        RatePolicy(percent=True, value=50, period_s=60),
    )
    rate = Rate(up=Rates(select=select, policies=(pods, percent)))
    policy = hpa(50, settle=(Stabilise(), rate))
    assert decide(policy, busy(10, 2.0), Memory()).plan.replicas == replicas


def test_what_was_added_within_the_period_counts_against_the_rate() -> None:
    rate = Rate(up=Rates(policies=(RatePolicy(percent=False, value=4, period_s=60),)))
    policy = hpa(50, settle=(Stabilise(), rate))
    memory = remember(policy, Memory(), Change(was=10, replicas=13), NOW - 30)
    assert decide(policy, busy(13, 2.0), memory).plan.replicas == 14
    assert decide(policy, busy(13, 2.0, at=NOW + 60), memory).plan.replicas == 17


def test_the_up_window_holds_a_spike_back() -> None:
    policy = hpa(50, settle=(Stabilise(up_s=60), Rate()))
    decision = decide(policy, busy(4, 1.0), first_sight(NOW - 15, 4))
    assert decision.plan.replicas == 4 and decision.steps[0].until == NOW + 45


def test_scale_to_zero_and_back_needs_a_signal_that_exists_without_pods() -> None:
    policy = per_second(10, least=0)
    down = decide(policy, total(3, 0.0), Memory())
    assert down.change is not None and down.change.replicas == 0
    asleep = remember(policy, down.memory, down.change, NOW)
    assert asleep.zeroed
    assert decide(policy, total(0, 25.0), asleep).plan.replicas == 3
    by_hand = decide(policy, total(0, 25.0), Memory())
    assert by_hand.change is None and rules(by_hand) == [RuleName.SWITCHED_OFF]


# --- nanit custom-hpa -------------------------------------------------------------------------------------------------

FREE = (0.0, 0.0, 1e9)


@pytest.mark.parametrize(
    "factor, up_max, down_max, replicas",
    [
        pytest.param(1.3, 0.5, 1.0, 13, id="nanit custom-hpa example 1: 1.3 stays 1.3 under a maximum of 0.5"),
        pytest.param(1.6, 0.5, 1.0, 15, id="nanit custom-hpa example 2: 1.6 capped to 1.5"),
        pytest.param(0.7, 1.0, 0.5, 7, id="nanit custom-hpa example 3: 0.7 stays 0.7 under a maximum of 0.5"),
        pytest.param(0.4, 1.0, 0.5, 5, id="nanit custom-hpa example 4: 0.4 capped to 0.5"),
    ],
)
def test_maximum_factor(factor: float, up_max: float, down_max: float, replicas: int) -> None:
    policy = custom_hpa(up=(0, 0, up_max), down=(0, 0, down_max))
    assert decide(policy, total(10, 100 * factor), Memory()).plan.replicas == replicas


@pytest.mark.parametrize(
    "factor, replicas",
    [
        pytest.param(1.3, 13, id="nanit custom-hpa permit example 1: 30 % is more than 20 %"),
        pytest.param(1.1, 10, id="nanit custom-hpa permit example 2: 10 % is not worth it"),
        pytest.param(0.6, 6, id="nanit custom-hpa permit example 3: 40 % is more than 20 %"),
        pytest.param(0.9, 10, id="nanit custom-hpa permit example 4: 10 % is not worth it"),
        pytest.param(1.2, 10, id="exactly the minimum is refused"),
    ],
)
def test_minimum_factor(factor: float, replicas: int) -> None:
    policy = custom_hpa(up=(0, 0.2, 1.0), down=(0, 0.2, 1.0))
    assert decide(policy, total(10, 100 * factor), Memory()).plan.replicas == replicas


def test_cooldown_rests_the_same_direction_only_and_ends_on_its_last_second() -> None:
    policy = custom_hpa(up=(60, 0.1, 1.0), down=(60, 0.1, 1.0))
    memory = remember(policy, Memory(), Change(was=5, replicas=10), NOW)
    during = decide(policy, total(10, 150, at=NOW + 59), memory)
    assert during.change is None and during.steps[0].until == NOW + 60
    assert decide(policy, total(10, 150, at=NOW + 60), memory).plan.replicas == 15
    assert decide(policy, total(10, 50, at=NOW + 1), memory).plan.replicas == 5


def test_float_noise_does_not_buy_a_pod() -> None:
    assert decide(custom_hpa(up=FREE), total(10, 110), Memory()).plan.replicas == 11  # 10 x 1.1 = 11.000000000000002


# --- absence ---------------------------------------------------------------------------------------------------------

BAD = [
    pytest.param(Missing(reason=Reason.UNREACHABLE), id="unreachable"),
    pytest.param(TotalSample(value=math.nan, at=NOW), id="not a number"),
    pytest.param(TotalSample(value=math.inf, at=NOW), id="infinite"),
    pytest.param(TotalSample(value=-1.0, at=NOW), id="negative"),
    pytest.param(TotalSample(value=1.0, at=NOW - 200), id="stale"),
    pytest.param(TotalSample(value=0.0, at=NOW), id="zero, where zero is no answer"),
]


@pytest.mark.parametrize("sample", BAD)
def test_no_answer_keeps_the_size(sample: TotalSample | Missing) -> None:
    policy = per_second(10, absence=Absence(stale_after_s=120, zero_is_missing=True))
    decision = decide(policy, replace(total(6, 0), samples=(sample,)), Memory())
    assert decision.change is None
    assert decision.memory.failing_since == NOW
    assert rules(decision) == [RuleName.METRICS_MISSING]


def test_each_kind_of_absence_keeps_its_own_reason() -> None:
    policy = per_second(10, absence=Absence(stale_after_s=120, zero_is_missing=True))
    reasons = []
    for param in BAD:
        decision = decide(policy, replace(total(6, 0), samples=(param.values[0],)), Memory())
        missing = decision.proposals[0].replicas
        assert isinstance(missing, Missing)
        reasons.append(missing.reason)
    assert reasons == [
        Reason.UNREACHABLE,
        Reason.NOT_FINITE,
        Reason.NOT_FINITE,
        Reason.NEGATIVE,
        Reason.STALE,
        Reason.ZERO,
    ]


@pytest.mark.parametrize(
    "current, allow_decrease, replicas",
    [
        pytest.param(3, False, 6, id="the fallback is a floor"),
        pytest.param(9, False, 9, id="it never lowers"),
        pytest.param(9, True, 6, id="unless the user says so"),
    ],
)
def test_on_metric_failure(current: int, allow_decrease: bool, replicas: int) -> None:
    absence = Absence(hold_s=300, then_replicas=6, allow_decrease=allow_decrease)
    seen = replace(total(current, 0), samples=(Missing(reason=Reason.ABSENT),))
    fresh = decide(per_second(10, absence=absence), seen, Memory(failing_since=NOW - 299))
    assert fresh.change is None
    assert decide(per_second(10, absence=absence), seen, Memory(failing_since=NOW - 300)).plan.replicas == replicas


def test_one_missing_signal_lets_the_other_grow_but_not_shrink() -> None:
    policy = replace(hpa(50), signals=hpa(50).signals + per_second(10).signals)
    missing = Missing(reason=Reason.UNREACHABLE)
    hot, cold = busy(4, 0.9), busy(4, 0.1)
    assert decide(policy, replace(hot, samples=(*hot.samples, missing)), Memory()).plan.replicas == 8
    assert decide(policy, replace(cold, samples=(*cold.samples, missing)), Memory()).change is None


def test_bounds_are_enforced_without_metrics() -> None:
    missing = (Missing(reason=Reason.UNREACHABLE),)
    policy = hpa(50, least=3, most=5)
    assert decide(policy, replace(busy(10, 0), samples=missing), Memory()).plan.replicas == 5
    assert decide(policy, replace(busy(1, 0), samples=missing), Memory()).plan.replicas == 3


# --- modes, pins, schedules ------------------------------------------------------------------------------------------


def test_paused_touches_nothing_not_even_bounds() -> None:
    paused = hpa(50, most=5, admit=Admit(mode=Mode.PAUSED))
    assert decide(paused, busy(10, 0.9), Memory()).change is None
    until = hpa(50, most=5, admit=Admit(paused_until=NOW + 60))
    assert decide(until, busy(10, 0.9), Memory()).change is None
    assert decide(until, busy(10, 0.9, at=NOW + 60), Memory()).plan.replicas == 5


def test_a_pin_overrules_every_signal_until_it_ends() -> None:
    policy = hpa(50, admit=Admit(pin=7, pin_until=NOW + 60))
    assert decide(policy, busy(4, 0.5), Memory()).plan.replicas == 7
    assert decide(policy, busy(0, 0.5), Memory()).plan.replicas == 7  # it may wake what was switched off by hand
    assert decide(policy, busy(4, 0.5, at=NOW + 60), Memory()).plan.replicas == 4


def test_a_pin_to_zero_ends_at_the_floor_and_a_hand_at_zero_does_not() -> None:
    policy = hpa(50, least=2, admit=Admit(pin=0, pin_until=NOW + 60))
    asleep = decide(policy, busy(4, 0.5), Memory())
    assert asleep.change is not None and asleep.change.replicas == 0
    memory = remember(policy, asleep.memory, asleep.change, NOW)
    assert decide(policy, busy(0, 0.0, at=NOW + 59), memory).change is None
    assert decide(policy, busy(0, 0.0, at=NOW + 60), memory).plan.replicas == 2
    assert decide(policy, busy(0, 0.0, at=NOW + 60), Memory()).plan.replicas == 0


@pytest.mark.parametrize(
    "rules, may",
    [
        pytest.param(Admit(), True, id="Auto"),
        pytest.param(Admit(pin=3, pin_until=NOW + 1), True, id="Auto, pinned"),
        pytest.param(Admit(mode=Mode.SHADOW), False, id="Shadow"),
        pytest.param(Admit(mode=Mode.SHADOW, pin=3), True, id="Shadow with a pin: the pin"),
        pytest.param(Admit(mode=Mode.SHADOW, pin=3, pin_until=NOW), False, id="Shadow, its pin is over"),
        pytest.param(Admit(mode=Mode.PAUSED), False, id="Paused"),
        pytest.param(Admit(mode=Mode.PAUSED, pin=3), False, id="Paused, pinned"),
        pytest.param(Admit(paused_until=NOW + 1), False, id="paused for a while"),
        pytest.param(Admit(paused_until=NOW + 1, pin=3), False, id="paused for a while, pinned"),
        pytest.param(Admit(paused_until=NOW), True, id="the pause is over"),
    ],
)
def test_what_may_be_written(rules: Admit, may: bool) -> None:
    assert writes(rules, NOW) is may


def test_schedules_are_floors_and_ceilings_inside_the_usual_bounds() -> None:
    office = ScheduledBounds(name="office", start=NOW, end=NOW + 3600, min_replicas=10)
    night = ScheduledBounds(name="night", start=NOW + 3600, end=NOW + 7200, max_replicas=2)
    policy = hpa(50, least=1, most=8)
    policy = replace(policy, bounds=replace(policy.bounds, spans=(office, night)))
    day = decide(policy, busy(4, 0.5), Memory())
    assert day.plan.replicas == 8  # ten are scheduled, maxReplicas is eight
    assert decide(policy, busy(4, 0.5, at=NOW + 3600), Memory()).plan.replicas == 2
    assert decide(policy, busy(4, 0.5, at=NOW + 7200), Memory()).plan.replicas == 4


def test_scheduled_floor_is_named_in_the_steps() -> None:
    office = ScheduledBounds(name="office", start=NOW, end=NOW + 3600, min_replicas=6)
    policy = replace(hpa(50), bounds=Bounds(min_replicas=1, max_replicas=9, spans=(office,)))
    decision = decide(policy, busy(6, 0.1), Memory())
    assert decision.change is None
    assert (decision.steps[-1].rule, decision.steps[-1].detail) == (RuleName.SCHEDULE, "office")


# --- forecasts -------------------------------------------------------------------------------------------------------


def _forecast(demand: float, expires_at: float = NOW + 60, per_pod: bool = False) -> Forecast:
    demanded = (Quantile(0.5, demand),)
    return Forecast(made_at=NOW, expires_at=expires_at, demand=demanded, model="linear", per_pod=per_pod)


@pytest.mark.parametrize(
    "demand, replicas",
    [
        pytest.param(4.0, 8, id="four cores at 50 % need eight pods of one core"),
        pytest.param(0.5, 4, id="a forecast may only add: the present load needs four"),
        pytest.param(2.000000000001, 4, id="float noise buys no pod"),
    ],
)
def test_a_forecast_only_adds(demand: float, replicas: int) -> None:
    policy = hpa(50, forecast=ForecastChoice())
    seen = replace(busy(4, 0.5), forecasts=(_forecast(demand),))
    assert decide(policy, seen, Memory()).plan.replicas == replicas


def test_an_expired_or_missing_outlook_is_silent_and_says_why() -> None:
    policy = hpa(50, forecast=ForecastChoice())
    for forecast, reason in (
        (_forecast(40.0, expires_at=NOW), Reason.EXPIRED),
        (Missing(reason=Reason.NOT_PREDICTABLE), Reason.NOT_PREDICTABLE),
    ):
        decision = decide(policy, replace(busy(4, 0.5), forecasts=(forecast,)), Memory())
        missing = decision.proposals[1].replicas
        assert decision.change is None and isinstance(missing, Missing) and missing.reason is reason


@pytest.mark.parametrize(
    "exact, replicas",
    [
        pytest.param(False, 5, id="predictive HPA's rule: never below what the load now needs"),
        pytest.param(True, 3, id="its program: the prediction replaces the present value"),
    ],
)
def test_predictive_hpa_predicts_per_pod_utilisation(exact: bool, replicas: int) -> None:
    policy = hpa(60, forecast=ForecastChoice(exact=exact), settle=())
    seen = replace(busy(4, 0.75), forecasts=(_forecast(40.0, per_pod=True),))
    assert decide(policy, seen, Memory()).plan.replicas == replicas


def test_only_predictive_hpas_program_may_replace_the_present() -> None:
    """Crane's exact DSP is another program: its prediction is one more metric, and the highest wins."""
    policy = hpa(60, forecast=ForecastChoice(model="dsp", exact=True), settle=())
    seen = replace(busy(4, 0.75), forecasts=(_forecast(1.0),))
    assert decide(policy, seen, Memory()).plan.replicas == 5


# --- the scale point -------------------------------------------------------------------------------------------------


def test_a_resize_does_not_move_the_point_at_which_a_pod_is_added() -> None:
    """50 % was written for one core; after a resize to two cores a pod is still added above half a core."""
    policy = hpa(50, vertical=Vertical())
    grown = replace(busy(4, 0.25, request=2.0), written_for={"app": Size(cpu_cores=1.0)})
    assert decide(policy, grown, Memory()).plan.replicas == 4  # half a core each: on target
    assert decide(policy, replace(grown, written_for={}), Memory()).plan.replicas == 2  # 25 % of its own request
    hot = replace(busy(4, 0.5, request=2.0), written_for={"app": Size(cpu_cores=1.0)})
    assert decide(policy, hot, Memory()).plan.replicas == 8
    assert decide(hpa(50), grown, Memory()).plan.replicas == 2  # without vertical scaling requests are the user's own
