"""HVPA weights: every example, both mitigations, the way out of a vertical stage, and the overload."""

from __future__ import annotations

import itertools
from math import inf
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.wishes import FREE, ask, size
from trimtab.core.blend import blend
from trimtab.core.blend.weights import share_at, weighted_replicas, weighted_request
from trimtab.core.model import ContainerSize, RuleName, Step
from trimtab.policy import Axis, ContainerRule, Size, Stage, Vertical, Weights


def stages(*rows: tuple[float, int, int]) -> tuple[Stage, ...]:
    return tuple(Stage(vertical_share=share, first=first, last=last) for share, first, last in rows)


EXAMPLE_1 = stages((0, 1, 2), (0.6, 3, 7), (0, 7, 10))
EXAMPLE_2 = stages((1, 1, 1), (0.6, 2, 4), (0, 5, 10))
EXAMPLE_3 = stages((0, 1, 3), (0.6, 4, 10))


@pytest.mark.parametrize(
    "rows, current, wanted, share",
    [
        pytest.param(EXAMPLE_1, 1, 5, 0.0, id="HVPA weights example 1: 1 and 2 replicas scale horizontally"),
        pytest.param(EXAMPLE_1, 2, 1, 0.0, id="HVPA weights example 1: down as well"),
        pytest.param(EXAMPLE_1, 3, 5, 0.6, id="HVPA weights example 1: from 3 replicas 0.6 is vertical"),
        pytest.param(EXAMPLE_1, 7, 9, 0.6, id="HVPA weights example 1: 7 belongs to the first stage that names it"),
        pytest.param(EXAMPLE_1, 8, 9, 0.0, id="HVPA weights example 1: beyond 7 horizontally again"),
        pytest.param(EXAMPLE_2, 1, 1, 1.0, id="HVPA weights example 2: one replica is sized vertically"),
        pytest.param(EXAMPLE_2, 1, 4, 0.6, id="HVPA weights example 2: and left by the weight of the next stage"),
        pytest.param(EXAMPLE_2, 4, 9, 0.6, id="HVPA weights example 2: up to 4 replicas both"),
        pytest.param(EXAMPLE_2, 5, 9, 0.0, id="HVPA weights example 2: from 5 horizontally"),
        pytest.param(EXAMPLE_3, 3, 9, 0.0, id="HVPA weights example 3: up to 3 horizontally"),
        pytest.param(EXAMPLE_3, 10, 10, 0.6, id="HVPA weights example 3: the last stage ends at maxReplicas"),
        pytest.param(stages((0.4, 2, 3), (0.2, 6, 9)), 5, 9, 0.0, id="a count in no stage scales horizontally"),
        pytest.param(stages((0.3, 1, 2), (1, 3, 4)), 3, 1, 0.3, id="weight 1 is left downwards by an earlier stage"),
        pytest.param(stages((0.3, 1, 2), (1, 3, 4)), 4, 6, 1.0, id="weight 1 is not left where no stage follows"),
        pytest.param(stages((1, 1, 1), (1, 2, 2), (0.5, 3, 4)), 1, 4, 0.5, id="the next smaller weight, however far"),
        pytest.param(stages((0.2, 1, 1), (0.7, 2, 2), (1, 3, 4)), 3, 1, 0.7, id="downwards the nearest earlier stage"),
    ],
)
def test_the_weight_of_a_replica_count(rows: tuple[Stage, ...], current: int, wanted: int, share: float) -> None:
    assert share_at(rows, current, wanted) == share


OUTWARDS = stages((1, 1, 1), (0, 2, 10))
BOUNDED = Vertical(containers=(ContainerRule(least=size(0.5), most=size(4.0)),), floor=Size())
SMALL = {("app", Axis.CPU): inf}  # the gates let no change through


@pytest.mark.parametrize(
    "rows, current, wanted, now, target, expected, more",
    [
        pytest.param(OUTWARDS, 1, 2, 1.0, 1.2, (1, 1.2), {}, id="001, vpaWeight = 1: pure vertical scaling"),
        pytest.param(EXAMPLE_2, 1, 2, 1.0, 3.0, (1, 3.0), {}, id="001 example 2: the vertical line at one replica"),
        pytest.param(EXAMPLE_2, 1, 4, 3.0, 3.1, (3, 3.1), {}, id="001 example 2: within 10 % it goes on diagonally"),
        pytest.param(EXAMPLE_2, 1, 4, 4.0, 9.0, (3, 4.0), {}, id="001 example 2: at maxAllowed it goes on diagonally"),
        pytest.param(
            EXAMPLE_2, 1, 4, 1.0, 3.0, (3, 3.0), {"smallest": SMALL}, id="001 example 2: or where sizes may not"
        ),
        pytest.param(
            EXAMPLE_2, 1, 4, 3.0, 3.1, (1, 3.1), {"smallest": {("app", Axis.CPU): 0.05}}, id="001, minCpuChange: enough"
        ),
        pytest.param(EXAMPLE_2, 1, 4, 2.0, 1.0, (3, 1.0), {}, id="001: nothing to add is no reason to stay"),
        pytest.param(
            EXAMPLE_2, 1, 4, 1.0, 3.0, (3, 3.0), {"speaks_for": {Axis.MEMORY}}, id="001: nor is what nobody asked for"
        ),
        pytest.param(
            stages((0.5, 1, 2), (1, 3, 9)), 3, 1, 2.0, 1.0, (3, 1.0), {}, id="001, vpaWeight = 1: downwards too"
        ),
        pytest.param(stages((0.5, 1, 2), (1, 3, 9)), 3, 1, 1.0, 1.0, (2, 1.0), {}, id="001: then by the stage before"),
    ],
)
def test_a_stage_of_weight_1(
    rows: tuple[Stage, ...],
    current: int,
    wanted: int,
    now: float,
    target: float,
    expected: tuple[int, float],
    more: dict[str, Any],
) -> None:
    plan = blend(Weights(stages=rows), BOUNDED, ask(current, wanted, size(now), size(target), **more), [])
    assert (plan.replicas, plan.sizes["app"].requests.cpu_cores) == expected


def test_exact_leaves_weight_1_as_the_released_program_does() -> None:
    rule = Weights(stages=EXAMPLE_2, exact=True)
    plan = blend(rule, BOUNDED, ask(1, 2, size(1.0), size(3.0), stuck=True), [])
    assert (plan.replicas, plan.sizes["app"].requests.cpu_cores) == (2, 2.2)


OPEN = Stage(vertical_share=0.6, first=1, last=10, until_least=True, until_most=True)
OPEN_ONCE = Stage(vertical_share=1.0, first=1, last=10, until_least=True, until_most=True)


@pytest.mark.parametrize(
    "rows, current, wanted, now, replicas",
    [
        pytest.param((OPEN, *stages((0, 5, 10))), 6, 10, 1.0, 8, id="001, no x2: 0.6 until maxAllowed"),
        pytest.param(
            (OPEN, *stages((0, 5, 10))), 6, 10, 4.0, 10, id="001, no x2: at maxAllowed the later stage is reached"
        ),
        pytest.param(
            (OPEN, *stages((0.5, 5, 10))), 2, 10, 4.0, 6, id="001, no x2: the next one, if none holds the count"
        ),
        pytest.param(
            (OPEN, *stages((0.5, 2, 4), (0, 5, 10))), 6, 10, 4.0, 10, id="001, no x2: the one that holds it first"
        ),
        pytest.param((OPEN,), 6, 10, 4.0, 10, id="001, no x2: nothing later scales horizontally"),
        pytest.param((OPEN,), 6, 2, 4.0, 4, id="001, no x1: downwards 0.6 from maxAllowed"),
        pytest.param((OPEN,), 6, 2, 0.5, 2, id="001, no x1: at minAllowed horizontally"),
        pytest.param((*stages((0.5, 1, 3)), OPEN), 6, 2, 0.5, 4, id="001, no x1: at minAllowed the earlier stage"),
        pytest.param((OPEN_ONCE,), 3, 9, 1.0, 3, id="001, no x2: purely vertical until maxAllowed"),
        pytest.param((OPEN_ONCE,), 3, 9, 4.0, 9, id="001, no x2: and horizontal from there"),
    ],
)
def test_a_stage_without_an_end(rows: tuple[Stage, ...], current: int, wanted: int, now: float, replicas: int) -> None:
    target = 8.0 if wanted > current else 0.1
    plan = blend(Weights(stages=rows), BOUNDED, ask(current, wanted, size(now), size(target)), [])
    assert plan.replicas == replicas


@pytest.mark.parametrize(
    "current, wanted, share, replicas",
    [
        pytest.param(4, 8, 0.0, 8, id="HVPA weights: vpaWeight 0 is purely horizontal"),
        pytest.param(4, 8, 1.0, 4, id="HVPA weights: vpaWeight 1 is purely vertical"),
        pytest.param(4, 8, 0.4, 7, id="HVPA weights: ceil of 6.4 when growing"),
        pytest.param(8, 4, 0.4, 5, id="HVPA weights: floor of 5.6 when shrinking"),
        pytest.param(2, 12, 0.7, 5, id="0.3 of 10 is 3, not a binary fraction more"),
        pytest.param(3, 4, 0.99, 4, id="any weight below 1 moves at least one replica"),
    ],
)
def test_replicas(current: int, wanted: int, share: float, replicas: int) -> None:
    assert weighted_replicas(current, wanted, share) == replicas


@pytest.mark.parametrize(
    "now, target, share, axis, cores_or_bytes",
    [
        pytest.param(0.5, 1.5, 0.4, Axis.CPU, 0.9, id="HVPA weights: current + (target - current) * weight"),
        pytest.param(0.101, 0.2, 0.33, Axis.CPU, 0.133, id="99m * 0.33 is cut to 32m"),
        pytest.param(0.2, 0.101, 0.33, Axis.CPU, 0.168, id="towards zero downwards too"),
        pytest.param(1000, 2000, 0.6, Axis.MEMORY, 1600, id="memory is cut to whole bytes"),
    ],
)
def test_requests(now: float, target: float, share: float, axis: Axis, cores_or_bytes: float) -> None:
    assert weighted_request(now, target, share, axis) == pytest.approx(cores_or_bytes, abs=1e-12)


def test_memory_is_written_in_whole_kilobytes() -> None:
    rule = Weights(stages=stages((0.6, 1, 10)))
    plan = blend(rule, FREE, ask(1, 1, Size(memory_bytes=1000.0), Size(memory_bytes=2000.0)), [])
    assert plan.sizes["app"].requests.memory_bytes == 2000.0


@pytest.mark.parametrize("share", [0.0, 0.6])
def test_at_maxreplicas_growth_is_vertical_whatever_the_stage(share: float) -> None:
    """HVPA weights, mitigation 2; the program with `exact` keeps to the stage."""
    at_most = ask(10, 10, size(1.0), size(2.0), stuck=True)
    rows = stages((share, 1, 10))
    assert blend(Weights(stages=rows), FREE, at_most, []).sizes["app"].requests.cpu_cores == 2.0
    exact = blend(Weights(stages=rows, exact=True), FREE, at_most, [])
    assert exact.sizes["app"].requests.cpu_cores == pytest.approx(1.0 + share)


def test_the_horizontal_recommendation_is_within_its_bounds_before_it_is_weighed() -> None:
    """6 + (10 - 6) * 0.4 = 7.6: that 12 would be nice does not make it 9."""
    rule = Weights(stages=stages((0.6, 1, 10)))
    assert blend(rule, FREE, ask(6, 12, size(1), size(1)), []).replicas == 8


def test_at_maxreplicas_shrinking_keeps_to_the_stage() -> None:
    plan = blend(Weights(stages=stages((0, 1, 10))), FREE, ask(10, 10, size(2.0), size(1.0)), [])
    assert plan.sizes["app"].requests.cpu_cores == 2.0


def test_a_horizontal_stage_says_why_the_size_stays() -> None:
    steps: list[Step] = []
    blend(Weights(stages=stages((0, 1, 5))), FREE, ask(2, 2, size(1.0), size(2.0)), steps)
    assert [(step.rule, step.axis, step.before, step.after) for step in steps] == [
        (RuleName.WEIGHTS, Axis.CPU, 2.0, 1.0)
    ]


@pytest.mark.parametrize(
    "target, after",
    [
        pytest.param(3.0, 3.0, id="an OOM kill in a horizontal stage: up in full"),
        pytest.param(0.5, 1.0, id="but never down"),
    ],
)
def test_overload(target: float, after: float) -> None:
    hurt = ask(2, 4, size(1.0), size(target), overloaded=True)
    plan = blend(Weights(stages=stages((0, 1, 10))), FREE, hurt, [])
    assert (plan.replicas, plan.sizes["app"].requests.cpu_cores) == (4, after)


def test_overload_keeps_a_fraction() -> None:
    hurt = ask(2, 2, size(1.0), size(3.0), overloaded=True)
    plan = blend(Weights(stages=stages((0.5, 1, 10))), FREE, hurt, [])
    assert plan.sizes["app"].requests.cpu_cores == 2.0


@pytest.mark.parametrize(
    "stuck, overloaded, after, reason",
    [
        pytest.param(False, False, 1.0, RuleName.UPDATE_MODE, id="sizes wait while replicas can grow"),
        pytest.param(True, False, 1.4, RuleName.WEIGHTS, id="and grow when they cannot"),
        pytest.param(False, True, 1.4, RuleName.WEIGHTS, id="or after an OOM kill"),
    ],
)
def test_exact_grows_sizes_only_when_replicas_cannot(
    stuck: bool, overloaded: bool, after: float, reason: RuleName
) -> None:
    steps: list[Step] = []
    rule = Weights(stages=stages((0.4, 1, 10)), exact=True)
    plan = blend(rule, FREE, ask(2, 3, size(1.0), size(2.0), stuck=stuck, overloaded=overloaded), steps)
    assert plan.sizes["app"].requests.cpu_cores == after
    assert [step.rule for step in steps if step.axis is Axis.CPU] == [reason]


def test_containers_without_a_recommendation_are_left_alone() -> None:
    two = ask(1, 1, size(1.0), size(2.0))
    two = two._replace(sizes=two.sizes | {"sidecar": ContainerSize(requests=size(0.1))})
    plan = blend(Weights(stages=stages((1, 1, 10))), FREE, two, [])
    assert plan.sizes["sidecar"] == two.sizes["sidecar"]
    assert plan.sizes["app"].requests.cpu_cores == 2.0


def test_limits_follow_and_bounds_hold() -> None:
    """A present size below minAllowed does not drift back by the weight: it is within at once."""
    rule = ContainerRule(least=size(0.5), most=size(4.0))
    grown = ask(1, 1, size(0.1), size(0.6))._replace(sizes={"app": ContainerSize(requests=size(0.1), limits=size(0.2))})
    plan = blend(Weights(stages=stages((0.4, 1, 10))), Vertical(containers=(rule,)), grown, [])
    assert plan.sizes["app"] == ContainerSize(requests=size(0.5), limits=size(1.0))


shares = st.sampled_from([0.0, 0.1, 0.25, 0.4, 0.6, 0.75, 0.99, 1.0])
cores = st.floats(0.01, 8.0).map(lambda value: round(value, 3))


@st.composite
def staged(draw: st.DrawFn) -> tuple[Stage, ...]:
    edges = sorted(draw(st.sets(st.integers(1, 30), min_size=2, max_size=5)))
    return tuple(
        Stage(vertical_share=draw(shares), first=first, last=last - 1) for first, last in itertools.pairwise(edges)
    )


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 30), st.integers(1, 30), cores, cores)
def test_weight_0_is_purely_horizontal(current: int, wanted: int, now: float, target: float) -> None:
    wish = ask(current, wanted, size(now), size(target), most=40)
    plan = blend(Weights(stages=stages((0, 1, 40))), FREE, wish, [])
    assert (plan.replicas, plan.sizes) == (wanted, wish.sizes)


@settings(max_examples=100, deadline=None)
@given(staged(), st.integers(1, 29), st.integers(1, 30), cores, cores)
def test_weight_1_is_purely_vertical_where_no_other_stage_lies_ahead(
    rows: tuple[Stage, ...], current: int, wanted: int, now: float, target: float
) -> None:
    here = next((stage for stage in rows if stage.first <= current <= stage.last), None)
    ahead = [stage for stage in rows if (stage.first > current if wanted > current else stage.last < current)]
    if here is None or here.vertical_share < 1.0 or any(stage.vertical_share < 1.0 for stage in ahead):
        return
    plan = blend(Weights(stages=rows), FREE, ask(current, wanted, size(now), size(target), most=30), [])
    assert plan.replicas == current
    assert plan.sizes["app"].requests.cpu_cores == pytest.approx(target, abs=1e-9)


@settings(max_examples=100, deadline=None)
@given(staged(), st.integers(1, 30), st.integers(1, 30), cores, cores)
def test_both_numbers_stay_between_now_and_wanted(
    rows: tuple[Stage, ...], current: int, wanted: int, now: float, target: float
) -> None:
    plan = blend(Weights(stages=rows), FREE, ask(current, wanted, size(now), size(target), most=30), [])
    request = plan.sizes["app"].requests.cpu_cores
    assert request is not None
    assert min(current, wanted) <= plan.replicas <= max(current, wanted)
    assert min(now, target) - 1e-9 <= request <= max(now, target) + 1e-9
