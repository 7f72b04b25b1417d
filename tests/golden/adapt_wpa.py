"""Adapters for wpa.json: the watermark autoscaler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.golden.harness import Case, Excuse
from trimtab.core.bound import bound
from trimtab.core.bounds_in_force import BoundsInForce
from trimtab.core.decide import decide
from trimtab.core.model import Memory, Missing, Observation, Pod, PodSamples, RuleName, Step, TotalSample
from trimtab.core.settle import SettleContext, cooldown, delay, velocity
from trimtab.core.settle.context import wish_of
from trimtab.core.tally import serves
from trimtab.policy import (
    Absence,
    Axis,
    Bounds,
    Converge,
    Cooldown,
    Delay,
    Metric,
    MetricKind,
    PodRules,
    Policy,
    Signal,
    Tolerance,
    TotalAverage,
    Velocity,
    Watermark,
)

NOW = 2_000_000_000.0


def _pod(data: dict[str, Any]) -> Pod:
    return Pod(
        name=data["name"],
        phase=data["phase"],
        ready=data["ready"],
        started_at=NOW - data["startedSecondsAgo"],
        ready_since=NOW - data["readyTransitionSecondsAgo"],
        deleting=data.get("deleted", False),
    )


def _signal(given: dict[str, Any]) -> Signal:
    wpa = given["wpa"]
    if "recommendation" in given:
        # A service that answers in replicas is a total with a target of one a pod.
        metric = Metric(kind=MetricKind.EXTERNAL, name="recommended")
        return TotalAverage(metric=metric, target=1.0, tolerance=Tolerance(up=0.0, down=0.0))
    data = given["metric"]
    kind = MetricKind.RESOURCE if data["type"] == "Resource" else MetricKind.EXTERNAL
    return Watermark(
        metric=Metric(kind=kind, name=data["name"] or "metric"),
        low=(data["lowWatermarkMilli"] or 1000) / 1000,
        high=(data["highWatermarkMilli"] or 1000) / 1000,
        tolerance=wpa["toleranceMilli"] / 1000,
        average=wpa["algorithm"] == "average",
        modulo=wpa["replicaScalingAbsoluteModulo"],
        converge=Converge(wpa["convergeTowardsWatermark"]) if wpa.get("convergeTowardsWatermark") else None,
        min_available_percent=wpa.get("minAvailableReplicaPercentage", 0),
    )


def _sample(given: dict[str, Any]) -> PodSamples | TotalSample:
    if "recommendation" in given:
        return TotalSample(value=given["recommendation"]["replicas"], at=NOW)
    levels = given["metric"]["levelsMilli"]
    if given["metric"]["type"] == "Resource":
        values = {pod["name"]: level / 1000 for pod, level in zip(given["pods"], levels, strict=False)}
        return PodSamples(values=values, at=NOW)
    return TotalSample(value=sum(levels) / 1000, at=NOW)


def watermark(case: Case) -> None:
    given, expected = case["input"], case["expected"]
    wpa = given["wpa"]
    policy = Policy(
        signals=(_signal(given),),
        settle=(),
        absence=Absence(zero_is_missing=not wpa.get("tolerateZero", False)),
        pods=PodRules(pending_grace_s=wpa.get("readinessDelaySeconds")),
        bounds=Bounds(min_replicas=wpa.get("minReplicas", 0), max_replicas=wpa.get("maxReplicas", 0)),
    )
    seen = Observation(
        at=NOW,
        spec_replicas=given["specReplicas"],
        status_replicas=given["statusReplicas"],
        pods=tuple(_pod(one) for one in given.get("pods", [])),
        samples=(_sample(given),),
    )
    wide = Bounds(min_replicas=0, max_replicas=10**6)
    decision = decide(policy if policy.bounds.max_replicas else _widened(policy, wide), seen, Memory())
    proposal = decision.proposals[0] if decision.proposals else _propose(policy, seen)
    if "error" in expected:
        assert isinstance(proposal.replicas, Missing)
        return
    assert proposal.replicas == expected["replicas"]
    if "utilizationMilli" in expected:
        assert proposal.value == pytest.approx(expected["utilizationMilli"] / 1000)
    if "readyReplicas" in expected:
        assert sum(serves(pod, policy.pods, NOW) for pod in seen.pods) == expected["readyReplicas"]
    if "isAbove" in expected and "metric" in given and decision.proposals:
        assert (decision.memory.above_since is not None) == expected["isAbove"]
        assert (decision.memory.below_since is not None) == expected["isBelow"]


def _propose(policy: Policy, seen: Observation) -> Any:
    from trimtab.core.propose import propose

    return propose(policy, seen)[0]


def _widened(policy: Policy, bounds: Bounds) -> Policy:
    from msgspec.structs import replace

    # Without bounds of its own upstream clamps the estimate of converging to zero: the signal keeps zero bounds.
    return policy if any(getattr(one, "converge", None) for one in policy.signals) else replace(policy, bounds=bounds)


def ready_pods(case: Case) -> None:
    given, expected = case["input"], case["expected"]
    pods = tuple(_pod(one) for one in given["pods"])
    rules = PodRules(pending_grace_s=given["readinessDelaySeconds"])
    found = sum(serves(pod, rules, NOW) for pod in pods)
    assert found == expected.get("ready", 0)


def up_limit(case: Case) -> None:
    given = case["input"]
    found = velocity.up_limit(given["currentReplicas"], given["scaleUpLimitFactorMilli"] / 1000)
    assert found == case["expected"]["limit"]


def down_limit(case: Case) -> None:
    given = case["input"]
    found = velocity.down_limit(given["currentReplicas"], given["scaleDownLimitFactorMilli"] / 1000)
    assert found == case["expected"]["limit"]


def normalize(case: Case) -> None:
    given, expected = case["input"], case["expected"]
    current = given["currentReplicas"]
    rule = Velocity(
        up_percent=given["scaleUpLimitFactorMilli"] / 1000,
        down_percent=given["scaleDownLimitFactorMilli"] / 1000,
    )
    limits = BoundsInForce(given["minReplicas"], given["maxReplicas"])
    scene = SettleContext(NOW, current, given["readyReplicas"], limits.least, limits.most, Memory())
    before = wish_of(given["desiredReplicas"], current)
    settled, _ = velocity.limit(rule, before, scene)
    steps = []
    if settled.replicas != before.replicas:
        steps.append(Step(rule=RuleName.VELOCITY, axis=Axis.REPLICAS, before=before.replicas, after=settled.replicas))
    assert bound(int(settled.replicas), limits, steps) == expected["replicas"]
    limited = bool(steps)
    assert limited == (expected["limitReason"] != "DesiredWithinRange")


def should_scale(case: Case) -> None:
    given, expected = case["input"], case["expected"]
    current, since = given["currentReplicas"], given["secondsSinceLastScale"]
    marks = {one["type"]: NOW - one["transitionSecondsAgo"] for one in given["conditions"] if one["status"] == "True"}
    memory = Memory(
        up_at=None if since is None else NOW - since,
        above_since=marks.get("AboveHighWatermark"),
        below_since=marks.get("BelowLowWatermark"),
    )
    rest = Cooldown(
        up_s=given["upscaleForbiddenWindowSeconds"],
        down_s=given["downscaleForbiddenWindowSeconds"],
        any_direction=True,
    )
    wait = Delay(
        above_s=given["upscaleDelayAboveWatermarkSeconds"],
        below_s=given["downscaleDelayBelowWatermarkSeconds"],
    )
    scene = SettleContext(NOW, current, current, 0, 10**6, memory, given["stableRegime"])
    wish, _ = cooldown.rest(rest, wish_of(given["desiredReplicas"], current), scene)
    wish, _ = delay.patience(wait, wish, scene)
    assert (wish.replicas != current) == expected["scale"]


ADAPTERS: dict[str, Callable[[Case], None]] = {
    "watermarkReplicas": watermark,
    "readyPodsCount": ready_pods,
    "scaleUpLimit": up_limit,
    "scaleDownLimit": down_limit,
    "normalize": normalize,
    "shouldScale": should_scale,
}
EXCUSED: dict[str, Excuse] = {}
