"""What has been learned is kept from one forecast to the next, made again when the past grows, and forgotten."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import numpy as np
import pytest
from msgspec.structs import replace

from trimtab.core.demand import keys_of
from trimtab.core.forecast.demand_forecasts import DemandForecasts, make
from trimtab.core.forecast.learned import model as learned
from trimtab.core.model import Forecast, Missing, Observation, Reason, TotalSample
from trimtab.core.startup import startup
from trimtab.policy import ForecastChoice, Metric, MetricKind, Objective, Policy, TotalAverage, Utilization
from trimtab.series import Floats, Series

NOW = 1_750_000_020.0
RATE = TotalAverage(metric=Metric(kind=MetricKind.EXTERNAL, name="load"), target=0.7)
POLICY = Policy(signals=(RATE,), objective=Objective(), forecast=ForecastChoice(model="learned"))


def seen(at: float, value: float = 20.0) -> Observation:
    sample = TotalSample(value=value, at=at)
    return Observation(at=at, spec_replicas=30, status_replicas=30, samples=(sample,), startup=startup([120.0], at))


def knowing(days: float = 2.0) -> DemandForecasts:
    found = DemandForecasts()
    found.note("web", POLICY, seen(NOW))
    found.restore("web", POLICY, keys_of("web", POLICY)[0], past(days), 60.0)
    return found


def past(days: float) -> Series:
    times = np.arange(NOW - days * 86400.0, NOW, 60.0)
    noise = np.random.default_rng(1).normal(0.0, 0.4, len(times))
    return Series(times, 20.0 + 6.0 * np.sin(2 * np.pi * times / 86400.0) + noise)


def asked(found: DemandForecasts, at: float) -> int:
    """How many half-hours are studied after this moment."""
    found.note("web", POLICY, seen(at))
    found.of("web", POLICY, seen(at))
    count = 0
    for batch in found.batches():
        answers = make(batch)
        count += sum(map(len, answers.studies))
        found.put(batch, answers)
    return count


def test_a_forecast_is_made_in_the_tick_and_a_study_before_its_half_hour() -> None:
    found = knowing()
    assert NOW % 1800 == 420.0
    assert asked(found, NOW) == 1
    (answer,) = found.of("web", POLICY, seen(NOW + 15.0))
    assert isinstance(answer, Forecast) and answer.made_at == NOW + 15.0
    assert asked(found, NOW + 30.0) == asked(found, NOW + 420.0) == 0
    assert asked(found, NOW + 480.0) == 1, "a quarter of an hour before the next one begins"
    assert isinstance(found.of("web", POLICY, seen(NOW + 495.0))[0], Forecast)


def test_more_past_is_studied_anew_and_meanwhile_nothing_is_forgotten() -> None:
    found = knowing()
    asked(found, NOW)
    found.restore("web", POLICY, keys_of("web", POLICY)[0], past(3.0), 60.0)
    found.note("web", POLICY, seen(NOW + 15.0))
    assert isinstance(found.of("web", POLICY, seen(NOW + 15.0))[0], Forecast)
    assert asked(found, NOW + 30.0) == 1
    found.clock_set()
    assert asked(found, NOW + 45.0) == 1


def test_pods_that_carry_much_more_are_studied_anew() -> None:
    found = knowing()
    asked(found, NOW)
    for target, expected in ((0.8, 0), (1.4, 1)):
        larger = replace(POLICY, signals=(replace(RATE, target=target),))
        found.of("web", larger, seen(NOW + 100.0 * target))
        batches = list(found.batches())
        assert len(batches) == expected
        for batch in batches:
            found.put(batch, make(batch))


def test_who_is_gone_is_forgotten() -> None:
    found = knowing()
    asked(found, NOW)
    assert found._studies
    found.forget_but(set())
    assert not found._studies and len(found.log) == 0


def test_what_was_being_made_of_one_that_began_anew_is_nobodys() -> None:
    """It measures the same of another workload; who was made with it has its answer."""
    found = knowing()
    for owner in ("web", "api"):
        found.note(owner, POLICY, seen(NOW))
        found.restore(owner, POLICY, keys_of(owner, POLICY)[0], past(2.0), 60.0)
        found.of(owner, POLICY, seen(NOW))
    (batch,) = found.batches()
    found.forget("web")
    found.note("web", POLICY, seen(NOW + 15.0))
    found.put(batch, make(batch))
    answers = {owner: found.of(owner, POLICY, seen(NOW + 15.0))[0] for owner in ("web", "api")}
    assert isinstance(answers["web"], Missing) and isinstance(answers["api"], Forecast)
    assert list(found._studies) == list(keys_of("api", POLICY))


def test_a_pod_whose_request_nobody_knows_has_no_load_in_pods() -> None:
    cpu = Utilization(metric=Metric(kind=MetricKind.RESOURCE, name="cpu"), percent=70)
    policy = Policy(signals=(cpu,), objective=Objective(), forecast=POLICY.forecast)
    (answer,) = DemandForecasts().of("web", policy, seen(NOW))
    assert isinstance(answer, Missing) and answer.reason is Reason.NO_REQUEST


def test_forecasts_of_one_tick_are_made_together_and_one_that_fails_fails_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found, calls = DemandForecasts(), list[int]()
    whole = learned.say

    def counted(moments: Sequence[learned.Moment], hours: Floats, at: float) -> list[Forecast | Missing]:
        calls.append(len(moments))
        if len(calls) == 1:
            raise ZeroDivisionError("no such thing")
        return whole(moments, hours, at)

    monkeypatch.setattr(learned, "say", counted)
    for at in (NOW, NOW + 15.0):
        for owner in ("web", "api", "db"):
            found.note(owner, POLICY, seen(at))
        with contextlib.suppress(ZeroDivisionError):
            found.of("web", POLICY, seen(at))
        answers = [found.of(owner, POLICY, seen(at))[0] for owner in ("api", "db")]
        assert all(isinstance(answer, Missing) for answer in answers)
    assert calls == [3, 1, 1, 3]
