"""Outcomes: the figures of a backtest by hand, and the conditions of --fail-if on them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.sim.policies import on_cpu, on_load
from trimtab.errors import InvalidInput
from trimtab.sim.cluster_spec import ClusterSpec
from trimtab.tune.case import Case, Outcome, first_pods, judged
from trimtab.tune.demand import Demand
from trimtab.tune.fail_if import failure, parse_fail_if

FLAT = Demand("flat", np.full(5760, 70.0), 0.0)
CLUSTER = ClusterSpec(startup_s=60, pod_capacity=10.0, pod_cores=10.0)


def flat(target: float = 7.0) -> Outcome:
    return Case(FLAT, on_load(target=target), CLUSTER, 32.0).outcome("flat")


def test_a_flat_load_by_hand() -> None:
    found = flat()
    assert (found.run.replicas == 10).all(), "7 pods of work at a target of 70 %"
    assert found.pod_hours == 240.0
    assert found.figures.cost == pytest.approx(10 / 9), "nine pods at 80 % would do"
    assert (found.figures.violations, found.oom) == (0.0, 0.0)
    assert found.slack == pytest.approx(30.0)
    assert found.provisioning.over == pytest.approx(100 / 9)


def test_the_worst_hour_is_found() -> None:
    values = np.full(5760, 70.0)
    values[240 * 5 + 10 : 240 * 5 + 20] = 300.0
    found = Case(Demand("x", values, 0.0), on_load(target=7.0), CLUSTER, 32.0).outcome("x")
    assert found.worst.start == 5 * 3600.0 and found.worst.violations > 5


def test_the_lane_and_the_cluster_give_the_same_outcome() -> None:
    load = Demand("x", 70 + 60 * np.sin(np.arange(5760) / 300), 0.0)
    fast = Case(load, on_load(target=7.0), CLUSTER, 32.0).outcome("x")
    odd = ClusterSpec(startup_s=60, pod_capacity=10.0, retry_share=1e-12)
    slow = Case(load, on_load(target=7.0), odd, 32.0).outcome("x")
    assert fast.why_slow == "" and slow.why_slow != ""
    assert fast.by_name() == pytest.approx(slow.by_name())


def test_a_part_of_a_run_is_judged_alone() -> None:
    whole = flat()
    part = judged("x", Case(FLAT, on_load(target=7.0), CLUSTER, 32.0), whole.run, from_step=2880)
    assert part.pod_hours == whole.pod_hours / 2
    assert part.worst.start == 12 * 3600.0


def test_a_run_begins_within_its_bounds() -> None:
    assert first_pods(on_cpu(least=2, most=5), 70.0) == 5
    assert first_pods(on_cpu(least=2, most=5), 0.1) == 2


@pytest.mark.parametrize(
    "text, over",
    [
        ("cost > 1.1", True),
        ("cost > 1.2", False),
        ("over >= 11%", True),
        ("slack > 31%", False),
        ("violations <= 0%", True),
        ("podHours > 239.5", True),
        ("j > +1%", False),
        ("cost > -20%", True),
    ],
)
def test_fail_if(text: str, over: bool) -> None:
    assert bool(failure(parse_fail_if(text), flat(), flat())) == over


@pytest.mark.parametrize("figure", ["cost", "J", "churn/day", "pod hours", "resizes"])
def test_a_percentage_of_what_is_none_is_refused_with_both_readings(figure: str) -> None:
    with pytest.raises(InvalidInput, match=rf"'{figure} > \+5%' for 5 % more than the first .*'{figure} > 0.05' for"):
        parse_fail_if(f"{figure} > 5%")
    assert parse_fail_if(f"{figure} > +5%").relative and not parse_fail_if(f"{figure} > 0.05").relative


@pytest.mark.parametrize("text", ["cost", "cost > lots", "beauty > 1", "j > +2", "1 < cost"])
def test_a_condition_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="--fail-if"):
        parse_fail_if(text)
