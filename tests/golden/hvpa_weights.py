"""Vectors of hvpa.json on HVPA weights: stages, rounding, and decisions of the released program."""

from __future__ import annotations

from typing import Any

from tests.golden.harness import Case
from tests.golden.hvpa_scene import AT, FREE, RPS, amounts, decided, gap, gates_of, one_container, size, stages
from trimtab.core.blend import AxisWishes, blend
from trimtab.core.blend.weights import share_at, weighted_replicas, weighted_request
from trimtab.core.decide import decide
from trimtab.core.gate import gate, may_grow
from trimtab.core.model import (
    ContainerSize,
    Memory,
    Observation,
)
from trimtab.policy import (
    Axis,
    Bounds,
    ContainerRule,
    Direction,
    Gate,
    Limits,
    MinChange,
    Policy,
    Size,
    Stage,
    TotalAverage,
    Vertical,
    Weights,
)


def weights_by_replicas(case: Case) -> None:
    for current, weight in case["expected"]["weight_by_current_replicas"].items():
        assert share_at(stages(case), int(current), int(current)) == weight / 100


def weight(case: Case) -> None:
    given, expected = case["input"], case["expected"]
    if "weights" in expected:
        found = [share_at(stages(case), current, current) for current in given["currentReplicas"]]
        assert found == [weight / 100 for weight in expected["weights"]]
        return
    current, wanted = given["currentReplicas"], given["hpaDesiredReplicas"]
    share = share_at(stages(case), current, wanted)
    assert share == expected["vpaWeight"] / 100
    assert weighted_replicas(current, wanted, share) == expected["newReplicas"]


def unconditional_at_max(case: Case) -> None:
    given, expected = case["input"], case["expected"]
    most = given["maxReplicas"]
    for exact, wanted in ((False, expected["request_m_per_seed"]), (True, expected["request_m_upstream"])):
        for share, request in zip(given["interval_weight"], wanted, strict=True):
            rule = Weights(stages=(Stage(vertical_share=share, first=1, last=most),), exact=exact)
            ask = one_container(most, most, given["current_m"], given["vpaTarget_m"])._replace(stuck=True)
            assert amounts(blend(rule, FREE, ask, []).sizes["app"].requests)["cpu"] == request


def formulas(case: Case) -> None:
    given, expected = case["input"], case["expected"]
    current, wanted = given["currentReplicas"], given["hpaDesiredReplicas"]
    for share, replicas, request in zip(given["weights"], expected["replicas"], expected["request_m"], strict=True):
        rule = Weights(stages=(Stage(vertical_share=share, first=1, last=10),))
        plan = blend(rule, FREE, one_container(current, wanted, given["current_m"], given["vpaTarget_m"]), [])
        assert plan.replicas == replicas
        assert amounts(plan.sizes["app"].requests)["cpu"] == request


def rounding(case: Case) -> None:
    given = case["input"]
    share = given["vpaWeight_percent"] / 100
    found = weighted_replicas(given["currentReplicas"], given["hpaDesiredReplicas"], share)
    assert found == case["expected"]["newReplicas"]


def weighted_memory(case: Case) -> None:
    given, expected = case["input"], case["expected"]
    share, present, target = given["vpaWeight_percent"] / 100, given["current_bytes"], given["target_bytes"]
    assert weighted_request(present, target, share, Axis.MEMORY) - present == expected["diff_bytes"]
    ask = one_container(1, 1, 0, 0)._replace(
        sizes={"app": ContainerSize(requests=Size(memory_bytes=present))}, targets={"app": Size(memory_bytes=target)}
    )
    rule = Weights(stages=(Stage(vertical_share=share, first=1, last=10),))
    assert blend(rule, FREE, ask, []).sizes["app"].requests.memory_bytes == expected["request_bytes"]


def weighted_cpu(case: Case) -> None:
    given, expected = case["input"], case["expected"]
    share = given["vpaWeight_percent"] / 100
    found = weighted_request(given["current_m"] / 1000, given["target_m"] / 1000, share, Axis.CPU)
    assert round(found * 1000) == expected["request_m"]
    assert round(found * 1000) - given["current_m"] == expected["diff_m"]


def scenario(case: Case) -> None:
    """One decision of the released program: weights, limits and gates."""
    given, expected = case["input"], case["expected"]
    supported = "vpaConditions" not in given
    share = given.get("vpaWeight_percent", 0) / 100
    chosen = stages(case) if "intervals_percent" in given else (Stage(vertical_share=share, first=1, last=100),)
    gates = gates_of(given)
    ask = AxisWishes(
        current=given["currentReplicas"],
        wanted=given["hpaDesiredReplicas"],
        sizes={"app": ContainerSize(requests=size(given["current_requests"]), limits=size(given["current_limits"]))},
        targets={"app": size(given["vpaTarget"])} if supported else {},
        min_replicas=1,
        max_replicas=given.get("hpaMaxReplicas", 4),
        overloaded=False,
        stuck=_stuck(given, gates),
    )
    if "scaleOutLimited" in expected and "intervals_percent" not in given:
        assert ask.stuck == expected["scaleOutLimited"]
    gaps = given.get("limitsRequestsGap") or {}
    rule = ContainerRule(requests_only=given.get("controlledValues") == "RequestsOnly")
    limits = Limits(cpu=gap(gaps.get("cpu")), memory=gap(gaps.get("memory")))
    vertical = Vertical(containers=(rule,), limits=limits, floor=Size())
    exact = "intervals_percent" not in given  # those are of a branch whose sizes did not wait for replicas
    decided(Weights(stages=chosen, exact=exact), vertical, ask, gates, case)


def _stuck(given: dict[str, Any], gates: tuple[Gate, ...]) -> bool:
    """Wanting more than the maximum is what HPA's condition ScalingLimited says at maxReplicas."""
    at_most = given["hpaDesiredReplicas"] >= given.get("hpaMaxReplicas", 4)
    limited = given.get("hpaScalingLimitedCondition", True)
    return (at_most and limited) or not may_grow(gates, AT)


def switched_off(case: Case) -> None:
    """Zero replicas mean off: nothing is scaled, vertically neither (the program resized one branch of it)."""
    given = case["input"]
    policy = Policy(
        signals=(TotalAverage(metric=RPS, target=1.0),),
        vertical=FREE,
        blend=Weights(stages=(Stage(vertical_share=0.4, first=1, last=3),)),
        bounds=Bounds(max_replicas=given["hpaMaxReplicas"]),
    )
    seen = Observation(at=AT, spec_replicas=0, status_replicas=0)
    decision = decide(policy, seen, Memory())
    assert decision.change is None
    assert decision.plan.replicas == case["expected"]["newReplicas"]


def steps_of_weight(case: Case) -> None:
    """Tables of the enhancement proposal; memory is in megabytes and rounded by hand."""
    given = case["input"]
    share = given["vpaWeight_percent"] / 100
    for step, applied in zip(given["steps"], case["expected"]["applied"], strict=True):
        assert weighted_replicas(step["currentReplicas"], step["hpaDesired"], share) == applied["replicas"]
        found = weighted_request(step["currentMem_M"] * 1e6, step["vpaTarget_M"] * 1e6, share, Axis.MEMORY)
        assert found == applied["mem_M"] * 1e6


def multiplies(case: Case) -> None:
    given, expected = case["input"], case["expected"]
    rule = Weights(stages=(Stage(vertical_share=given["vpaWeight_percent"] / 100, first=1, last=10),))
    ask = one_container(1, given["hpaDesired"], given["current_cores"] * 1000, given["vpaTarget_cores"] * 1000)
    plan = blend(rule, FREE, ask, [])
    assert plan.replicas == expected["replicas"]
    assert plan.sizes["app"].requests.cpu_cores == expected["cores"]
    assert plan.replicas * expected["cores"] == expected["total_cores"]


def single_axis(case: Case) -> None:
    given = case["input"]
    share = given["vpaWeight_percent"] / 100
    found = [weighted_replicas(one["currentReplicas"], one["hpaDesired"], share) for one in given["steps"]]
    assert found == case["expected"]["replicas_after_each"]


def converges(case: Case) -> None:
    given = case["input"]
    rule = Weights(stages=(Stage(vertical_share=given["vpaWeight_percent"] / 100, first=1, last=10),))
    only = (MinChange(axis=Axis.CPU, direction=Direction.UP, value=given["minChange_m"] / 1000),)
    ask = one_container(1, 1, given["current_m"], given["target_m"])
    for request in case["expected"]["requests_m"]:
        seen = Observation(at=AT, spec_replicas=1, status_replicas=1, sizes=ask.sizes)
        ask = ask._replace(sizes=gate(only, seen, Memory(), blend(rule, FREE, ask, []), []).sizes)
        assert amounts(ask.sizes["app"].requests)["cpu"] == request
