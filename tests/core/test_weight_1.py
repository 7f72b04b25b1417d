"""HVPA's stage of weight 1 through decide(): what counts as nothing more to give, gates and vetoes included."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.core.build import NOW
from tests.core.loop import Load, cpu_percent, look, start, tick
from tests.core.wishes import size
from trimtab.core.decide import decide
from trimtab.core.model import Memory, Missing, Observation, PodSamples, Reason, RuleName, Veto
from trimtab.policy import (
    Axis,
    Bounds,
    ContainerRule,
    Direction,
    Gate,
    MinChange,
    Policy,
    Rest,
    Size,
    Stage,
    Update,
    UpdateMode,
    Vertical,
    Weights,
)

UP = Direction.UP
EXAMPLE_2 = tuple(Stage(vertical_share=w, first=a, last=b) for w, a, b in ((1, 1, 1), (0.6, 2, 4), (0, 5, 10)))
REST = Rest(axis=Axis.CPU, direction=UP, window_s=120.0)
QUOTA = Veto(axis=Axis.CPU, direction=UP, reason="Quota")


def policy(*gates: Gate) -> Policy:
    return Policy(
        signals=(cpu_percent(50),),
        vertical=Vertical(containers=(ContainerRule(most=size(4.0)),), floor=Size()),
        blend=Weights(stages=EXAMPLE_2),
        gates=gates,
        bounds=Bounds(max_replicas=10),
    )


def busy(cores: float, used: float, target: float, **more: object) -> Observation:
    """One pod that uses this much, for which vertical recommends that much."""
    return replace(look(start(1, cores, 1e9), Load(cpu=used), NOW, margin=target / used), **more)


@pytest.mark.parametrize(
    "gates, seen, replicas, cores",
    [
        pytest.param((), busy(1.0, 0.95, 1.2), 1, 1.2, id="001, pure vertical: 1 x 1.0 at 95 % becomes 1 x 1.2"),
        pytest.param((), busy(1.0, 2.5, 3.0), 1, 3.0, id="001 example 2, the vertical line: 1 x 3.0"),
        pytest.param(
            (), busy(3.0, 2.5, 3.0), 2, 3.0, id="001 example 2, the figure leaves it when sizes have followed"
        ),
        pytest.param((), busy(3.0, 2.8, 3.2), 2, 3.2, id="001 example 2, within 10 % of the size in force they have"),
        pytest.param((), busy(4.0, 4.0, 5.0), 2, 4.0, id="001 example 2, at maxAllowed there is nothing to add"),
        pytest.param(
            (MinChange(axis=Axis.CPU, direction=UP, value=0.1),),
            busy(3.0, 2.8, 3.2),
            1,
            3.2,
            id="001 minCpuChange: 0.2",
        ),
        pytest.param(
            (MinChange(axis=Axis.CPU, direction=UP, value=0.5),),
            busy(1.0, 1.2, 1.4),
            2,
            1.0,
            id="001 minCpuChange: 0.5",
        ),
        pytest.param((), busy(1.0, 2.5, 3.0, vetoes=(QUOTA,)), 3, 1.0, id="001 example 2, a quota forbids larger pods"),
        pytest.param(
            (Update(axis=Axis.CPU, direction=UP, mode=UpdateMode.OFF),),
            busy(1.0, 2.5, 3.0),
            3,
            1.0,
            id="001 updateMode Off",
        ),
        pytest.param(
            (), busy(1.0, 2.5, 3.0, usage=Missing(reason=Reason.ABSENT)), 3, 1.0, id="001 example 2, no recommendation"
        ),
    ],
)
def test_replicas_leave_when_the_vertical_recommendation_has_nothing_more_to_give(
    gates: tuple[Gate, ...], seen: Observation, replicas: int, cores: float
) -> None:
    plan = decide(policy(*gates), seen, Memory()).plan
    assert plan.sizes["app"].requests.cpu_cores == pytest.approx(cores)
    assert plan.replicas == replicas


def test_a_rest_that_is_running_is_no_veto() -> None:
    decision = decide(policy(REST), busy(1.0, 2.5, 3.0), Memory(resized_at=NOW - 60.0))
    assert (decision.plan.replicas, decision.plan.sizes["app"].requests.cpu_cores) == (1, 1.0)
    assert RuleName.REST in [step.rule for step in decision.steps]
    after = decide(policy(REST), busy(1.0, 2.5, 3.0), Memory(resized_at=NOW - 120.0))
    assert after.plan.replicas == 1 and after.plan.sizes["app"].requests.cpu_cores == pytest.approx(3.0)


def followed(sampled_s: float | None = 60.0, used: float = 0.95, sample_s: float = 0.0) -> Observation:
    """One pod of 1 core, as recommended; usage and the newest sample are so many seconds old."""
    seen = busy(1.0, used, 1.0)
    assert not isinstance(seen.usage, Missing) and isinstance(seen.samples[0], PodSamples)
    usage = replace(seen.usage, sampled_at=None if sampled_s is None else NOW - sampled_s)
    return replace(seen, usage=usage, samples=(replace(seen.samples[0], at=NOW - sample_s),))


@pytest.mark.parametrize(
    "since_s, sampled_s, replicas",
    [
        pytest.param(0, 60, 1, id="usage has not seen the load yet: it is awaited"),
        pytest.param(30, 30, 2, id="usage is as new as the sample that said so first"),
        pytest.param(30, 15, 2, id="usage is newer"),
        pytest.param(119, 150, 1, id="awaited for almost two minutes"),
        pytest.param(120, 150, 2, id="two minutes are enough: load that rises is followed"),
        pytest.param(0, None, 2, id="a recommendation that does not say when it was sampled is not awaited"),
    ],
)
def test_only_usage_that_has_seen_the_load_has_nothing_more_to_give(
    since_s: float, sampled_s: float | None, replicas: int
) -> None:
    decision = decide(policy(), followed(sampled_s), Memory(followed_since=NOW - since_s))
    assert (decision.plan.replicas, decision.memory.followed_since) == (replicas, NOW - since_s)
    waits = [step for step in decision.steps if step.rule is RuleName.VERTICAL_FIRST]
    assert [step.until for step in waits] == ([] if replicas == 2 else [NOW - since_s + 120.0])


def test_pods_that_do_not_have_their_size_yet_are_awaited() -> None:
    seen = followed(sampled_s=0)
    small = tuple(replace(pod, containers={"app": Size(cpu_cores=0.5, memory_bytes=1e9)}) for pod in seen.pods)
    decision = decide(policy(), replace(seen, pods=small), Memory(followed_since=NOW - 60.0))
    assert decision.plan.replicas == 1 and RuleName.VERTICAL_FIRST in [step.rule for step in decision.steps]
    assert decide(policy(), replace(seen, pods=small), Memory(followed_since=NOW - 120.0)).plan.replicas == 2


@pytest.mark.parametrize(
    "rule",
    [
        pytest.param(policy(Update(axis=Axis.CPU, direction=UP, mode=UpdateMode.OFF)), id="sizes may not grow"),
        pytest.param(replace(policy(), blend=Weights(stages=EXAMPLE_2, exact=True)), id="the released program"),
    ],
)
def test_nothing_is_awaited_that_could_not_help(rule: Policy) -> None:
    seen = busy(1.0, 0.95, 1.2)
    assert not isinstance(seen.usage, Missing)
    decision = decide(rule, replace(seen, usage=replace(seen.usage, sampled_at=NOW - 60)), Memory())
    assert decision.plan.replicas == 2 and decision.memory.followed_since is None


def test_since_when_counts_from_the_first_sample_on_and_ends_with_the_wish() -> None:
    noted = decide(policy(), followed(sample_s=7.0), Memory()).memory
    assert noted.followed_since == NOW - 7.0
    assert decide(policy(), followed(used=0.5), noted).memory.followed_since is None


@pytest.mark.parametrize(
    "seen", [pytest.param(busy(1.0, 0.95, 1.2), id="they grow"), pytest.param(followed(), id="they are awaited")]
)
def test_a_wish_that_sizes_answer_does_not_come_back_from_the_window(seen: Observation) -> None:
    memory = decide(policy(), seen, Memory()).memory
    assert memory.wanted == ((NOW, 1),)
    later = replace(busy(1.2, 0.6, 1.2), at=NOW + 15.0)
    assert decide(policy(), later, memory).plan.replicas == 1


def walk(shape: tuple[int, float], loads: list[float], ticks: int) -> list[tuple[int, float]]:
    """The corners under these loads; the target is above what sizes that follow usage show: each axis has its turn."""
    rule = replace(policy(), signals=(cpu_percent(100),), settle=())
    state, corners = start(*shape, 1e9), list[tuple[int, float]]()
    for number, load in enumerate(load for load in loads for _ in range(ticks)):
        state, _ = tick(rule, state, Load(cpu=load), NOW + 60.0 * number)
        corners.append((state.replicas, state.size.requests.cpu_cores or 0.0))
    return corners


@pytest.mark.parametrize(
    "corners",
    [
        pytest.param(walk((1, 0.5), [0.4 * 1.12**k for k in range(40)], 3), id="001 example 2: the figure, upwards"),
        pytest.param(walk((8, 4.0), [33 * 0.75**k for k in range(24)], 1)[::-1], id="001 example 2: and downwards"),
    ],
)
def test_example_2_has_the_shape_of_its_figure(corners: list[tuple[int, float]]) -> None:
    """From the left: a vertical line at one replica, on diagonally, then horizontally."""
    counts = [replicas for replicas, _ in corners]
    assert counts == sorted(counts)
    line, diagonal, level = (
        [cores for replicas, cores in corners if first <= replicas <= last] for first, last in ((1, 1), (2, 4), (5, 10))
    )
    assert max(line) >= 4 * min(line), "the vertical line at one replica"
    assert min(diagonal) < max(diagonal), "sizes and replicas between 2 and 4"
    assert max(level) == min(level), "only replicas from 5 on"
