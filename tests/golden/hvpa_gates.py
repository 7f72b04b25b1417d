"""Vectors of hvpa.json on gates, limits, windows and overload."""

from __future__ import annotations

from collections.abc import Callable

from tests.golden.harness import Case
from tests.golden.hvpa_scene import AT, CLOSED, FREE, OPEN, RPS, SCALE, amounts, gap, one_container, smallest
from trimtab.core import overload
from trimtab.core.blend import blend
from trimtab.core.decide import decide
from trimtab.core.gate import gate, maintenance_window, min_change
from trimtab.core.limits import CPU_GRAIN, MEMORY_GRAIN, limit_for
from trimtab.core.model import (
    ContainerSize,
    Estimate,
    Memory,
    Observation,
    Plan,
    Step,
    TotalSample,
    UsageEstimates,
)
from trimtab.errors import InvalidInput
from trimtab.kinds.hvpa import clock_s
from trimtab.policy import (
    RESOURCES,
    Axis,
    Bounds,
    Direction,
    Gate,
    MaintenanceWindow,
    MinChange,
    Policy,
    Rest,
    Size,
    Stage,
    TotalAverage,
    Update,
    UpdateMode,
    Weights,
)

RESOLVED_RESTS = {"stab-7": True}


def _passes(gates: tuple[Gate, ...], axis: Axis, before: float, after: float, memory: Memory | None = None) -> bool:
    return _held(gates, axis, before, after, memory) is None


def _held(
    gates: tuple[Gate, ...], axis: Axis, before: float, after: float, memory: Memory | None = None
) -> Step | None:
    def sized(value: float) -> dict[str, ContainerSize]:
        cpu, memory_bytes = (value, 1e9) if axis is Axis.CPU else (1.0, value)
        return {"app": ContainerSize(requests=Size(cpu_cores=cpu, memory_bytes=memory_bytes))}

    horizontal, steps = axis is Axis.REPLICAS, []  # type: tuple[bool, list[Step]]
    replicas = (int(before), int(after)) if horizontal else (1, 1)
    sizes = ({}, {}) if horizontal else (sized(before), sized(after))
    seen = Observation(at=AT, spec_replicas=replicas[0], status_replicas=replicas[0], sizes=sizes[0])
    gate(gates, seen, memory or Memory(), Plan(replicas=replicas[1], sizes=sizes[1]), steps)
    return steps[0] if steps else None


def starves(case: Case) -> None:
    """Without knowing what it uses; `test_gate` has the case where the lower bound opens the gate."""
    given = case["input"]
    only = MinChange(axis=Axis.CPU, direction=Direction.UP, value=given["minChange_m"] / 1000)
    assert _passes((only,), Axis.CPU, 1.0, 1.0 + given["vpa_delta_m"] / 1000) == case["expected"]["scales"]


def threshold(case: Case) -> None:
    given = case["input"]
    axis = Axis.CPU if given["resource"] == "cpu" else Axis.MEMORY
    scale = SCALE["cpu" if axis is Axis.CPU else "memory"]
    found = min_change.threshold(smallest(axis, Direction.UP, given["params"]), given["current"] / scale)
    assert round(found * scale) == case["expected"]["threshold"]


def limit(case: Case) -> None:
    given, cpu = case["input"], case["input"]["resource"] == "cpu"
    scale = 1000.0 if cpu else 1.0
    old_request, old_limit, request = (given[key] / scale for key in ("old_request", "old_limit", "new_request"))
    grain = CPU_GRAIN if cpu else MEMORY_GRAIN
    found = limit_for(old_request, old_limit, request, gap(given["gap"]), grain)
    assert (None if found is None else round(found * scale)) == case["expected"]["new_limit"]


def _second(clock: list[int]) -> int:
    return clock[0] * 3600 + clock[1] * 60 + clock[2]


def window_contains(case: Case) -> None:
    given = case["input"]
    window = MaintenanceWindow(begin_s=_second(given["begin"]), end_s=_second(given["end"]))
    midnight = AT - AT % 86400
    found = [maintenance_window.contains(window, midnight + _second(one) + 0.5) for one in given["times"]]
    assert found == case["expected"]["contains"]


def window_lengths(case: Case) -> None:
    """From its begin, a window lasts until the clock next shows its end."""
    hours = []
    for begin, end in ((int(first) * 3600, int(last) * 3600) for first, last in case["input"]["windows"]):
        until = maintenance_window.next_begin(MaintenanceWindow(begin_s=end, end_s=begin), float(begin))
        assert until is not None
        hours.append((until - begin) / 3600)
    assert hours == case["expected"]["hours"]


def window_wraps(case: Case) -> None:
    """So much later the clock shows the expected second, and no other."""
    later = float(_second(case["input"]["time"]) + _second(case["input"]["add"]))
    second = _second(case["expected"]["time"])
    assert maintenance_window.contains(MaintenanceWindow(begin_s=second, end_s=second), later)
    assert not maintenance_window.contains(MaintenanceWindow(begin_s=second + 1, end_s=second + 1), later)


def window_clock(case: Case) -> None:
    assert clock_s(case["input"]["value"]) == _second(case["expected"]["utc"])


def window_refused(case: Case) -> None:
    given = case["input"]
    if "times" in given:
        texts = [["".join(f"{part:02d}" for part in one) + "+0000"] for one in given["times"]]
    else:
        texts = given["begin_end"]
    assert [all(map(_is_clock, pair)) for pair in texts] == case["expected"]["valid"]


def _is_clock(text: str) -> bool:
    try:
        clock_s(text)
    except InvalidInput:
        return False
    return True


def oom_stale(case: Case) -> None:
    """Times are ISO 8601 of the same zone, so they compare as text does."""
    ranks = sorted({one[key] for one in case["input"]["cases"] for key in ("oomFinishedAt", "lastScaleTime")})
    found = [
        overload.still_matters(
            ranks.index(one["oomFinishedAt"]), ranks.index(one["lastScaleTime"]), True, one["podRequestsEqualTemplate"]
        )
        for one in case["input"]["cases"]
    ]
    assert found == case["expected"]["override"]


def oom_weight(case: Case) -> None:
    """The program raised weight 0 to one percent; in full is what it meant."""
    given = case["input"]
    rule = Weights(stages=(Stage(vertical_share=given["vpaWeight_percent"] / 100, first=1, last=10),))
    ask = one_container(1, 1, given["current_m"], given["target_m"])._replace(overloaded=given["override"])
    found = amounts(blend(rule, FREE, ask, []).sizes["app"].requests)["cpu"]
    assert found == case["expected"]["intended_request_m"]


def rests(case: Case) -> None:
    """An overload lifts no rest of scaling down here; the program forgot that on the horizontal axis (stab-7)."""
    given = case["input"]
    axis = Axis.CPU if given["axis"] == "vpa" else Axis.REPLICAS
    direction = Direction(given["direction"])
    elapsed = given["seconds_since_last_scaling"]
    memory = Memory(resized_at=None if elapsed is None else AT - elapsed, overloaded=given["override"])
    after = 3.0 if direction is Direction.UP else 1.0
    gates = (Rest(axis=axis, direction=direction, window_s=given["window_s"]),)
    expected = RESOLVED_RESTS.get(case["id"], case["expected"]["blocked_StabilizationWindow"])
    assert _passes(gates, axis, 2.0, after, memory) != expected


AS_WRITTEN: dict[str, Callable[[Axis], Gate]] = {
    "UpdatePolicy": lambda axis: Update(axis=axis, direction=Direction.UP, mode=UpdateMode.OFF),
    "MaintenanceWindow": lambda axis: Update(axis=axis, direction=Direction.UP, mode=UpdateMode.WINDOW, window=CLOSED),
    "StabilizationWindow": lambda axis: Rest(axis=axis, direction=Direction.UP, window_s=1000.0),
    "MinChange": lambda axis: MinChange(axis=axis, direction=Direction.UP, value=1e12),
}


def precedence(case: Case) -> None:
    """The gates in the order of their precedence: the first of those left is always the reason. Weights and the paradox
    belong to the blend, which leaves no move to hold."""
    order = [reason for reason in case["expected"]["order"] if reason not in ("Weight", "ParadoxicalScaling")]
    axis = Axis.REPLICAS if case["id"] == "prec-hpa" else Axis.CPU
    gates = [AS_WRITTEN[reason](axis) for reason in order]
    for index, reason in enumerate(order):
        step = _held(tuple(gates[index:]), axis, 2.0, 3.0, Memory(up_at=AT))
        assert step is not None
        assert step.rule == reason


def window_missing(case: Case) -> None:
    """Never open, on either axis; the released programs block, misjudge, crash or refuse."""
    for axis in (Axis.REPLICAS, *RESOURCES):
        never = Update(axis=axis, direction=Direction.UP, mode=UpdateMode.WINDOW)
        step = _held((never,), axis, 1.0, 2.0)
        assert step is not None
        assert f"blocked ({step.rule})" == case["expected"]["outcome"][0]


def limited(case: Case) -> None:
    """Whether replicas can grow, from a whole decision: sizes grow in the exact mode only while they cannot."""
    given = case["input"]
    most, wanted = given.get("max", 3), given.get("hpaDesired", 1)
    asked = most + 1 if given.get("ScalingLimited") == "True" and wanted >= most else wanted  # else it is not limited
    window = OPEN if given.get("inWindow") else CLOSED
    up = Update(axis=Axis.REPLICAS, direction=Direction.UP, mode=UpdateMode(given["mode"]), window=window)
    policy = Policy(
        signals=(TotalAverage(metric=RPS, target=1.0),) if given.get("hpaDeployed", True) else (),
        vertical=FREE,
        blend=Weights(stages=(Stage(vertical_share=0.5, first=1, last=most),), exact=True),
        gates=(up,),
        bounds=Bounds(max_replicas=most),
    )
    estimate = Estimate(target=Size(cpu_cores=3.0), observed_s=86400.0)
    seen = Observation(
        at=AT,
        spec_replicas=1,
        status_replicas=1,
        sizes={"app": ContainerSize(requests=Size(cpu_cores=1.0))},
        samples=(TotalSample(value=float(asked), at=AT),),
        usage=UsageEstimates(made_at=AT, expires_at=AT + 60, containers={"app": estimate}),
    )
    plan = decide(policy, seen, Memory()).plan
    grown = plan.sizes["app"].requests.cpu_cores == 2.0
    assert grown == case["expected"]["scaleOutLimited"]
