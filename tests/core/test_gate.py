"""Gates: each by itself, their precedence, what an overload lifts, and what a held move leaves in force."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.core.wishes import size
from trimtab.core.gate import gate, may_grow
from trimtab.core.gate.maintenance_window import contains, next_begin
from trimtab.core.gate.min_change import threshold
from trimtab.core.model import (
    ContainerSize,
    Estimate,
    Memory,
    Observation,
    Plan,
    RuleName,
    Step,
    UsageEstimates,
    Veto,
)
from trimtab.policy import Axis, Direction, Gate, MaintenanceWindow, MinChange, Rest, Size, Update, UpdateMode

MIDNIGHT = 1_700_006_400.0  # 2023-11-15T00:00:00Z
AT = MIDNIGHT + 12 * 3600
UP, DOWN = Direction.UP, Direction.DOWN
NIGHT = MaintenanceWindow(begin_s=22 * 3600, end_s=4 * 3600)


def seen(replicas: int = 2, requests: Size = Size(cpu_cores=1.0, memory_bytes=1e9), **more: object) -> Observation:  # noqa: B008
    sizes = {"app": ContainerSize(requests=requests, limits=size(2.0, 2.0))}
    return Observation(at=AT, spec_replicas=replicas, status_replicas=replicas, sizes=sizes, **more)  # type: ignore[arg-type]


def planned(replicas: int = 2, cpu: float = 1.0, gb: float = 1.0) -> Plan:
    return Plan(
        replicas=replicas, sizes={"app": ContainerSize(requests=size(cpu, gb), limits=size(2.0 * cpu, 2.0 * gb))}
    )


def run(gates: tuple[Gate, ...], plan: Plan, memory: Memory = Memory(), now: Observation | None = None) -> list[Step]:  # noqa: B008
    steps: list[Step] = []
    gate(gates, now or seen(), memory, plan, steps)
    return steps


def off(axis: Axis, direction: Direction = UP) -> Update:
    return Update(axis=axis, direction=direction, mode=UpdateMode.OFF)


@pytest.mark.parametrize(
    "plan, axis, direction",
    [
        pytest.param(planned(replicas=3), Axis.REPLICAS, UP, id="out"),
        pytest.param(planned(replicas=1), Axis.REPLICAS, DOWN, id="in"),
        pytest.param(planned(cpu=1.5), Axis.CPU, UP, id="more CPU"),
        pytest.param(planned(gb=0.5), Axis.MEMORY, DOWN, id="less memory"),
    ],
)
def test_off_holds_its_axis_and_direction_only(plan: Plan, axis: Axis, direction: Direction) -> None:
    now = seen()
    held: list[Step] = []
    assert gate((off(axis, direction),), now, Memory(), plan, held) == Plan(replicas=2, sizes=now.sizes)
    assert [(step.rule, step.axis) for step in held] == [(RuleName.UPDATE_MODE, axis)]
    other = DOWN if direction is UP else UP
    assert gate((off(axis, other),), now, Memory(), plan, []) == plan


def test_a_held_resource_keeps_its_limit_and_lets_the_other_move() -> None:
    plan = gate((off(Axis.CPU),), seen(), Memory(), planned(cpu=1.5, gb=1.5), [])
    assert plan.sizes["app"] == ContainerSize(requests=size(1.0, 1.5), limits=size(2.0, 3.0))


def test_containers_are_held_one_by_one() -> None:
    now = seen()
    now = replace(now, sizes=now.sizes | {"car": ContainerSize(requests=size(0.1))})
    plan = planned(cpu=1.1)
    plan = replace(plan, sizes=plan.sizes | {"car": ContainerSize(requests=size(0.9))})
    steps: list[Step] = []
    after = gate((MinChange(axis=Axis.CPU, direction=UP, value=0.2),), now, Memory(), plan, steps)
    assert after.sizes == {"app": now.sizes["app"], "car": ContainerSize(requests=size(0.9))}
    assert [step.container for step in steps] == ["app"]


@pytest.mark.parametrize(
    "window, clock, inside",
    [
        pytest.param(NIGHT, "21:59:59", False, id="before it begins"),
        pytest.param(NIGHT, "22:00:00", True, id="the first second"),
        pytest.param(NIGHT, "00:30:00", True, id="across midnight"),
        pytest.param(NIGHT, "04:00:00", True, id="the last second"),
        pytest.param(NIGHT, "04:00:01", False, id="after it"),
        pytest.param(MaintenanceWindow(begin_s=60, end_s=60), "00:01:00", True, id="begin is end: one second"),
        pytest.param(MaintenanceWindow(begin_s=60, end_s=60), "00:01:01", False, id="and no more"),
        pytest.param(None, "12:00:00", False, id="no window is never open"),
    ],
)
def test_maintenance_window(window: MaintenanceWindow | None, clock: str, inside: bool) -> None:
    hours, minutes, seconds = (int(part) for part in clock.split(":"))
    assert contains(window, MIDNIGHT + hours * 3600 + minutes * 60 + seconds + 0.9) is inside


def test_a_closed_window_says_when_it_opens() -> None:
    update = Update(axis=Axis.REPLICAS, direction=DOWN, mode=UpdateMode.WINDOW, window=NIGHT)
    (step,) = run((update,), planned(replicas=1))
    assert (step.rule, step.until) == (RuleName.MAINTENANCE_WINDOW, MIDNIGHT + 22 * 3600)
    assert next_begin(NIGHT, MIDNIGHT + 23 * 3600) == MIDNIGHT + 46 * 3600


@pytest.mark.parametrize(
    "memory, held",
    [
        pytest.param(Memory(), False, id="never scaled: no wait"),
        pytest.param(Memory(up_at=AT - 119), True, id="too soon after scaling out"),
        pytest.param(Memory(resized_at=AT - 119), True, id="or after a resize: any scaling counts"),
        pytest.param(Memory(down_at=AT - 500, resized_at=AT - 60), True, id="the last one"),
        pytest.param(Memory(up_at=AT - 120), False, id="equality passes"),
        pytest.param(Memory(up_at=AT - 1, overloaded=True), False, id="an overload does not wait upwards"),
    ],
)
def test_rest(memory: Memory, held: bool) -> None:
    steps = run((Rest(axis=Axis.CPU, direction=UP, window_s=120),), planned(cpu=2.0), memory)
    assert [step.rule for step in steps] == ([RuleName.REST] if held else [])
    if held:
        assert memory.scaled_at is not None
        assert steps[0].until == memory.scaled_at + 120


@pytest.mark.parametrize("axis", [Axis.CPU, Axis.REPLICAS])
def test_an_overload_lifts_nothing_downwards(axis: Axis) -> None:
    gates = (Rest(axis=axis, direction=DOWN, window_s=120),)
    assert run(gates, planned(replicas=1, cpu=0.5), Memory(up_at=AT - 1, overloaded=True))


def test_an_overload_lifts_neither_modes_nor_windows() -> None:
    closed = Update(axis=Axis.MEMORY, direction=UP, mode=UpdateMode.WINDOW, window=NIGHT)
    steps = run((off(Axis.CPU), closed), planned(cpu=2.0, gb=2.0), Memory(overloaded=True))
    assert [step.rule for step in steps] == [RuleName.UPDATE_MODE, RuleName.MAINTENANCE_WINDOW]


@pytest.mark.parametrize(
    "params, now, least",
    [
        pytest.param({}, 1.0, 0.2, id="HVPA weights without one: 200m"),
        pytest.param({"value": 0.2, "percent": 70}, 1.0, 0.2, id="HVPA weights example 1: 200m at one core"),
        pytest.param({"value": 0.2, "percent": 70}, 0.2, 0.14, id="HVPA weights example 1: 70 % at 200m"),
        pytest.param({"percent": 50}, 3.0, 1.5, id="a percentage alone"),
        pytest.param({"value": 0.3}, 0.1, 0.3, id="an amount alone"),
        pytest.param({"value": 0.3, "percent": 80}, 0.0, 0.0, id="no request yet: any change"),
    ],
)
def test_smallest_change(params: dict[str, float], now: float, least: float) -> None:
    rule = MinChange(axis=Axis.CPU, direction=UP, **params)
    assert threshold(rule, now) == pytest.approx(least)
    at = seen(requests=size(now, 1.0))
    assert not run((rule,), planned(cpu=round(now + least, 6)), now=at)
    if least:
        (step,) = run((rule,), planned(cpu=now + least - 0.001), now=at)
        assert step.rule is RuleName.MIN_CHANGE


def usage(lower: Size, expires_at: float = AT + 60) -> UsageEstimates:
    return UsageEstimates(made_at=AT, expires_at=expires_at, containers={"app": Estimate(target=lower, lower=lower)})


@pytest.mark.parametrize(
    "known, memory, held",
    [
        pytest.param(None, Memory(), True, id="too small a change"),
        pytest.param(usage(size(1.05)), Memory(), False, id="not when even the lower bound is above the request"),
        pytest.param(usage(size(1.05), AT - 1), Memory(), True, id="but of an estimate that is still valid"),
        pytest.param(usage(size(0.9)), Memory(), True, id="a lower bound below the request waits"),
        pytest.param(None, Memory(overloaded=True), False, id="not after an OOM kill"),
    ],
)
def test_smallest_change_starves_nobody(known: UsageEstimates | None, memory: Memory, held: bool) -> None:
    now = seen() if known is None else seen(usage=known)
    assert bool(run((MinChange(axis=Axis.CPU, direction=UP),), planned(cpu=1.1), memory, now)) is held


WRITTEN: dict[RuleName, object] = {
    RuleName.UPDATE_MODE: lambda axis: off(axis),
    RuleName.REST: lambda axis: Rest(axis=axis, direction=UP, window_s=600),
    RuleName.MAINTENANCE_WINDOW: lambda axis: Update(axis=axis, direction=UP, mode=UpdateMode.WINDOW, window=NIGHT),
    RuleName.MIN_CHANGE: lambda axis: MinChange(axis=axis, direction=UP, value=1e12),
}
VERTICAL = (RuleName.UPDATE_MODE, RuleName.REST, RuleName.MAINTENANCE_WINDOW, RuleName.MIN_CHANGE)
HORIZONTAL = (RuleName.UPDATE_MODE, RuleName.MAINTENANCE_WINDOW, RuleName.REST)


@pytest.mark.parametrize("axis, order", [(Axis.CPU, VERTICAL), (Axis.REPLICAS, HORIZONTAL)])
def test_the_first_gate_of_the_policy_is_the_reason(axis: Axis, order: tuple[RuleName, ...]) -> None:
    gates = [WRITTEN[rule](axis) for rule in order]  # type: ignore[operator]
    for index, rule in enumerate(order):
        (step,) = run(tuple(gates[index:]), planned(3) if axis is Axis.REPLICAS else planned(cpu=2.0), Memory(up_at=AT))
        assert step.rule is rule


@pytest.mark.parametrize(
    "veto, held",
    [
        pytest.param(
            Veto(axis=Axis.REPLICAS, direction=UP, reason="Quota", detail="pods: 10"), True, id="its direction"
        ),
        pytest.param(Veto(axis=Axis.REPLICAS, direction=None, reason="Conflict"), True, id="both directions"),
        pytest.param(Veto(axis=Axis.REPLICAS, direction=DOWN, reason="Breaker"), False, id="the other direction"),
        pytest.param(Veto(axis=Axis.CPU, direction=None, reason="Rollout"), False, id="another axis"),
        pytest.param(Veto(axis=Axis.REPLICAS, direction=None, reason="Reverted", until=AT), False, id="over by now"),
    ],
)
def test_veto(veto: Veto, held: bool) -> None:
    """A fact from outside comes before every setting."""
    steps = run((off(Axis.CPU),), planned(3), now=seen(vetoes=(veto,)))
    assert [step.rule for step in steps] == ([RuleName.VETO] if held else [])
    if held:
        assert (steps[0].reason, steps[0].detail) == (veto.reason, veto.detail or veto.reason)


def test_may_grow() -> None:
    window = Update(axis=Axis.REPLICAS, direction=UP, mode=UpdateMode.WINDOW, window=NIGHT)
    assert may_grow((off(Axis.REPLICAS, DOWN), off(Axis.CPU)), AT)
    assert not may_grow((off(Axis.REPLICAS),), AT)
    assert not may_grow((window,), AT)
    assert may_grow((window,), MIDNIGHT + 3600)
