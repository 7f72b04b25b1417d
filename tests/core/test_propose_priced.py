"""An objective in decide(): what load is worth, what binds it, and what happens while nobody knows."""

from __future__ import annotations

from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.core.build import CPU, NOW, busy, hpa, per_second, pod, total
from trimtab.core.decide import decide
from trimtab.core.explain import sentence, table
from trimtab.core.model import Forecast, Memory, Missing, Observation, PodSamples, Quantile, Reason, TotalSample
from trimtab.core.priced import level, levels
from trimtab.policy import (
    Bounds,
    Bridge,
    ForecastChoice,
    Objective,
    Policy,
    Rate,
    RatePolicy,
    Rates,
    ScheduledBounds,
    Stabilise,
    Utilization,
)

LEARNED = ForecastChoice(model="learned")
PROBABILITIES = (0.3, 0.5, 0.8, 0.9, 0.95, 0.99, 0.999)


def expecting(pods: float, spread: float = 0.2, keep: float | None = None) -> Forecast:
    """Demand in cores of pods of one core, the higher quantiles by so much above."""

    def quantiles(middle: float) -> tuple[Quantile, ...]:
        return tuple(Quantile(p, middle * (1.0 + spread * (p - 0.5))) for p in PROBABILITIES)

    kept = quantiles(keep) if keep is not None else ()
    return Forecast(made_at=NOW - 15, expires_at=NOW + 285, demand=quantiles(pods), keep=kept, model="learned")


def priced(price: float = 32.0, percent: int = 70, least: int = 1, most: int = 100, **rest: object) -> Policy:
    given = {"forecast": LEARNED, "objective": Objective(price=price)} | rest
    return hpa(percent, least, most, **given)


def seeing(replicas: int, load_pods: float, forecast: Forecast | Missing) -> Observation:
    return replace(busy(replicas, load_pods / replicas), forecasts=(forecast,))


def replicas(policy: Policy, seen: Observation, memory: Memory | None = None) -> int:
    return decide(policy, seen, memory or Memory()).plan.replicas


def test_what_is_worth_starting_is_started() -> None:
    assert replicas(priced(), seeing(12, 8.0, expecting(12.3))) >= 16


def test_a_higher_price_keeps_and_starts_more() -> None:
    seen = seeing(12, 8.0, expecting(12.0, spread=1.0))
    wanted = [replicas(priced(price), seen) for price in (1.0, 8.0, 32.0, 128.0)]
    assert wanted == sorted(wanted)
    assert wanted[0] < wanted[-1]


def test_what_is_kept_is_let_go_only_above_its_own_level() -> None:
    seen = seeing(12, 6.0, expecting(6.0, keep=9.0))
    assert replicas(priced(), seen) == 12  # 9 pods of load within five minutes: twelve are worth keeping
    assert replicas(priced(), seeing(20, 6.0, expecting(6.0, keep=9.0))) in (12, 13)
    assert replicas(priced(), seeing(12, 6.0, expecting(6.0, keep=6.0))) == 9


def test_never_fewer_than_the_load_needs_now_at_the_service_level() -> None:
    assert replicas(priced(), seeing(12, 8.0, expecting(2.0))) == 10
    tight = priced(objective=Objective(service_level=0.5))
    assert replicas(tight, seeing(12, 8.0, expecting(2.0))) == 16


@given(
    load=st.floats(0.1, 60.0),
    forecast=st.floats(0.0, 90.0),
    current=st.integers(3, 40),
    price=st.floats(1.0, 1000.0),
)
def test_at_least_what_is_needed_and_within_bounds(load: float, forecast: float, current: int, price: float) -> None:
    found = replicas(priced(price, least=3, most=40), seeing(current, load, expecting(forecast)))
    assert 3 <= found <= 40
    assert found >= min(40, load / 0.8 - 1e-6)


def test_the_present_rules_are_only_those_that_are_written() -> None:
    """Twenty-four at once: neither HPA's doubling nor its five minutes are in the way."""
    assert replicas(priced(), seeing(6, 4.0, expecting(18.0))) > 20
    assert replicas(priced(), seeing(40, 4.0, expecting(4.0)), Memory(wanted=((NOW - 60, 40),))) < 10


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ((Stabilise(up_s=0.0, down_s=120.0),), 40),
        ((Rate(down=Rates(policies=(RatePolicy(percent=False, value=5, period_s=60),))),), 35),
    ],
    ids=["a window", "a rate"],
)
def test_written_rules_bind(rules: tuple[Rate | Stabilise, ...], expected: int) -> None:
    policy = priced(objective=Objective(settle=rules))
    assert replicas(policy, seeing(40, 4.0, expecting(4.0)), Memory(wanted=((NOW - 60, 40),))) == expected


def test_a_schedule_binds() -> None:
    office = ScheduledBounds(name="office", start=NOW - 60, end=NOW + 60, min_replicas=30)
    policy = replace(priced(), bounds=Bounds(max_replicas=100, spans=(office,)))
    assert replicas(policy, seeing(12, 4.0, expecting(4.0))) == 30


SILENT = Missing(reason=Reason.NOT_ENOUGH_HISTORY, detail="2 h of history, 1 d needed")


@pytest.mark.parametrize(
    "forecast",
    [SILENT, replace(expecting(30.0), expires_at=NOW - 1)],
    ids=["silent", "expired"],
)
def test_without_a_forecast_the_target_decides_by_kubernetes_rules(forecast: Forecast | Missing) -> None:
    seen = seeing(12, 10.0, forecast)
    plain = replace(priced(), objective=None, forecast=None)
    assert replicas(priced(), seen) == replicas(plain, replace(seen, forecasts=()))
    assert replicas(priced(), replace(seen, **busy_fields(40, 4.0)), Memory(wanted=((NOW - 60, 40),))) == 40


def busy_fields(replicas: int, load_pods: float) -> dict[str, object]:
    seen = busy(replicas, load_pods / replicas)
    names = ("spec_replicas", "status_replicas", "pods", "samples")
    return {name: getattr(seen, name) for name in names}


def test_what_was_wished_while_priced_still_holds_when_the_forecast_falls_silent() -> None:
    first = decide(priced(), seeing(20, 10.0, expecting(16.0)), Memory())
    later = replace(seeing(20, 4.0, SILENT), at=NOW + 60)
    assert replicas(priced(), later, first.memory) == first.plan.replicas >= 20


@pytest.mark.parametrize(("expected", "wanted"), [(3.0, 12), (30.0, 24)])
def test_without_metrics_a_forecast_may_add_pods_and_removes_none(expected: float, wanted: int) -> None:
    unseen = replace(seeing(12, 8.0, expecting(expected)), samples=(Missing(reason=Reason.UNREACHABLE),))
    assert replicas(priced(), unseen) == wanted


def saturated(used: float, limit: float | None) -> Observation:
    limits = {"app": limit} if limit is not None else {}
    sizes = {"app": pod(0).requests}
    pods = tuple(pod(index, containers=sizes, cpu_limits=limits) for index in range(4))
    samples = PodSamples(values={each.name: used for each in pods}, at=NOW)
    return Observation(
        at=NOW, spec_replicas=4, status_replicas=4, pods=pods, samples=(samples,), forecasts=(expecting(4.0),)
    )


def test_cpu_at_its_limit_is_the_least_that_is_asked_for() -> None:
    """All that pods may use is used: how much is asked for is not known, so the target decides where it wants more."""
    policy = priced(percent=50)
    decision = decide(policy, saturated(0.99, 1.0), Memory())
    assert decision.plan.replicas == 8
    assert "pods use all the cpu they may have" in table(decision)[1].why
    assert replicas(policy, saturated(0.99, None)) == replicas(policy, saturated(0.99, 2.0)) < 8


@given(
    used=st.floats(0.5, 2.0),
    percent=st.integers(20, 195),
    expected=st.floats(0.0, 60.0),
    price=st.floats(1.0, 1000.0),
)
def test_pods_at_their_limit_are_never_fewer_than_the_target_or_the_price_ask_for(
    used: float, percent: int, expected: float, price: float
) -> None:
    """The saturated pods ask for at least what pods with room to spare ask for, and no rule of the target delays it."""
    policy = priced(price, percent)
    seen = replace(saturated(used, used / 0.96), forecasts=(expecting(expected),))
    free = replace(saturated(used, 4.0), forecasts=(expecting(expected),))
    target = replace(policy, objective=None, forecast=None)
    found = replicas(policy, seen)
    assert found >= max(replicas(policy, free), replicas(target, replace(seen, forecasts=())), 4)


@given(
    loads=st.tuples(st.floats(0.05, 4.0), st.floats(0.05, 4.0)),
    limit=st.floats(0.6, 3.0),
    percent=st.integers(20, 290),
    expected=st.floats(0.0, 60.0),
    price=st.floats(1.0, 1000.0),
)
def test_more_load_never_yields_fewer_pods(
    loads: tuple[float, float], limit: float, percent: int, expected: float, price: float
) -> None:
    """Of what is asked for, no more is measured than pods may use: at the limit the target counts as well."""
    policy, target = priced(price, percent), priced(price, percent, objective=None, forecast=None)

    def seen(load: float) -> Observation:
        return replace(saturated(min(load, limit), limit), forecasts=(expecting(expected),))

    less, more = (seen(load) for load in sorted(loads))
    assert replicas(policy, less) <= replicas(policy, more)
    if max(loads) >= limit:
        assert replicas(policy, more) >= replicas(target, replace(more, forecasts=()))


BEING_READ = Missing(reason=Reason.BEING_READ)


@given(load=st.floats(0.1, 60.0), count=st.integers(1, 40), window_s=st.sampled_from((0.0, 300.0)))
def test_while_a_new_leader_reads_history_no_pod_goes_and_what_the_load_needs_is_there(
    load: float, count: int, window_s: float
) -> None:
    """The price raises to what the load needs at the level of its pods, however much more the target would ask for."""
    policy, seen = priced(settle=(Stabilise(down_s=window_s),), percent=30), seeing(count, load, BEING_READ)
    unlimited = replace(seen, pods=tuple(replace(each, cpu_limits={}) for each in seen.pods))
    assert replicas(policy, unlimited) == max(count, ceil(load - 1e-9))
    plain = replace(policy, objective=None)
    assert replicas(plain, seeing(count, load, BEING_READ)) >= max(count, replicas(plain, seeing(count, load, SILENT)))


def test_a_metric_without_a_request_is_counted_by_its_target() -> None:
    """A target of 10 is 70 % of what a pod carries: 100 requests are 7 pods of load and need 9 at 80 %."""
    policy = per_second(10.0, forecast=LEARNED, objective=Objective())
    seen = replace(total(20, 100.0), forecasts=(expecting(20.0),))
    decision = decide(policy, seen, Memory())
    assert decision.plan.replicas == 9
    assert decision.proposals[0].load_pods == pytest.approx(7.0)


def test_of_two_loads_the_one_that_is_worth_more_counts() -> None:
    rate = per_second(10.0).signals
    policy = replace(priced(), signals=(Utilization(metric=CPU, percent=70), *rate))
    seen = seeing(12, 6.0, expecting(6.0))
    both = replace(
        seen,
        samples=(*seen.samples, TotalSample(value=200.0, at=NOW)),
        forecasts=(expecting(6.0), expecting(200.0, spread=0.01)),
    )
    assert replicas(policy, both) == 18  # 200 / (10 / 0.7) / 0.8
    assert replicas(policy, replace(both, forecasts=(expecting(6.0), SILENT))) == 20


def test_the_sentence_says_load_what_is_usual_and_what_starts() -> None:
    seen = seeing(12, 12.3 * 0.9, expecting(12.3 * 0.9 * 1.08))
    bridged = priced(bridge=Bridge())
    decision = decide(bridged, seen, Memory())
    count = decision.plan.replicas - 12
    assert sentence(bridged, seen, Memory(), decision) == (
        f"{decision.plan.replicas} replicas: now 11.1 pods of load; +8 % is usual at this hour; {count} pods start, "
        "until then the 12 ready ones have 1.25 times their cpu"
    )


def test_the_sentence_says_what_goes() -> None:
    seen = seeing(20, 6.0, expecting(6.0, keep=6.0))
    decision = decide(priced(), seen, Memory())
    gone = 20 - decision.plan.replicas
    expected = f"now 6.0 pods of load; +0 % is usual at this hour; {gone} pods go"
    assert sentence(priced(), seen, Memory(), decision) == f"{decision.plan.replicas} replicas: {expected}"


def test_the_table_says_why() -> None:
    rows = table(decide(priced(), seeing(12, 8.0, expecting(12.0)), Memory()))
    assert rows[0].why == "8.0 pods of load need this at the service level"
    assert rows[1].why == "12.0 pods of load are expected; so many are worth it at this price"


@given(
    values=st.lists(st.floats(0.0, 200.0), min_size=7, max_size=7).map(sorted),
    price=st.floats(0.1, 500.0),
    carries=st.sampled_from([1.0, 0.25, 40.0]),
)
def test_one_forecast_is_priced_as_many_are(values: list[float], price: float, carries: float) -> None:
    demand = [Quantile(p, carries * value) for p, value in zip(PROBABILITIES, values, strict=True)]
    scaled = np.array([[carries * value for value in values]])
    assert levels(np.array(PROBABILITIES), scaled, [price], carries=carries)[0].tolist() == [
        level(demand, price, carries=carries)
    ]
