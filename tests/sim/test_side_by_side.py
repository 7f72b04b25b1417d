"""Without a compiler all programs are stepped at once: each column equals the lane, in every step and figure."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.sim.policies import LOAD, on_cpu, on_load
from tests.sim.test_fast import one_way, schedules, seconds, shares
from trimtab.policy import (
    Bounds,
    ForecastChoice,
    MinFactor,
    Policy,
    Rate,
    Rule,
    ScheduledBounds,
    Stabilise,
    StabiliseMax,
    Tolerance,
    TotalAverage,
    UpLimit,
)
from trimtab.series import Floats
from trimtab.sim.fast import run_compiled
from trimtab.sim.grid import STEP_S
from trimtab.sim.program import NOTHING_AHEAD, Program, bounds_by_step, program
from trimtab.sim.score import SLO, measure
from trimtab.sim.side_by_side import alike, measure_side_by_side, run_side_by_side

others: st.SearchStrategy[list[Rule]] = st.one_of(
    st.just([]), st.just([UpLimit()]), st.just([Rate()]), st.builds(Rate, up=one_way, down=one_way).map(lambda it: [it])
)


@st.composite
def families(draw: st.DrawFn) -> tuple[list[Program], Floats, int]:
    """Policies that differ in target, tolerance, window and bounds; half of the loads lie on an edge.

    Where there are schedules, all have the same, as the candidates of one policy do.
    """
    rest = draw(others)
    between, reverse, steps = draw(st.booleans()), draw(st.booleans()), draw(st.integers(1, 80))
    loads = st.lists(st.floats(0, 60) | st.integers(0, 45).map(float), min_size=steps, max_size=steps)
    load = np.array(draw(loads))
    ahead = np.array(draw(loads)) if draw(st.booleans()) else NOTHING_AHEAD
    spans = tuple(draw(st.lists(schedules, max_size=3)))
    least, more = draw(st.integers(1, 3)), draw(st.sampled_from([0, 5, 40]))
    scheduled = Bounds(min_replicas=least, max_replicas=least + more, spans=spans)
    by_step = bounds_by_step(scheduled, 0.0, steps, STEP_S)

    def policy() -> Policy:
        target, tolerance = draw(st.sampled_from([0.5, 0.7, 1.0, 3.0])), Tolerance(up=draw(shares), down=draw(shares))
        window = (
            Stabilise(up_s=draw(seconds), down_s=draw(seconds)) if between else StabiliseMax(window_s=draw(seconds))
        )
        rules = (*rest, window) if reverse else (window, *rest)
        least = draw(st.integers(1, 3))
        own = Bounds(min_replicas=least, max_replicas=least + draw(st.sampled_from([0, 5, 40])))
        return Policy(
            signals=(TotalAverage(metric=LOAD, target=target, tolerance=tolerance),),
            settle=rules,
            bounds=scheduled if spans else own,
            forecast=ForecastChoice() if len(ahead) else None,
        )

    made = [program(policy(), STEP_S, ahead, by_step) for _ in range(draw(st.integers(2, 5)))]
    return made, load, draw(st.integers(1, 50))


@settings(max_examples=200, deadline=None)
@given(families(), st.sampled_from([0, 1, 8]))
def test_every_column_is_the_lane_s_run(drawn: tuple[list[Program], Floats, int], delay: int) -> None:
    programs, load, first_pods = drawn
    assert alike(programs) == [list(range(len(programs)))]
    columns = run_side_by_side(load, programs, first_pods)
    days = measure_side_by_side(load, columns, delay, 30, SLO)
    for number, member in enumerate(programs):
        assert columns[:, number].tolist() == run_compiled(load, member, first_pods).tolist()
        for figure, other in zip(days[number], measure(load, columns[:, number].copy(), delay, 30), strict=True):
            assert figure == pytest.approx(other)


def test_only_what_is_alike_is_stepped_together() -> None:
    policies = [
        on_load(target=0.7),
        on_load(target=0.5),
        on_load(settle=(StabiliseMax(), UpLimit())),
        on_load(settle=(MinFactor(),)),
        on_load(settle=(MinFactor(),), target=0.5),
    ]
    programs = [program(policy, STEP_S) for policy in policies]
    assert alike(programs) == [[0, 1], [2], [3], [4]]
    ahead = np.ones(3)
    looks = replace(on_load(), forecast=ForecastChoice())
    assert alike([program(on_load(), STEP_S), program(looks, STEP_S, ahead)]) == [[0], [1]]


WITHOUT_NUMBA = """
import sys, warnings
warnings.simplefilter("ignore")
sys.modules["numba"] = None
from tests.sim.test_side_by_side import NIGHT, on_cpu, tuned
print(tuned())
print(tuned((NIGHT,)))
print(tuned(policy=on_cpu()))
"""
NIGHT = ScheduledBounds("night", 30_000.0, 70_000.0, min_replicas=12, max_replicas=30)


def tuned(spans: tuple[ScheduledBounds, ...] = (), policy: Policy | None = None) -> str:
    from trimtab.sim.cluster_spec import ClusterSpec
    from trimtab.sim.generate import generate, parse_shape
    from trimtab.tune.demand import Demand
    from trimtab.tune.tuner import tune

    scheduled = replace(policy or on_load(), bounds=Bounds(2, 200, spans))
    found = tune(scheduled, Demand("x", generate(parse_shape("bursty,days=2")), 0.0), ClusterSpec(), 128.0)
    figures = (found.after.j, found.before.j, found.after.violations)
    return f"{found.now.setting} {[round(figure, 9) for figure in figures]}"


def test_tuning_without_numba_finds_the_same() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_NUMBA], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == [tuned(), tuned((NIGHT,)), tuned(policy=on_cpu())], done.stderr
    assert tuned() != tuned((NIGHT,)), "a schedule counts"
