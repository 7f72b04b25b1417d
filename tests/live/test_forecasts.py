"""Demand is remembered as a total, start-ups once; forecasts come from both."""

from __future__ import annotations

import asyncio

import pytest

from tests.live.build import AT, custom, spec, subject
from trimtab.core.model import Forecast, Missing, Observation, Pod, PodSamples, Reason, Startup, TotalSample
from trimtab.live.measure.forecasts import Forecasts, demand_of
from trimtab.live.measure.horizon import horizon_s
from trimtab.policy import ForecastChoice

WEB = subject(custom(spec=spec(forecast={"model": "linear", "horizon": "30s"})))


def pod(name: str, ready: bool = True, took_s: float = 10.0, deleting: bool = False) -> Pod:
    return Pod(name=name, ready=ready, created_at=AT, ready_since=AT + took_s, deleting=deleting)


def seen(at: float, value: float, pods: int = 2) -> Observation:
    facts = tuple(pod(f"p{index}") for index in range(pods))
    samples = PodSamples(values={one.name: value / pods for one in facts}, at=at)
    return Observation(at=at, spec_replicas=pods, status_replicas=pods, pods=facts, samples=(samples,))


def test_a_rising_total_is_seen_ahead_whatever_the_replicas_do() -> None:
    forecasts = Forecasts(None)
    for step in range(10):
        demand = 100.0 + 10 * step
        asyncio.run(forecasts.note_demand(WEB, seen(AT + 5 * step, demand, pods=2 + step % 3)))
    (forecast,) = forecasts.forecasts(WEB, Missing(reason=Reason.ABSENT), AT + 46)
    assert isinstance(forecast, Forecast)
    assert forecast.at_quantile(0.5) == pytest.approx(100 + 2 * (46 + 30), rel=0.05)


def test_without_a_past_it_says_so() -> None:
    (forecast,) = Forecasts(None).forecasts(WEB, Missing(reason=Reason.ABSENT), AT)
    assert isinstance(forecast, Missing)
    assert Forecasts(None).forecasts(subject(custom(spec=spec())), Missing(reason=Reason.ABSENT), AT) == ()


def test_a_start_up_is_recorded_once_at_the_first_ready() -> None:
    forecasts = Forecasts(None)
    forecasts.note_pods("w", [pod("a", ready=False), pod("b", took_s=7000)])  # b may have flapped before we looked
    assert horizon_s(ForecastChoice(), forecasts.startup("w", AT)) == 7000.0, "better than nothing"
    forecasts.note_pods("w", [pod("a", took_s=20), pod("b", took_s=9000)])
    forecasts.note_pods("w", [pod("a", took_s=500), pod("b", took_s=9000)])  # a flapped: its transition moved
    found = forecasts.startup("w", AT)
    assert isinstance(found, Startup) and found.pods == 1
    assert [q.value for q in found.quantiles] == [20.0, 20.0]
    assert horizon_s(ForecastChoice(), found) == 20.0 and horizon_s(ForecastChoice(horizon_s=5.0), found) == 5.0
    assert isinstance(forecasts.startup("other", AT), Missing)


def test_a_sum_with_a_silent_pod_in_it_is_no_sum() -> None:
    samples = PodSamples(values={"a": 1.0, "b": 2.0}, at=AT)
    assert demand_of(samples, [pod("a"), pod("b")]) == 3.0
    assert demand_of(samples, [pod("a"), pod("b"), pod("c")]) is None
    assert demand_of(samples, [pod("a"), pod("b"), pod("c", ready=False), pod("d", deleting=True)]) == 3.0
    assert demand_of(TotalSample(value=7.0, at=AT), []) == 7.0
    assert demand_of(Missing(reason=Reason.STALE), []) is None


def test_what_is_gone_is_forgotten() -> None:
    forecasts = Forecasts(None)
    asyncio.run(forecasts.note_demand(WEB, seen(AT, 100.0)))
    forecasts.note_pods("w", [pod("a")])
    assert len(forecasts.fine) == 1
    forecasts.forget(set(), set())
    assert len(forecasts.fine) == 0 and isinstance(forecasts.startup("w", AT), Missing)
