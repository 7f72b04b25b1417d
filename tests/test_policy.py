"""A policy that contradicts itself cannot be made; every refusal names the field, the value and the fix."""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec
import pytest

from trimtab.errors import InvalidPolicy
from trimtab.policy import (
    Absence,
    Admit,
    Bounds,
    Bucket,
    Buckets,
    Capacity,
    ContainerRule,
    Cooldown,
    Factor,
    ForecastChoice,
    MaintenanceWindow,
    MaxFactor,
    Metric,
    MetricKind,
    MinChange,
    Policy,
    Rate,
    RatePolicy,
    Rates,
    Rest,
    ScheduledBounds,
    Size,
    Stabilise,
    Stage,
    Tolerance,
    TotalAverage,
    UpLimit,
    Utilization,
    Watermark,
    Weights,
)

CPU = Metric(kind=MetricKind.RESOURCE, name="cpu")

REFUSED: list[tuple[str, Callable[[], object]]] = [
    ("minReplicas", lambda: Bounds(min_replicas=5, max_replicas=4)),
    ("minReplicas", lambda: Bounds(min_replicas=-1)),
    ("averageUtilization", lambda: Utilization(metric=CPU, percent=0)),
    ("averageValue", lambda: TotalAverage(metric=CPU, target=0.0)),
    ("averageValue", lambda: TotalAverage(metric=CPU, target=math.nan)),
    ("target.value", lambda: Factor(metric=CPU, target=math.inf)),
    ("tolerance.up", lambda: Tolerance(up=-0.1)),
    ("lowWatermark", lambda: Watermark(metric=CPU, low=2.0, high=1.0)),
    ("then.replicas", lambda: Absence(then_replicas=-1)),
    ("stabilizationWindowSeconds", lambda: Stabilise(up_s=-1)),
    ("factor", lambda: UpLimit(factor=0.5)),
    ("policies.value", lambda: RatePolicy(percent=True, value=-1, period_s=15)),
    ("policies.periodSeconds", lambda: RatePolicy(percent=True, value=1, period_s=-1)),
    ("policies", lambda: Rate(up=Rates())),
    ("maxFactor", lambda: MaxFactor(up=-1.0)),
    ("cooldownSeconds", lambda: Cooldown(down_s=math.nan)),
    ("minAllowed", lambda: ContainerRule(least=Size(cpu_cores=2.0), most=Size(cpu_cores=1.0))),
    ("vpaWeight", lambda: Stage(vertical_share=60, first=1, last=2)),
    ("startReplicaCount", lambda: Stage(vertical_share=0.6, first=3, last=2)),
    ("weightBasedScalingIntervals", lambda: Weights(stages=())),
    ("replicas.min", lambda: Bucket(replicas_min=4, replicas_max=3, most=Size(cpu_cores=1.0))),
    ("buckets", lambda: Buckets(buckets=())),
    ("hysteresis", lambda: Capacity(hysteresis=1.0)),
    ("maintenanceTimeWindow", lambda: MaintenanceWindow(begin_s=0, end_s=86400)),
    ("stabilizationDuration", lambda: Rest(axis="cpu", direction="up", window_s=-1)),  # type: ignore[arg-type]
    ("minChange", lambda: MinChange(axis="cpu", direction="up", value=-1)),  # type: ignore[arg-type]
    ("schedules.night", lambda: ScheduledBounds(name="night", start=2.0, end=1.0)),
    ("pin", lambda: Admit(pin=-1)),
    ("quantile", lambda: ForecastChoice(quantile=1.0)),
    ("horizon", lambda: ForecastChoice(horizon_s=0)),
]


@pytest.mark.parametrize("path, make", REFUSED, ids=[f"{i}-{path}" for i, (path, _) in enumerate(REFUSED)])
def test_refused_with_field_value_and_fix(path: str, make: Callable[[], object]) -> None:
    with pytest.raises(InvalidPolicy) as caught:
        make()
    assert caught.value.path == path and caught.value.fix
    assert str(caught.value).startswith(f"{path}: ")


def test_buckets_are_ordered() -> None:
    def bucket(least: int, most: int) -> Bucket:
        return Bucket(replicas_min=least, replicas_max=most, most=Size(cpu_cores=1.0))

    Buckets(buckets=(bucket(1, 2), bucket(3, 4)))
    with pytest.raises(InvalidPolicy, match="order the buckets"):
        Buckets(buckets=(bucket(3, 4), bucket(1, 2)))


def test_a_policy_survives_its_journal() -> None:
    policy = Policy(signals=(Utilization(metric=CPU, percent=50),), settle=(Stabilise(), Rate(), Cooldown()))
    assert msgspec.json.decode(msgspec.json.encode(policy), type=Policy) == policy
