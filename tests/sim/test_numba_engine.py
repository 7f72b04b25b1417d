"""The compiled lane and decide() take the same decision in every step, whatever the policy and the load."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.sim.policies import LOAD, on_load
from trimtab.core.decide import decide
from trimtab.core.explain import sentence
from trimtab.core.model import Decision, Forecast, Memory, Missing, Observation, Quantile, Reason, TotalSample
from trimtab.core.remember import remember
from trimtab.core.requests import USUAL_TARGET
from trimtab.policy import (
    SLO,
    Admit,
    Bounds,
    Cooldown,
    Factor,
    ForecastChoice,
    MaxFactor,
    MinFactor,
    Mode,
    Objective,
    PodAverage,
    Policy,
    Rate,
    RatePolicy,
    Rates,
    RoundUp,
    Rule,
    ScheduledBounds,
    Select,
    Stabilise,
    StabiliseMax,
    Tolerance,
    TotalAverage,
    UpLimit,
    Velocity,
    Vertical,
)
from trimtab.series import Floats
from trimtab.sim.cluster import run
from trimtab.sim.cluster_spec import ClusterSpec
from trimtab.sim.grid import STEP_S
from trimtab.sim.numba_engine import run_compiled, sweep
from trimtab.sim.program import SILENT, bounds_by_step, program, uncovered
from trimtab.sim.score import Actuator, Counts, measure
from trimtab.sim.simulate import simulate, why_slow
from trimtab.sim.sliding_windows import trailing_mean

shares = st.sampled_from([0.0, 0.05, 0.1, 0.25, 0.5, 1.0])
seconds = st.sampled_from([0.0, 7.0, 15.0, 30.0, 40.0, 60.0, 300.0])
rate_policies = st.builds(
    RatePolicy,
    percent=st.booleans(),
    value=st.integers(1, 100),
    period_s=st.sampled_from([1.0, 15.0, 30.0, 50.0, 120.0]),
)
one_way = st.builds(
    Rates, select=st.sampled_from(list(Select)), policies=st.lists(rate_policies, min_size=1, max_size=3).map(tuple)
)
rules: st.SearchStrategy[Rule] = st.one_of(
    st.builds(UpLimit, factor=st.sampled_from([1.5, 2.0]), minimum=st.sampled_from([1.0, 4.0])),
    st.builds(Rate, up=one_way, down=one_way),
    st.just(Rate()),
    st.builds(MaxFactor, up=shares, down=shares),
    st.builds(MinFactor, up=shares, down=shares),
    st.builds(Cooldown, up_s=seconds, down_s=seconds, any_direction=st.booleans()),
    st.builds(RoundUp, epsilon=st.sampled_from([0.0, 1e-9])),
)
windows: st.SearchStrategy[list[Rule]] = st.one_of(
    st.just([]),
    st.builds(StabiliseMax, window_s=seconds).map(lambda rule: [rule]),
    st.builds(Stabilise, up_s=seconds, down_s=seconds).map(lambda rule: [rule]),
)


limits = st.none() | st.integers(1, 30)
schedules = st.builds(
    lambda start, length, least, most: ScheduledBounds(
        "x", start, start + length, min_replicas=least, max_replicas=most
    ),
    st.sampled_from([0.0, 15.0, 100.0, 600.0]),
    st.sampled_from([1.0, 15.0, 300.0, 9999.0]),
    limits,
    limits,
)


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    target = draw(st.sampled_from([0.5, 0.7, 0.8, 1.0, 3.0]))
    signal = draw(
        st.one_of(
            st.builds(
                TotalAverage,
                metric=st.just(LOAD),
                target=st.just(target),
                tolerance=st.builds(Tolerance, up=shares, down=shares),
            ),
            st.just(Factor(metric=LOAD, target=target)),
        )
    )
    settle = draw(windows) + draw(st.lists(rules, max_size=4, unique_by=type))
    least = draw(st.integers(1, 3))
    spans = tuple(draw(st.lists(schedules, max_size=2)))
    bounds = Bounds(min_replicas=least, max_replicas=least + draw(st.sampled_from([0, 5, 40])), spans=spans)
    ahead = ForecastChoice(model="linear", horizon_s=draw(st.sampled_from([15.0, 60.0, 600.0])))
    looks = isinstance(signal, TotalAverage) and draw(st.integers(0, 3)) == 0
    return Policy(
        signals=(signal,),
        settle=tuple(draw(st.permutations(settle))),
        bounds=bounds,
        admit=Admit(mode=draw(st.sampled_from([Mode.AUTO, Mode.SHADOW]))),
        forecast=ahead if looks else None,
    )


@st.composite
def runs(draw: st.DrawFn) -> tuple[Policy, Floats, int]:
    """Half of the loads lie exactly on an edge: a whole number of pods, times an edge of the tolerance."""
    policy = draw(policies())
    (signal,) = policy.signals
    assert isinstance(signal, TotalAverage | Factor)
    edges = [1.0, 0.9, 1.1, 0.95, 1.05, 0.75, 1.25, 0.5, 1.5, 2.0]
    on_edge = st.builds(lambda pods, edge: pods * edge * signal.target, st.integers(0, 45), st.sampled_from(edges))
    load = draw(st.lists(st.one_of(on_edge, st.floats(0, 60)), min_size=1, max_size=60))
    held = draw(st.sampled_from([1, 4]))
    return policy, np.repeat(np.array(load), held), draw(st.integers(1, 50))


def replay(load: Floats, policy: Policy, first_pods: int) -> Counts:
    """The lane, by the same door as everybody's."""
    assert not why_slow(policy, ClusterSpec())
    return simulate(policy, load, ClusterSpec(), first_pods=first_pods).replicas


def first_difference(policy: Policy, load: Floats, first_pods: int) -> str:
    """Where lane and decide() part, with decide()'s explanation; empty when they never do."""
    seen: list[tuple[Observation, Memory, Decision]] = []
    slow = run(policy, load, first_pods=first_pods, watch=lambda *one: seen.append(one)).replicas
    fast = replay(load, policy, first_pods)
    different = np.flatnonzero(slow != fast)
    if not len(different):
        return ""
    step = int(different[0])
    why = sentence(policy, *seen[step - 1])
    return f"step {step}: lane {fast[step]}, decide() {slow[step]} (before: {slow[step - 1]}): {why}"


@settings(max_examples=300, deadline=None)
@given(runs())
def test_lane_and_decide_agree_in_every_step(drawn: tuple[Policy, Floats, int]) -> None:
    policy, load, first_pods = drawn
    assert not uncovered(policy)
    assert first_difference(policy, load, first_pods) == ""


TARGET = 0.7


class BandRun(NamedTuple):
    """What was worth starting and keeping at each step, or that nothing was said, for a policy whose written rules
    bind both lanes."""

    policy: Policy
    load: Floats
    start: Counts
    keep: Counts
    first_pods: int


@st.composite
def band_runs(draw: st.DrawFn) -> BandRun:
    settle = tuple(draw(windows) + draw(st.lists(rules, max_size=3, unique_by=type)))
    written = draw(st.sampled_from([(), tuple(rule for rule in settle if not isinstance(rule, Rate)), settle]))
    bounds = Bounds(min_replicas=2, max_replicas=40, spans=tuple(draw(st.lists(schedules, max_size=1))))
    priced = replace(
        on_load(TARGET, settle=settle), objective=Objective(settle=written), forecast=ForecastChoice(model="learned")
    )
    pods = st.lists(st.integers(1, 50), min_size=40, max_size=40).map(lambda held: np.array(held, dtype=np.int64))
    said = np.array(draw(st.lists(st.booleans(), min_size=40, max_size=40)))
    start, keep = (np.where(said, draw(pods), SILENT) for _ in range(2))
    load = np.array(draw(st.lists(st.integers(1, 30), min_size=40, max_size=40)), dtype=np.float64)
    return BandRun(replace(priced, bounds=bounds), load, start, keep, draw(st.integers(1, 50)))


def decided(drawn: BandRun) -> list[int]:
    """decide() itself, step by step, with a forecast of exactly these pods or none."""
    current, memory, billed = drawn.first_pods, Memory(), []
    silence = Missing(reason=Reason.NOT_ENOUGH_HISTORY)
    for step, (load, start, keep) in enumerate(zip(drawn.load, drawn.start.tolist(), drawn.keep.tolist(), strict=True)):
        billed.append(current)
        at = (step + 1) * STEP_S
        carries = TARGET / USUAL_TARGET
        known = [(Quantile(0.5, SLO * carries * pods),) for pods in (start, keep)]
        forecast = Forecast(made_at=at, expires_at=at + 60, demand=known[0], keep=known[1], model="learned")
        seen = Observation(
            at=at,
            spec_replicas=current,
            status_replicas=current,
            samples=(TotalSample(value=load, at=at),),
            forecasts=(silence if start == SILENT else forecast,),
        )
        decision = decide(drawn.policy, seen, memory)
        memory = decision.memory
        if decision.change is not None:
            memory = remember(drawn.policy, memory, decision.change, at)
        current = decision.plan.replicas
    return billed


@settings(max_examples=200, deadline=None)
@given(band_runs())
def test_the_lane_and_decide_agree_on_what_a_forecast_is_worth(drawn: BandRun) -> None:
    by_step = bounds_by_step(drawn.policy.bounds, 0.0, len(drawn.start), STEP_S)
    need = np.ceil(drawn.load / (TARGET / USUAL_TARGET) / SLO - 1e-9).astype(np.int64)
    band = np.stack([np.where(drawn.start == SILENT, SILENT, np.maximum(drawn.start, need)), drawn.keep])
    compiled = program(drawn.policy, STEP_S, by_step=by_step, band=band)
    assert run_compiled(drawn.load, compiled, drawn.first_pods).tolist() == decided(drawn)


def test_a_difference_is_shown_with_its_explanation(monkeypatch: pytest.MonkeyPatch) -> None:
    import tests.sim.test_numba_engine as here

    monkeypatch.setattr(here, "replay", lambda load, policy, first: np.full(len(load), first, dtype=np.int32))
    shown = first_difference(on_load(), np.array([1.0, 9.0, 9.0, 9.0]), 2)
    assert shown.startswith("step 3: lane 2, decide() 6")


def test_a_long_run_agrees_and_is_scored_alike() -> None:
    steps = np.arange(2 * 5760)
    noise = np.random.default_rng(3).standard_normal(len(steps))
    load = np.maximum(0, (12 + 10 * np.sin(steps * 2 * np.pi / 5760)) * (1 + 0.2 * noise))
    slow = run(on_load(), load, ClusterSpec(startup_s=120, metric_delay_s=0.0), first_pods=20)
    (fast,) = sweep(load, trailing_mean(load, 4), [program(on_load(), STEP_S)], 20, [Actuator(8)], 5760)
    for column, other in zip(fast[0], slow.days(5760), strict=True):
        assert column == pytest.approx(other)
    assert measure(load, slow.replicas, 8, 5760).violating == pytest.approx(slow.days(5760).violating)


def test_a_seasonal_forecast_agrees_too() -> None:
    steps = np.arange(4 * 5760)
    load = 20 + 15 * np.sin(steps * 2 * np.pi / 5760)
    policy = replace(on_load(), forecast=ForecastChoice(model="seasonal", horizon_s=600.0, quantile=0.9))
    assert first_difference(policy, load, 30) == ""
    assert (replay(load, policy, 30) != replay(load, on_load(), 30)).any(), "the forecast says something"


two_windows = (Stabilise(), StabiliseMax())


@pytest.mark.parametrize(
    "policy, reason",
    [
        pytest.param(replace(on_load(), signals=(PodAverage(LOAD, 1.0),)), "at each pod", id="per-pod signal"),
        pytest.param(replace(on_load(), signals=()), "no metric", id="no signal"),
        pytest.param(replace(on_load(), forecast=ForecastChoice(exact=True)), "forecast is of each pod", id="forecast"),
        pytest.param(replace(on_load(), vertical=Vertical()), "vertical", id="vertical"),
        pytest.param(replace(on_load(), admit=Admit(pin=3)), "pinned", id="pin"),
        pytest.param(replace(on_load(), bounds=Bounds(min_replicas=0)), "zero", id="to zero"),
        pytest.param(replace(on_load(), replays_noop=True), "repeats", id="no-op scalings"),
        pytest.param(replace(on_load(), settle=(Velocity(),)), "Velocity", id="rule"),
        pytest.param(replace(on_load(), settle=two_windows), "two", id="two windows"),
    ],
)
def test_what_is_not_covered_says_why(policy: Policy, reason: str) -> None:
    assert reason in uncovered(policy)
