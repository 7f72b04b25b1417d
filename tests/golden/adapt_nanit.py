"""Adapters for nanit.json: custom-hpa's program, through the policy of its exact mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.golden.harness import Case, Excuse
from trimtab.core.decide import decide
from trimtab.core.model import Decision, Memory, Observation, RuleName, TotalSample
from trimtab.core.settle import RULES, SettleContext, Wish
from trimtab.core.settle.stateless import cap_factor
from trimtab.policy import (
    Bounds,
    Cooldown,
    Factor,
    MaxFactor,
    Metric,
    MetricKind,
    MinFactor,
    Policy,
    RoundUp,
)

NOW = 1_000_000.0
METRIC = Metric(kind=MetricKind.PROMETHEUS, query="up")


def _policy(config: dict[str, Any]) -> Policy:
    return Policy(
        signals=(Factor(metric=METRIC, target=config["targetValue"]),),
        settle=(
            MaxFactor(up=config["scaleUpMaxFactor"], down=config["scaleDownMaxFactor"]),
            Cooldown(up_s=config["scaleUpCooldown"], down_s=config["scaleDownCooldown"]),
            MinFactor(up=config["scaleUpMinFactor"], down=config["scaleDownMinFactor"]),
            RoundUp(epsilon=0.0),
        ),
        bounds=Bounds(min_replicas=config["minReplicas"], max_replicas=config["maxReplicas"]),
        replays_noop=True,
    )


def _memory(given: dict[str, Any]) -> Memory:
    up, down = given.get("secondsSinceScaleUp"), given.get("secondsSinceScaleDown")
    return Memory(up_at=None if up is None else NOW - up, down_at=None if down is None else NOW - down)


def _decide(given: dict[str, Any], sample: float, memory: Memory) -> Decision:
    current = given["currentReplicas"]
    seen = Observation(
        at=NOW, spec_replicas=current, status_replicas=current, samples=(TotalSample(value=sample, at=NOW),)
    )
    return decide(_policy(given["config"]), seen, memory)


def scale_factor(case: Case) -> None:
    given = case["input"]
    config = given["config"]
    ratio = given["sample"] / config["targetValue"]
    _, factor = cap_factor(ratio, ratio, 1, config["scaleUpMaxFactor"], config["scaleDownMaxFactor"])
    assert factor == pytest.approx(case["expected"]["factor"], abs=1e-12)


def scale_allowed(case: Case) -> None:
    """Through the two rules that permit, cooldown first."""
    given = case["input"]
    _, cooldown, minimum, _ = _policy(given["config"]).settle
    wish = Wish(10 * given["factor"], given["factor"])
    scene = SettleContext(NOW, 10, 10, 1, 10**6, _memory(given))
    for rule in (cooldown, minimum):
        wish, _ = RULES[type(rule)][1](rule, wish, scene)
    assert (wish.ratio == given["factor"]) == case["expected"]["allowed"]


def desired_replicas(case: Case) -> None:
    """A factor nothing holds back: only the ceil and the bounds are left."""
    given = case["input"]
    free = {
        "scaleUpMaxFactor": 1e9,
        "scaleDownMaxFactor": 1.0,
        "scaleUpMinFactor": 0.0,
        "scaleDownMinFactor": 0.0,
    }
    loose = given | {"config": given["config"] | free | {"targetValue": 1.0}}
    decision = _decide(loose, given["factor"], Memory())
    assert decision.plan.replicas == case["expected"]["replicas"]


_EVENTS = {
    RuleName.MAX_FACTOR: "above-max-factor",
    RuleName.COOLDOWN: "cooldown",
    RuleName.MIN_FACTOR: "below-min-factor",
}


def period(case: Case) -> None:
    given, expected = case["input"], case["expected"]
    decision = _decide(given, given["sample"], _memory(given))
    ratio = given["sample"] / given["config"]["targetValue"]
    direction = "up" if ratio > 1.0 else "down"
    events = [f"{direction}/{_EVENTS[step.rule]}" for step in decision.steps if step.rule in _EVENTS]
    if decision.change is not None:
        events.append(f"{direction}/scaled")
    assert (decision.change is not None) == expected["scaled"]
    assert decision.plan.replicas == expected["replicas"]
    assert events == expected["events"]
    assert decision.proposals[0].value is not None
    assert decision.proposals[0].value / given["config"]["targetValue"] == pytest.approx(expected["scaleFactorGauge"])


ADAPTERS: dict[str, Callable[[Case], None]] = {
    "factor": scale_factor,
    "scaleAllowed": scale_allowed,
    "desiredReplicas": desired_replicas,
    "period": period,
}
EXCUSED: dict[str, Excuse] = {}
