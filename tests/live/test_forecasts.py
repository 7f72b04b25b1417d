"""Demand is remembered as a total, start-ups once; the forecasts are the simulator's, observation by observation."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from tests.live.build import AT, custom, hpa, spec, subject
from trimtab.core.forecast import demand_forecasts, forecast_rows
from trimtab.core.forecast.horizon import horizon_s
from trimtab.core.model import Decision, Forecast, Memory, Missing, Observation, Pod, PodSamples, Reason, Startup
from trimtab.live.look.subject import Subject
from trimtab.live.measure.forecasts import Forecasts
from trimtab.policy import ForecastChoice
from trimtab.sim.cluster import run
from trimtab.sim.cluster_spec import ClusterSpec
from trimtab.wire.resources import HPAS

CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
WEB = subject(custom(spec=spec(metrics=[CPU], forecast={"model": "linear", "horizon": "30s"})))


def pod(name: str, ready: bool = True, took_s: float = 10.0) -> Pod:
    return Pod(name=name, ready=ready, created_at=AT, ready_since=AT + took_s)


def seen(at: float, value: float, pods: int = 2) -> Observation:
    facts = tuple(pod(f"p{index}") for index in range(pods))
    samples = PodSamples(values={each.name: value / pods for each in facts}, at=at)
    return Observation(at=at, spec_replicas=pods, status_replicas=pods, pods=facts, samples=(samples,))


def looked(forecasts: Forecasts, about: Subject, now: Observation) -> tuple[Forecast | Missing, ...]:
    """As in a tick: what was measured is noted first."""
    forecasts.note(about, now)
    return forecasts.look(about, now)


def test_a_rising_total_is_seen_ahead_whatever_the_replicas_do() -> None:
    forecasts = Forecasts()
    for step in range(10):
        found = looked(forecasts, WEB, seen(AT + 5 * step, 100.0 + 10 * step, pods=2 + step % 3))
    (forecast,) = found
    assert isinstance(forecast, Forecast)
    assert forecast.at_quantile(0.5) == pytest.approx(100 + 2 * (45 + 30), rel=0.05)


def test_without_a_past_it_says_so() -> None:
    (forecast,) = looked(Forecasts(), WEB, seen(AT, 100.0))
    assert isinstance(forecast, Missing)
    assert looked(Forecasts(), subject(custom(spec=spec())), seen(AT, 100.0)) == ()


def test_a_start_up_is_recorded_once_at_the_first_ready() -> None:
    forecasts, choice = Forecasts(), ForecastChoice()

    def ahead_s(choice: ForecastChoice) -> float:
        return horizon_s(choice, replace(seen(AT, 1.0), startup=forecasts.startup("w", AT)))

    forecasts.note_pods("u", "w", (pod("a", ready=False), pod("b", took_s=7000)))  # b may have flapped before we looked
    assert ahead_s(choice) == 7000.0, "better than nothing"
    forecasts.note_pods("u", "w", (pod("a", took_s=20), pod("b", took_s=9000)))
    forecasts.note_pods("u", "w", (pod("a", took_s=500), pod("b", took_s=9000)))  # a flapped: its transition moved
    found = forecasts.startup("w", AT)
    assert isinstance(found, Startup) and found.pods == 1
    assert [q.value for q in found.quantiles] == [20.0, 20.0]
    assert ahead_s(choice) == 20.0 and ahead_s(ForecastChoice(horizon_s=5.0)) == 5.0
    assert ahead_s(ForecastChoice(exact=True)) == 10.0, (
        "predictive HPA (McNaughton): the mean of the pods that there are"
    )
    assert isinstance(forecasts.startup("other", AT), Missing)


def test_what_is_gone_is_forgotten() -> None:
    forecasts = Forecasts()
    looked(forecasts, WEB, seen(AT, 100.0))
    forecasts.note_pods("u", "w", (pod("a"),))
    assert len(forecasts.demand.log) == 1
    forecasts.forget(set())
    assert len(forecasts.demand.log) == 0 and isinstance(forecasts.startup("w", AT), Missing)


# --- the same as the simulator ---------------------------------------------------------------------------------------


def load(tick_s: float, hours: float) -> np.ndarray:
    """A day's wave with a ramp on top and some noise, in pods."""
    steps = int(hours * 3600 / tick_s)
    clock = np.arange(steps) * tick_s
    noise = np.random.default_rng(7).normal(0.0, 0.2, steps)
    return 8.0 + 3.0 * np.sin(2 * np.pi * clock / 86400.0) + 4.0 * np.clip(clock / 3600.0 - 0.5, 0, 1) + noise


def observed(about: Subject, tick_s: float, startup_s: float, hours: float) -> list[Observation]:
    """What the simulated operator saw, tick by tick."""
    found: list[Observation] = []

    def watch(seen: Observation, memory: Memory, decision: Decision) -> None:
        found.append(seen)

    cluster = ClusterSpec(startup_s=startup_s, mean_s=max(60.0, tick_s))
    run(about.policy, load(tick_s, hours), cluster, first_pods=16, start=AT, step_s=tick_s, watch=watch)
    return found


async def measured(about: Subject, observations: list[Observation]) -> list[Observation]:
    """The same through the operator's measuring code."""
    forecasts, found = Forecasts(), []
    for given in observations:
        forecasts.note_pods("u", "w", given.pods)
        now = replace(given, startup=forecasts.startup("w", given.at), forecasts=())
        found.append(replace(now, forecasts=looked(forecasts, about, now)))
        forecasts.follow()
        await forecasts.finished()
    return found


def autoscaler(**forecast: Any) -> Subject:
    return subject(custom(spec=spec(metrics=[CPU], maxReplicas=100, forecast=forecast)))


def annotated() -> Subject:
    return subject(hpa(predictive="true"), HPAS)


@pytest.mark.parametrize("tick_s", [1.0, 5.0, 15.0, 30.0, 60.0])
@pytest.mark.parametrize("startup_s", [5.0, 60.0, 240.0, 600.0, 1800.0])
def test_operator_and_simulator_forecast_the_same_and_a_line_speaks_as_soon_as_it_can(
    tick_s: float, startup_s: float
) -> None:
    about = autoscaler(model="linear")
    hours = max(0.2 if tick_s < 5 else 0.5, (startup_s + 300.0) / 3600.0)
    simulated = observed(about, tick_s, startup_s, hours)
    assert asyncio.run(measured(about, simulated)) == simulated
    first, horizon = simulated[0].at, tick_s * np.ceil(startup_s / tick_s)
    silent = [
        now.at - first
        for now in simulated
        if isinstance(missing := now.forecasts[0], Missing)
        and missing.reason is not Reason.NOT_PREDICTABLE  # it has looked, and there is no trend
        and now.at - first >= max(horizon, tick_s)
    ]
    assert silent == []


@pytest.mark.parametrize(
    "model, hours", [("seasonal", 73.0), ("holtWinters", 50.0), ("percentile", 1.0), ("dsp", 50.0)]
)
def test_models_made_between_the_ticks_are_the_same_too(model: str, hours: float) -> None:
    about = autoscaler(model=model, horizon="1h")
    simulated = observed(about, 60.0, 120.0, hours)
    assert asyncio.run(measured(about, simulated)) == simulated
    made = [forecast for now in simulated for forecast in now.forecasts if isinstance(forecast, Forecast)]
    assert made and {forecast.model for forecast in made} == {model}
    told = [now.at - now.forecasts[0].made_at for now in simulated if isinstance(now.forecasts[0], Forecast)]
    assert min(told) == 60.0, "what was known at one tick serves from the next on"
    assert max(told) < 300.0, "and is made again before it expires"


def test_a_model_that_fails_on_one_object_fails_on_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    about = autoscaler(model="percentile")
    other = subject(custom("other", spec=spec("other", metrics=[CPU], forecast={"model": "percentile"})))
    whole = forecast_rows

    def broken(choice: Any, frame: Any, horizon_s: float, at: float) -> list[Forecast | Missing]:
        if any(name.startswith("uid-web") for name in frame.names):
            raise ZeroDivisionError("no such thing")
        return whole(choice, frame, horizon_s, at)

    monkeypatch.setattr(demand_forecasts, "forecast_rows", broken)

    async def both() -> list[Forecast | Missing]:
        forecasts = Forecasts()
        for at in (AT, AT + 15.0):
            found = [*looked(forecasts, about, seen(at, 5.0)), *looked(forecasts, other, seen(at, 5.0))]
            forecasts.follow()
            await forecasts.finished()
        return found

    failed, fine = asyncio.run(both())
    assert isinstance(failed, Missing) and (failed.reason, "failed" in failed.detail) == (Reason.NOT_PREDICTABLE, True)
    assert isinstance(fine, Forecast)
