"""What has been learned is kept from one forecast to the next, made again when the past grows, and forgotten."""

from __future__ import annotations

import numpy as np

from trimtab.core.demand import keys_of
from trimtab.core.forecast.demand_forecasts import DemandForecasts, make
from trimtab.core.model import Forecast, Missing, Observation, Reason, TotalSample
from trimtab.core.startup import startup
from trimtab.policy import ForecastChoice, Metric, MetricKind, Objective, Policy, TotalAverage, Utilization
from trimtab.series import Series

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


def asked(found: DemandForecasts, at: float) -> list[int]:
    """The columns of each batch that is due after this moment, all of them made."""
    found.note("web", POLICY, seen(at))
    found.of("web", POLICY, seen(at))
    columns = []
    for batch in found.batches():
        columns.append(batch.frame.values.shape[1])
        found.put(batch, make(batch))
    return columns


def test_a_study_is_made_once_and_then_a_glimpse_is_enough() -> None:
    found = knowing()
    (whole,) = asked(found, NOW)
    assert whole > 2 * 1440 - 10
    assert isinstance(found.of("web", POLICY, seen(NOW + 15.0))[0], Forecast)
    assert asked(found, NOW + 30.0) == []
    assert asked(found, NOW + 60.0) == [0]


def test_more_past_and_another_clock_are_studied_anew() -> None:
    found = knowing()
    asked(found, NOW)
    found.restore("web", POLICY, keys_of("web", POLICY)[0], past(3.0), 60.0)
    (again,) = asked(found, NOW + 15.0)
    assert again > 3 * 1440 - 10
    found.clock_set()
    assert asked(found, NOW + 30.0)[0] > 0


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


def test_who_has_nothing_to_learn_from_is_not_asked_every_minute() -> None:
    found = DemandForecasts()
    assert asked(found, NOW) != []
    assert isinstance(found.of("web", POLICY, seen(NOW + 15.0))[0], Missing)
    assert asked(found, NOW + 120.0) == []
    assert asked(found, NOW + 600.0) != []
