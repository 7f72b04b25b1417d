"""What was tested is what runs: batched and step by step, forecasts and replicas are the same, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.sim.policies import LOAD
from trimtab.core.forecast.demand_forecasts import DemandForecasts
from trimtab.core.forecast.learned.model import startup_of, throughout
from trimtab.core.model import Forecast, Missing, Observation, TotalSample
from trimtab.core.startup import startup
from trimtab.core.tuned import settings_of, tuned
from trimtab.policy import (
    Bounds,
    Bridge,
    ForecastChoice,
    Objective,
    Policy,
    PricedBand,
    Rate,
    Rule,
    Stabilise,
    StabiliseMax,
    TotalAverage,
    UpLimit,
)
from trimtab.series import Floats
from trimtab.sim.cluster import run
from trimtab.sim.cluster_spec import ClusterSpec
from trimtab.sim.grid import DAY_STEPS
from trimtab.sim.simulate import Simulation, why_slow

START = 1_750_000_007.0
KINDS = ("wave", "bursts", "steps", "still", "another unit")


def load_of(kind: str, steps: int, step_s: float, seed: int) -> Floats:
    """Cores that are needed, in the shapes that forecasts trip over."""
    draw, clock = np.random.default_rng(seed), np.arange(steps) * step_s
    wave = 12.0 - 6.0 * np.cos(2 * np.pi * clock / 86400.0)
    if kind == "bursts":
        wave = wave + 15.0 * (draw.random(steps) < 120.0 / 86400.0)
    if kind == "steps":
        wave = np.where(clock % 7200.0 < 3600.0, 8.0, 16.0)
    if kind == "still":
        return np.repeat(np.round(wave[:: int(900 // step_s)]), int(900 // step_s))[:steps]
    if kind == "another unit":
        wave = np.where(np.arange(steps) > 0.9 * steps, 30.0, 1.0) * wave
    return np.asarray(np.maximum(wave * (1.0 + 0.05 * draw.standard_normal(steps)), 0.0))


@pytest.mark.parametrize("step_s", [5.0, 15.0, 20.0, 30.0, 60.0])
@pytest.mark.parametrize("kind", KINDS)
def test_a_forecast_of_all_ticks_at_once_is_that_of_each_tick(kind: str, step_s: float) -> None:
    days = 1.15 if step_s < 15.0 else 1.3 if step_s < 30.0 else 3.0
    load = load_of(kind, round(days * 86400.0 / step_s), step_s, 3)
    times = START + step_s * np.arange(1.0, len(load) + 1.0)
    together = throughout(times, load, 2.0, startup_of(100.0))
    signal = TotalAverage(metric=LOAD, target=1.4)
    policy = Policy(signals=(signal,), objective=Objective(), forecast=ForecastChoice(model="learned"))
    alone, said = DemandForecasts(), 0
    for tick, (at, value) in enumerate(zip(times.tolist(), load.tolist(), strict=True)):
        seen = Observation(
            at=at,
            spec_replicas=1,
            status_replicas=1,
            samples=(TotalSample(value=value, at=at),),
            startup=startup([100.0], at),
        )
        alone.note("web", policy, seen)
        if tick % 7 == 0 or tick > len(times) - 50:
            (found,) = alone.of("web", policy, seen)
            assert isinstance(found, Missing) == together.silent[tick], (tick, found)
            if isinstance(found, Forecast):
                said += 1
                assert [quantile.value for quantile in found.demand] == together.start[tick].tolist()
                assert [quantile.value for quantile in found.keep] == together.keep[tick].tolist()
        alone.make_due()
    assert said or kind not in ("wave", "bursts") or step_s < 15.0  # a day of 5 s teaches too little


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    written: list[tuple[Rule, ...]] = [(Stabilise(), Rate()), (StabiliseMax(), UpLimit()), (Stabilise(down_s=900.0),)]
    settle = draw(st.sampled_from(written))
    own = draw(st.sampled_from([(), settle[:1]]))
    price, carries = draw(st.sampled_from([8.0, 32.0, 128.0])), draw(st.sampled_from([0.5, 1.0, 3.0]))
    objective = Objective(price=price, start_share=draw(st.sampled_from([0.125, 0.25, 1.0])), settle=own)
    policy = Policy(
        signals=(TotalAverage(metric=LOAD, target=0.7 * carries),),
        settle=settle,
        objective=objective,
        forecast=ForecastChoice(model="learned", horizon_s=draw(st.sampled_from([None, 90.0]))),
        bounds=Bounds(min_replicas=2, max_replicas=80),
        bridge=draw(st.sampled_from([None, Bridge(ceiling=0.7), Bridge(ceiling=0.75, max_factor=2.0)])),
    )
    if draw(st.booleans()):  # as a night leaves it
        band = PricedBand(start=draw(st.sampled_from([1.0, 16.0])), keep=128.0)
        policy = tuned(policy, replace(settings_of(policy), priced=True, band=band))
    return policy


@settings(max_examples=6, deadline=None)
@given(policies(), st.sampled_from(KINDS), st.sampled_from([30.0, 120.0, 600.0]), st.integers(0, 99))
def test_a_compiled_backtest_of_an_objective_is_decide_step_by_step(
    policy: Policy, kind: str, startup_s: float, seed: int
) -> None:
    signal = policy.signals[0]
    assert isinstance(signal, TotalAverage)
    load = load_of(kind, round(1.25 * DAY_STEPS), 15.0, seed) * signal.target / 0.7
    cluster = ClusterSpec(startup_s=startup_s, pod_capacity=signal.target / 0.7)
    assert not why_slow(policy, cluster)
    compiled = Simulation(load, cluster, first_pods=12, start=START).run(policy)
    stepped = run(policy, load, cluster, first_pods=12, start=START)
    assert np.array_equal(compiled.replicas, stepped.replicas)
    assert np.array_equal(compiled.resized, stepped.resized)
    assert np.allclose(compiled.billed, stepped.billed, rtol=1e-12)
