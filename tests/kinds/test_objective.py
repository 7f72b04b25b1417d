"""The objective as users write it, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kinds.test_autoscaler import manifest
from trimtab.errors import InvalidObject
from trimtab.kinds import Scaler, read
from trimtab.policy import (
    Cooldown,
    ForecastChoice,
    Objective,
    Policy,
    Rate,
    RatePolicy,
    Rates,
    Rule,
    Select,
    Stabilise,
    StabiliseMax,
    UpLimit,
)


def policy_of(**spec: Any) -> Policy:
    found = read(manifest(**spec))
    assert isinstance(found, Scaler)
    return found.to_policy(0.0)


def test_left_out_is_off() -> None:
    assert policy_of().objective is None


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ({}, Objective(price=32.0)),
        ({"priority": "savings"}, Objective(price=8.0)),
        ({"priority": "balanced"}, Objective(price=32.0)),
        ({"priority": "reliability"}, Objective(price=128.0)),
        ({"price": 50, "serviceLevel": "0.65"}, Objective(price=50.0, service_level=0.65)),
        ({"serviceLevel": "1"}, Objective(service_level=1.0)),
    ],
)
def test_a_priority_is_a_price(written: dict[str, Any], expected: Objective) -> None:
    assert policy_of(objective=written).objective == expected


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"objective": {"priority": "cheap"}}, "spec.objective.priority"),
        ({"objective": {"price": 0}}, "spec.objective.price"),
        ({"objective": {"price": 8, "priority": "savings"}}, "leave one of them out"),
        ({"objective": {"serviceLevel": "0"}}, "spec.objective.serviceLevel"),
        ({"objective": {"serviceLevel": "1.2"}}, "spec.objective.serviceLevel"),
        ({"objective": {"serviceLevel": 0.8}}, "spec.objective.serviceLevel"),
        ({"objective": {}, "vertical": {}, "blend": {"capacity": {}}}, "by itself"),
        (
            {
                "objective": {},
                "metrics": [
                    {"type": "Prometheus", "prometheus": {"query": "x", "target": {"type": "Value", "value": "9"}}}
                ],
            },
            "what one pod carries",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(spec: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidObject, match=why):
        read(manifest(**spec))


def test_vertical_alone_weighs_no_pods() -> None:
    written = manifest(objective={}, vertical={})
    del written["spec"]["maxReplicas"]
    written["spec"].pop("metrics", None)
    with pytest.raises(InvalidObject, match="set maxReplicas"):
        read(written)


def test_it_chooses_the_model_unless_one_is_written() -> None:
    assert policy_of(objective={}).forecast == ForecastChoice(model="learned")
    assert policy_of(objective={}, forecast={"model": "seasonal"}).forecast == ForecastChoice(model="seasonal")


def test_a_bridge_guards_the_service_level() -> None:
    for level, ceiling in (("0.8", 0.75), ("0.4", 0.375)):
        bridge = policy_of(objective={"serviceLevel": level}, bridge={}).bridge
        assert bridge is not None
        assert bridge.ceiling == pytest.approx(ceiling)


def test_with_a_bridge_pods_are_started_later() -> None:
    alone, bridged = policy_of(objective={}).objective, policy_of(objective={}, bridge={}).objective
    assert alone is not None and bridged is not None
    assert (alone.start_share, bridged.start_share) == (0.25, 0.125)


FREE = Rates(policies=(RatePolicy(percent=True, value=2**31 - 1, period_s=1),))


@pytest.mark.parametrize(
    ("behavior", "rules"),
    [
        (None, ()),
        ({}, ()),
        ({"scaleDown": {"tolerance": "0.2"}}, ()),
        ({"scaleDown": {"stabilizationWindowSeconds": 60}}, (Stabilise(down_s=60.0),)),
        (
            {"scaleUp": {"selectPolicy": "Disabled"}},
            (Rate(up=Rates(select=Select.DISABLED, policies=FREE.policies), down=FREE),),
        ),
        (
            {"scaleUp": {"policies": [{"type": "Pods", "value": 2, "periodSeconds": 30}]}},
            (Rate(up=Rates(policies=(RatePolicy(percent=False, value=2, period_s=30),)), down=FREE),),
        ),
        ({"scaleUp": {"cooldownSeconds": 30}}, (Cooldown(up_s=30.0, down_s=0.0),)),
    ],
)
def test_of_the_rules_those_that_are_written_bind(behavior: dict[str, Any] | None, rules: tuple[Rule, ...]) -> None:
    spec = {} if behavior is None else {"behavior": behavior}
    found = policy_of(objective={}, **spec)
    assert found.objective is not None
    assert found.objective.settle == rules
    assert bool(found.settle)  # for as long as no forecast is there


def test_without_a_forecast_kubernetes_own_rules_hold() -> None:
    assert policy_of(objective={}).settle == (StabiliseMax(), UpLimit())
