"""Half of a joint plan: never less than both now and planned, never more than anybody asked for."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.wishes import size
from trimtab.core.gate import gate
from trimtab.core.model import ContainerSize, Memory, Observation, Plan, RuleName, Step
from trimtab.policy import RESOURCES, Axis, Direction, Gate, MinChange, Rest, Update, UpdateMode

AT = 1_700_000_000.0
Shape = tuple[int, float, float]


def off(axis: Axis, direction: Direction) -> Gate:
    return Update(axis=axis, direction=direction, mode=UpdateMode.OFF)


def done(before: Shape, after: Shape, *gates: Gate, joint: bool = True, memory: Memory | None = None) -> Shape:
    return shape(gated(before, after, gates, joint, memory)[0])


def gated(
    before: Shape, after: Shape, gates: tuple[Gate, ...], joint: bool = True, memory: Memory | None = None
) -> tuple[Plan, list[Step]]:
    sizes = {"app": ContainerSize(requests=size(before[1], before[2]))}
    seen = Observation(at=AT, spec_replicas=before[0], status_replicas=before[0], sizes=sizes)
    steps: list[Step] = []
    plan = Plan(replicas=after[0], sizes={"app": ContainerSize(requests=size(after[1], after[2]))}, joint=joint)
    return gate(gates, seen, memory or Memory(), plan, steps), steps


def shape(plan: Plan) -> Shape:
    requests = plan.sizes["app"].requests
    assert requests.cpu_cores is not None and requests.memory_bytes is not None
    return plan.replicas, requests.cpu_cores, requests.memory_bytes / 1e9


OUT, IN = off(Axis.REPLICAS, Direction.UP), off(Axis.REPLICAS, Direction.DOWN)
CPU_UP, CPU_DOWN = off(Axis.CPU, Direction.UP), off(Axis.CPU, Direction.DOWN)


@pytest.mark.parametrize(
    "before, after, held, expected",
    [
        pytest.param((2, 6, 6), (4, 4, 4), OUT, (2, 6, 6), id="out is held: the larger sizes stay"),
        pytest.param((2, 6, 6), (3, 8, 8), OUT, (2, 8, 8), id="out is held: sizes still grow"),
        pytest.param((2, 6, 6), (3, 8, 4), OUT, (2, 8, 6), id="out is held: what grows grows, what shrinks stays"),
        pytest.param(
            (4, 2, 2), (2, 4, 4), CPU_UP, (4, 2, 2), id="CPU may not grow: no replica goes, so memory has enough"
        ),
        pytest.param((4, 2, 2), (2, 1, 1), CPU_UP, (2, 1, 1), id="nothing grows: fewer and smaller is no trade"),
        pytest.param((4, 2, 2), (2, 4, 4), IN, (4, 2, 2), id="in is held: sizes have enough already"),
        pytest.param((4, 2, 2), (2, 6, 4), IN, (4, 6, 2), id="in is held: only what must grow in total grows"),
        pytest.param((1, 9, 9), (2, 1, 1), CPU_DOWN, (1, 9, 9), id="CPU may not shrink: no replica that nothing needs"),
        pytest.param((1, 9, 9), (2, 8, 8), CPU_DOWN, (2, 9, 8), id="CPU may not shrink: but one that is needed"),
    ],
)
def test_half_a_plan(before: Shape, after: Shape, held: Gate, expected: Shape) -> None:
    assert done(before, after, held) == expected


def test_axes_on_their_own_are_held_on_their_own() -> None:
    assert done((2, 6, 6), (4, 4, 4), OUT, joint=False) == (2, 4, 4)
    assert done((4, 2, 2), (2, 4, 4), CPU_UP, joint=False) == (2, 2, 4)


def test_what_is_held_along_says_by_what() -> None:
    _, steps = gated((2, 6, 6), (4, 4, 4), (OUT,))
    assert {(step.rule, step.axis) for step in steps} == {
        (RuleName.UPDATE_MODE, axis) for axis in (Axis.REPLICAS, *RESOURCES)
    }


@pytest.mark.parametrize(
    "impatient",
    [
        pytest.param(MinChange(axis=Axis.CPU, direction=Direction.UP, value=1.0), id="too small a change"),
        pytest.param(Rest(axis=Axis.CPU, direction=Direction.UP, window_s=600), id="too soon"),
    ],
)
def test_small_moves_go_along_with_a_plan_that_happens(impatient: Gate) -> None:
    memory = Memory(up_at=AT)
    assert done((3, 2, 2), (2, 2.1, 2), impatient, memory=memory) == (2, 2.1, 2)
    assert done((3, 2, 2), (3, 2.1, 2), impatient, memory=memory) == (3, 2, 2)
    assert done((3, 2, 2), (2, 2.1, 2), impatient, IN, memory=memory) == (3, 2, 2)


def test_replicas_rest_for_themselves() -> None:
    """A size that moves does not drag replicas out of their own rest."""
    rest = Rest(axis=Axis.REPLICAS, direction=Direction.UP, window_s=600)
    assert done((2, 2, 2), (3, 3, 3), rest, memory=Memory(up_at=AT)) == (2, 3, 3)


shapes = st.tuples(st.integers(1, 9), st.integers(1, 9).map(float), st.integers(1, 9).map(float))
gates = st.lists(st.builds(off, st.sampled_from(Axis), st.sampled_from(Direction)), max_size=4).map(tuple)


@settings(max_examples=300, deadline=None)
@given(shapes, shapes, gates)
def test_never_less_than_both_now_and_planned(before: Shape, after: Shape, held: tuple[Gate, ...]) -> None:
    result = done(before, after, *held)
    for at in (1, 2):
        assert result[0] * result[at] >= min(before[0] * before[at], after[0] * after[at])


@settings(max_examples=300, deadline=None)
@given(shapes, shapes, gates)
def test_every_number_is_the_one_of_now_or_the_planned_one(before: Shape, after: Shape, held: tuple[Gate, ...]) -> None:
    result = done(before, after, *held)
    assert all(result[at] in (before[at], after[at]) for at in range(3))
    if not held:
        assert result == after
