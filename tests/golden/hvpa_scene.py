"""What the vectors of hvpa.json share: units, policies out of their fields, one decision held to what is expected."""

from __future__ import annotations

from typing import Any

from tests.golden.harness import Case
from trimtab.core.blend import AxisWishes, blend
from trimtab.core.gate import gate
from trimtab.core.model import (
    ContainerSize,
    Memory,
    Observation,
    RuleName,
    Step,
)
from trimtab.policy import (
    Axis,
    Buckets,
    Direction,
    Gap,
    Gate,
    MaintenanceWindow,
    Margin,
    Metric,
    MetricKind,
    MinChange,
    Size,
    Stage,
    Update,
    UpdateMode,
    Vertical,
    Weights,
)
from trimtab.quantity import parse_quantity

AT = 1_700_000_000.0  # 22:13:20 UTC
OPEN, CLOSED = MaintenanceWindow(begin_s=0, end_s=86399), MaintenanceWindow(begin_s=3600, end_s=7200)
FREE = Vertical(floor=Size())
RPS = Metric(kind=MetricKind.EXTERNAL, name="requests_per_second")
SCALE = {"cpu": 1000.0, "memory": 1.0}
GATED = (RuleName.UPDATE_MODE, RuleName.MAINTENANCE_WINDOW, RuleName.REST, RuleName.MIN_CHANGE)
BLOCKED = (*GATED, RuleName.PARADOX)


def size(amounts: dict[str, float] | None) -> Size:
    given = amounts or {}
    cpu, memory = given.get("cpu"), given.get("memory")
    return Size(cpu_cores=None if cpu is None else cpu / 1000, memory_bytes=memory)


def amounts(of: Size) -> dict[str, float]:
    """Back to millicores and bytes, leaving out what is not set."""
    found = {"cpu": of.cpu_cores, "memory": of.memory_bytes}
    return {name: round(value * SCALE[name], 3) for name, value in found.items() if value is not None}


def margin(params: dict[str, Any] | None) -> Margin:
    given = params or {}
    return Margin(percent=given.get("percentage", 0), value=parse_quantity(given.get("value", 0)))


def gap(params: dict[str, Any] | None) -> Gap | None:
    return (
        None if not params else Gap(percent=params.get("percentage", 0), value=parse_quantity(params.get("value", 0)))
    )


def smallest(axis: Axis, direction: Direction, params: dict[str, Any] | None) -> MinChange:
    given = params or {}
    value = None if "value" not in given else parse_quantity(given["value"])
    return MinChange(axis=axis, direction=direction, value=value, percent=given.get("percentage"))


def stages(case: Case) -> tuple[Stage, ...]:
    given = case["input"]
    return tuple(
        Stage(
            vertical_share=one["vpaWeight"] / 100,
            first=one.get("startReplicaCount", given.get("minReplicas", 1)),
            last=one.get("lastReplicaCount", given.get("maxReplicas", 10)),
        )
        for one in given["intervals_percent"]
    )


# Values in place of what a released program does wrong; see docs/decisions.
RESOLVED_LIMITS = {  # the larger of share and amount, as since v0.3
    "w-v025-gap-min": {"cpu": 2000, "memory": 4320000000},
    "s-up": {"cpu": 3000, "memory": 5200000000},  # and the CPU limit stays, because its request does
    "s-down": {"cpu": 2225, "memory": 5700000000},
    "s-mw-down": {"cpu": 2225, "memory": 5700000000},
}


def one_container(current: int, wanted: int, current_m: float, target_m: float, most: int = 10) -> AxisWishes:
    return AxisWishes(
        current=current,
        wanted=wanted,
        sizes={"app": ContainerSize(requests=Size(cpu_cores=current_m / 1000))},
        targets={"app": Size(cpu_cores=target_m / 1000)},
        min_replicas=1,
        max_replicas=most,
        overloaded=False,
    )


def gates_of(given: dict[str, Any]) -> tuple[Gate, ...]:
    """As the Hvpa kind writes them: on replicas the mode, on sizes the mode and the smallest change."""
    mode = UpdateMode(given.get("updateMode_all_four") or given.get("updateMode") or "Auto")
    window = OPEN if given.get("now_in_maintenance_window") else CLOSED
    changes = given.get("minChange") or given.get("minChange_on_totals") or {}
    found: list[Gate] = []
    for direction in Direction:
        found += [Update(axis=axis, direction=direction, mode=mode, window=window) for axis in Axis]
        found += [smallest(axis, direction, changes.get(axis.value)) for axis in (Axis.CPU, Axis.MEMORY)]
    return tuple(found)


def decided(rule: Weights | Buckets, vertical: Vertical, ask: AxisWishes, gates: tuple[Gate, ...], case: Case) -> None:
    """Blend, gate, and compare everything the case expects of the outcome."""
    steps: list[Step] = []
    seen = Observation(at=AT, spec_replicas=ask.current, status_replicas=ask.current, sizes=ask.sizes)
    plan = gate(gates, seen, Memory(), blend(rule, vertical, ask, steps), steps)
    expected, resolved = case["expected"], RESOLVED_LIMITS.get(case["id"])
    replicas = expected.get("newReplicas", expected.get("replicas"))
    assert replicas is None or plan.replicas == replicas
    if "resourceChange" in expected:
        assert (plan.sizes != ask.sizes) == expected["resourceChange"]
    if "requests" in expected:
        assert amounts(plan.sizes["app"].requests) == expected["requests"]
    if expected.get("limits"):
        assert amounts(plan.sizes["app"].limits) == (resolved or expected["limits"])
    reasons = expected.get("blockedReasons", [reason for reason in [expected.get("blockedReason")] if reason])
    assert _reasons(steps, ask) == set(reasons)


def _reasons(steps: list[Step], ask: AxisWishes) -> set[str]:
    """Why something was held; a stage of weight 0 is the reason "Weight" when it keeps a size as it is."""
    present = {Axis.CPU: ask.sizes["app"].requests.cpu_cores, Axis.MEMORY: ask.sizes["app"].requests.memory_bytes}
    weighed = {"Weight" for step in steps if step.rule is RuleName.WEIGHTS and step.after == present.get(step.axis)}
    return {str(step.rule) for step in steps if step.rule in BLOCKED} | weighed
